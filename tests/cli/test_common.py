"""What every command shares: one line per error, exit statuses, the dispatcher, light --help."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fl_saliency.cli.common import INTERRUPTED, run_command
from fl_saliency.cli.main import COMMANDS, main
from fl_saliency.errors import InputError, JobError

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a test."""

    count: int
    """How many."""

    def __post_init__(self) -> None:
        if self.count < 0:
            raise InputError(f"--count {self.count}: expected 0 or more")


def run(*argv: str, job: object = lambda settings: 0) -> int:
    return run_command(Settings, job, argv, prog="tester", description="A test.")  # type: ignore[arg-type]


def test_the_jobs_status_is_the_commands() -> None:
    assert run("--count", "3", job=lambda settings: settings.count) == 3


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "--count"),
        (("--count", "x"), "'x'"),
        (("--count", "1", "--coun", "2"), "--count"),
        (("--count", "-1"), "--count -1: expected 0 or more"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("tester: error: ")
    assert said in captured.err


@pytest.mark.parametrize(("error", "status"), [(InputError, 2), (JobError, 1)])
def test_a_jobs_error_is_one_line_and_its_status(
    error: type[Exception], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(settings: Settings) -> int:
        raise error("the disk is full")

    assert run("--count", "1", job=fail) == status
    assert capsys.readouterr().err == "tester: error: the disk is full\n"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_the_shells_status(
    signum: signal.Signals, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    # A job that a shell starts in the background is born with SIGINT ignored.
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, interrupt))
    assert run("--count", "1", job=lambda settings: signal.raise_signal(signum)) == INTERRUPTED
    assert capsys.readouterr().err == "tester: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_programming_error_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run("--count", "1", job=lambda settings: 1 // 0)


def test_fls_without_a_command_lists_them_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in COMMANDS)


def test_fls_names_the_nearest_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    assert "unknown command 'trian'; did you mean 'train'?" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_answers_without_tensorflow(command: str) -> None:
    code = (
        "import sys; from fl_saliency.cli.main import main; status = main(sys.argv[1:]); "
        "sys.exit(status or ('tensorflow' in sys.modules) or ('keras' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--help"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


def test_tensorflow_starts_without_a_word_on_a_machine_without_gpu() -> None:
    code = "from fl_saliency.cli.common import start_tensorflow; start_tensorflow()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_networks_prints_a_table_and_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["networks", "--actions", "9", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 19
    assert rows["cnn_sparse_fls"]["parameters"] == 1_839_275
    assert rows["cnn_sparse_fls"]["attention"] == [7, 7]
    assert rows["cnn"]["attention"] is None
    assert main(["networks"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 20
    assert any("cnn_sparse_fls " in line and "1,836,710" in line for line in table)


def test_networks_refuses_no_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["networks", "--actions", "0"]) == 2
    assert "--actions 0: expected from 1 to 1000" in capsys.readouterr().err


def test_a_users_network_is_listed_trained_and_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_nets.py").write_text(
        "from fl_saliency.base import AttentionGeometry\n"
        "from fl_saliency.networks import blocks\n"
        "from fl_saliency.networks.registry import register\n"
        "GEOMETRY = AttentionGeometry(receptive_field=36, stride=8, padding=0)\n"
        "@register('my_net', geometry=GEOMETRY, source='a test')\n"
        "def my_net(obs):\n"
        "    features = blocks.trunk(blocks.scale_pixels(obs), blocks.SPARSE_TRUNK)\n"
        "    attention = blocks.normalise_map(blocks.fls_map(features, size=1))\n"
        "    return blocks.latent_of(blocks.attention_pool(features, attention)), attention\n"
    )
    small = ["--num-envs", "2", "--num-steps", "8", "--num-timesteps", "16", "--env-workers", "0"]
    mine = ["--extra-import", "my_nets"]
    run_dir, eval_dir = str(tmp_path / "run"), str(tmp_path / "eval")
    # In processes of their own, as the registry of this one is shared with other tests.
    train = [*mine, *small, "--network", "my_net", "--output-dir", run_dir]
    evaluate = ["--num-env", "1", "--max-eplen", "40", "--env-workers", "0", "--processed-obs"]
    evaluate += ["--experiment-dir", run_dir, "--output-dir", eval_dir]
    monkeypatch.chdir(tmp_path)
    assert _status("train_baselines.py", *train) == 0
    assert _status("run_baselines.py", *evaluate, *mine) == 0
    assert (tmp_path / "eval" / "perception.mp4").stat().st_size > 0
    assert _status("run_baselines.py", *evaluate) == 2


def _status(script: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, str(ROOT / script), *arguments]).returncode


def test_a_full_disk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(settings: Settings) -> int:
        raise OSError(28, "No space left on device", "logs/progress.csv")

    assert run("--count", "1", job=fail) == 1
    expected = "tester: error: logs/progress.csv: No space left on device\n"
    assert capsys.readouterr().err == expected


def test_a_strangers_text_stays_on_one_line_and_cannot_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(settings: Settings) -> int:
        raise InputError("model \x1b[2J\n\u202eé")

    assert run("--count", "1", job=fail) == 2
    assert capsys.readouterr().err == "tester: error: model \\x1b[2J\\n\\u202eé\n"


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(settings: Settings) -> int:
        raise MemoryError("Unable to allocate 50.1 PiB")

    assert run("--count", "1", job=fail) == 1
    assert capsys.readouterr().err == (
        "tester: error: not enough memory (Unable to allocate 50.1 PiB)\n"
    )


def test_too_little_memory_of_the_accelerator_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(settings: Settings) -> int:
        import tensorflow as tf

        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating\na tensor")

    assert run("--count", "1", job=fail) == 1
    line, *rest = capsys.readouterr().err.splitlines()
    assert line.startswith("tester: error: not enough memory (OOM when allocating")
    assert rest == []


def test_a_path_that_is_too_long_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(settings: Settings) -> int:
        return Path("x" * 300).stat().st_size

    assert run("--count", "1", job=fail) == 2
    assert capsys.readouterr().err == f"tester: error: {'x' * 300}: File name too long\n"


def test_fls_speaks_under_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--nonsense"]) == 2
    assert capsys.readouterr().err.startswith("fls train: error: ")
