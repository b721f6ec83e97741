"""Evaluation from the command line: scores, files, videos decoded back, and refusals."""

import json
import pickle
from pathlib import Path

import av
import pytest

from fl_saliency.cli import run as command
from fl_saliency.experiments.load import load_run
from tests.helpers import make_run

SMALL = ["--num-env", "2", "--evals-per-env", "1", "--max-eplen", "400", "--env-workers", "0"]


def evaluate(experiment: Path, output: Path | None, *arguments: str) -> int:
    where = [] if output is None else ["--output-dir", str(output)]
    return command.main(["--experiment-dir", str(experiment), *SMALL, *where, *arguments])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("experiment") / "01")


@pytest.fixture(scope="module")
def results(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("eval") / "out"
    assert evaluate(experiment, output, "--raw-obs", "--processed-obs") == 0
    return output


def frames_of(path: Path) -> int:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def test_results_have_the_originals_keys_and_ours_env_by_env(results: Path) -> None:
    found = json.loads((results / "results.json").read_text())
    assert list(found)[:4] == ["rewards", "lengths", "elapsed_time", "done_per_env"]
    assert found["done_per_env"] == [1, 1]
    assert found["env"] == [0, 1]
    assert found["end"] == ["truncated", "truncated"]
    assert found["frames"] == [400, 400]
    assert found["n_episodes"] == 2
    assert found["n_finished"] == 0
    assert found["protocol"]["game"] == "breakout"
    assert found["protocol_matches_training"] is True
    assert len(set(found["seed"])) == 2


def test_eval_pkl_holds_the_same_figures(results: Path) -> None:
    arrays = pickle.loads((results / "eval.pkl").read_bytes())
    found = json.loads((results / "results.json").read_text())
    assert arrays["rewards"].tolist() == found["rewards"]
    assert arrays["seed"].tolist() == found["seed"]


def test_both_videos_hold_every_step_that_was_played(results: Path) -> None:
    found = json.loads((results / "results.json").read_text())
    # Hidden reset steps (no-op, FIRE) are in the lengths, not in the video: nobody chose them.
    longest = max(found["lengths"])
    counted = {frames_of(results / f"perception.{end}") for end in ("mkv", "mp4")}
    assert len(counted) == 1
    assert longest - 20 < counted.pop() <= longest
    assert (results / "perception.png").stat().st_size > 0


def test_two_evaluations_with_a_seed_are_equal_but_for_times(
    experiment: Path, results: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    assert evaluate(experiment, again, "--env-workers", "2") == 0
    first, second = (json.loads((path / "results.json").read_text()) for path in (results, again))
    for found in (first, second):
        del found["elapsed_time"]
    assert first == second
    assert not list(again.glob("perception*"))


def test_results_go_into_the_run_directory_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert evaluate(run, None) == 0
    before = (run / "results.json").read_bytes()
    assert evaluate(run, None) == 2
    assert "results.json exists; add --overwrite" in capsys.readouterr().err
    assert (run / "results.json").read_bytes() == before


def test_another_protocol_is_refused_or_labelled(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sticky = ["--repeat-action-probability", "0.25"]
    assert evaluate(experiment, tmp_path / "no", *sticky) == 2
    message = capsys.readouterr().err
    assert "trained with 0.0, used with 0.25" in message
    assert "--allow-protocol-mismatch" in message
    assert not (tmp_path / "no").exists()
    assert evaluate(experiment, tmp_path / "yes", *sticky, "--allow-protocol-mismatch") == 0
    found = json.loads((tmp_path / "yes" / "results.json").read_text())
    assert found["protocol_matches_training"] is False
    assert "repeat_action_probability" in found["protocol_differences"][0]


def test_a_run_of_the_original_loads_and_plays(tmp_path: Path) -> None:
    golden = Path(__file__).parent.parent / "golden" / "original_run"
    run = make_run(tmp_path / "run")
    (run / "model.pkl").write_bytes((golden / "model.pkl").read_bytes())
    assert load_run(run, seed=0).agent.num_actions == 4
    assert evaluate(run, tmp_path / "out") == 0


def test_a_config_of_a_stranger_imports_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    (tmp_path / "hostile_module.py").write_text("raise SystemExit('ran')")
    config["extra_import"] = ["hostile_module"]
    (run / "config.json").write_text(json.dumps(config))
    assert load_run(run, seed=0).agent.num_actions == 4


def test_keys_that_are_not_known_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"gama": 0.9, "gamma": 0.9}))
    assert evaluate(run, tmp_path / "out") == 0
    assert "config.json: keys that are not known here: 'gama'\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no config", "config.json: not found"),
        ("bad config", "not valid JSON"),
        ("no model", "model.pkl"),
        ("empty model", "model.pkl"),
        ("html model", "model.pkl"),
        ("lfs model", "model.pkl"),
        ("truncated model", "model.pkl"),
        ("evil model", "model.pkl"),
        ("another network", "is it a model of another network"),
        ("another action count", "actions"),
        ("unknown network", "unknown network"),
        ("unknown game", "unknown"),
        ("zero envs", "--num-env 0: expected 1 or more"),
        ("zero games", "--evals-per-env 0: expected 1 or more"),
        ("negative seed", "--eval-seed -1: expected a seed"),
        ("zero frames", "--max-eplen 0: expected 1 or more"),
        ("no folder", "no such run directory"),
        ("negative workers", "--env-workers -1: expected 0 or more"),
        ("small frames", "observations of (42, 42, 4), expected (84, 84, 4)"),
        ("two games", "name two games"),
        ("wrong protocol", "config.json: protocol: frame_skip 'four': expected int"),
    ],
)
def test_bad_input_is_one_line_status_2_and_nothing_written(
    change: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    model, config = run / "model.pkl", run / "config.json"
    arguments: list[str] = []
    match change:
        case "no config":
            config.unlink()
        case "bad config":
            config.write_text("{")
        case "no model":
            model.unlink()
        case "empty model":
            model.write_bytes(b"")
        case "html model":
            model.write_text("<!DOCTYPE html><html></html>")
        case "lfs model":
            model.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        case "truncated model":
            model.write_bytes(model.read_bytes()[:5000])
        case "evil model":
            model.write_bytes(pickle.dumps(_Evil(tmp_path / "owned")))
        case "another network":
            config.write_text(config.read_text().replace("cnn_daqn", "cnn"))
        case "another action count":
            config.write_text(config.read_text().replace("Breakout", "MsPacman"))
        case "unknown network":
            config.write_text(config.read_text().replace("cnn_daqn", "cnn_dqn"))
        case "unknown game":
            config.write_text(config.read_text().replace("Breakout", "Brakeout"))
        case "zero envs":
            arguments = ["--num-env", "0"]
        case "zero games":
            arguments = ["--evals-per-env", "0"]
        case "negative seed":
            arguments = ["--eval-seed", "-1"]
        case "zero frames":
            arguments = ["--max-eplen", "0"]
        case "negative workers":
            arguments = ["--env-workers", "-1"]
        case "small frames":
            _with_protocol(config, game="breakout", size=42)
        case "two games":
            _with_protocol(config, game="pong")
        case "wrong protocol":
            _with_protocol(config, game="breakout", frame_skip="four")
        case "no folder":
            run = tmp_path / "nowhere"
    output = tmp_path / "out"
    assert evaluate(run, output, *arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not output.exists()
    assert not (tmp_path / "owned").exists()


def _with_protocol(config: Path, **fields: object) -> None:
    protocol = {"env_id": "BreakoutNoFrameskip-v4", **fields}
    config.write_text(json.dumps({**json.loads(config.read_text()), "protocol": protocol}))


class _Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, (f"touch {self.target}",)


def test_scores_stay_when_no_video_can_be_made_and_running_it_again_makes_it(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from fl_saliency.errors import JobError
    from fl_saliency.render.perception import PerceptionRecorder

    def fail(self: PerceptionRecorder, *, progress: bool) -> None:
        raise JobError("the encoder failed")

    monkeypatch.setattr(PerceptionRecorder, "close", fail)
    assert evaluate(experiment, tmp_path / "out", "--video-recorder") == 1
    assert "the encoder failed" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "results.json",
        "results.png",
        "eval.pkl",
        "evaluation.partial",  # the frames
    }
    monkeypatch.undo()
    assert evaluate(experiment, tmp_path / "out", "--video-recorder") == 0
    assert not (tmp_path / "out" / "evaluation.partial").exists()
    assert frames_of(tmp_path / "out" / "perception.mkv") > 70  # 400 frames, 4 a step
