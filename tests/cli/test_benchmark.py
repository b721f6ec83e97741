import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from fl_saliency.atari_head import benchmark
from fl_saliency.cli.benchmark import main
from tests.atari_head.gaze_fakes import TRIALS, golden_metrics
from tests.golden.weights import golden_weights

GOLDEN = Path(__file__).parents[1] / "golden"
NETWORKS = json.loads((GOLDEN / "networks.json").read_text())["networks"]
FILES = ["saliency.csv", "saliency.json", "saliency.pkl", "saliency.png"]
COMPARED = [*FILES, "saliency_frames.png", "saliency_methods.png"]


def make_run(directory: Path, network: str, env_name: str = "BreakoutNoFrameskip-v4") -> Path:
    """A run directory in the published layout, with golden weights for 4 actions."""
    directory.mkdir()
    variables = NETWORKS[network]["trainable_variables_n4"]
    shapes = [(item["name"], tuple(item["shape"])) for item in variables]
    joblib.dump(golden_weights(shapes), directory / "model.pkl")
    config = {"env_name": env_name, "network": network}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


@pytest.fixture(scope="module")
def daqn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "daqn", "cnn_daqn")


@pytest.fixture
def run(daqn: Path, tmp_path: Path) -> Path:
    return shutil.copytree(daqn, tmp_path / "run")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def arguments(run: Path, *more: str, trials: Path = TRIALS) -> list[str]:
    return ["--experiment-dir", str(run), "--atari-head-dir", str(trials), *more]


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_scores_go_to_the_run_directory_and_equal_the_original(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(run, "--gaze-alignment", "original", "--processed-obs")) == 0
    assert names(run) == sorted(["config.json", "model.pkl", *FILES])
    records = joblib.load(run / "saliency.pkl")
    golden = golden_metrics("Breakout", "cnn_daqn", "prc")
    assert [record["trial_number"] for record in records] == list(golden)
    for record in records:
        for name, values in record["metrics"].items():
            expected = golden[record["trial_number"]][name]
            assert values == pytest.approx(expected, abs=1e-5, nan_ok=True)
    out, err = capsys.readouterr()
    said = out.splitlines()
    assert said[0].startswith("protocol of the model: BreakoutNoFrameskip-v4: skip 4")
    assert said[1].startswith("trial 9901: nss")
    assert "sauc" in said[1]
    assert str(run / "saliency.json") in out
    assert "not in" in err
    assert "9999" in err
    found = json.loads((run / "saliency.json").read_text())
    assert found["absent"] == [9999]
    assert found["network"] == "cnn_daqn"

    assert main(arguments(run)) == 2  # the second time nothing is overwritten
    assert "saliency.pkl exists; add --overwrite to replace" in error_of(capsys)


def test_a_broken_trial_is_one_line_and_status_1(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials, out = shutil.copytree(TRIALS, tmp_path / "trials"), tmp_path / "out"
    for path in trials.iterdir():
        path.chmod(0o644)
    next(trials.glob("9901*.txt")).write_text("")
    assert main(arguments(run, "--output-dir", str(out), trials=trials)) == 1
    err = capsys.readouterr().err.splitlines()
    broken = [line for line in err if "skipped:" in line]
    assert len(broken) == 1
    assert "9901" in broken[0]
    assert "empty file" in broken[0]
    found = json.loads((out / "saliency.json").read_text())
    assert [trial["trial_number"] for trial in found["trials"]] == [9903]
    assert [trial["trial_number"] for trial in found["skipped"]] == [9901]
    assert names(run) == ["config.json", "model.pkl"]

    empty = tmp_path / "nothing"
    assert main(arguments(run, "--trials", "9901", "--output-dir", str(empty), trials=trials)) == 1
    assert "none of the 1 trials could be scored" in capsys.readouterr().err
    assert not empty.exists()


def test_chosen_trials_only(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(arguments(run, "--trials", "9903", "--output-dir", str(out))) == 0
    assert [record["trial_number"] for record in joblib.load(out / "saliency.pkl")] == [9903]
    values = joblib.load(out / "saliency.pkl")[0]["metrics"]["nss"]
    assert np.isfinite(values[0])  # with the right frames, decision 0 has gaze too


def test_a_network_without_attention_says_what_would_serve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "cnn", "cnn")
    assert main(arguments(run)) == 2
    error = error_of(capsys)
    assert "network 'cnn' has no built-in attention" in error
    assert "perturbation" in error
    assert names(run) == ["config.json", "model.pkl"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--trials", "9902"], "--trials 9902: no such trial of breakout"),
        (["--trials", "9999"], "choose from: 9901, 9903"),
        (["--eval-seed", "-1"], "--eval-seed -1: expected a seed"),
        (["--gaze-alignment", "frame"], "--gaze-alignment"),
        (["--saliency"], "no saliency method given; choose from: attention, "),
        (["--saliency", "atention"], "'atention'; did you mean 'attention'?"),
        (["--saliency", "sarfa", "sarfa"], "saliency method 'sarfa' is given twice"),
        (["--saliency", "sarfa", "--stride", "0"], "--stride 0: expected 1 or more"),
    ],
)
def test_wrong_arguments_are_one_line_and_status_2(
    run: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(run, *more)) == 2
    assert message in error_of(capsys)
    assert names(run) == ["config.json", "model.pkl"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["perturbation", "--target", "actoin"], "unknown target 'actoin'; did you mean 'action'?"),
        (["perturbation", "--target", "action:9"], "expected action:N with N from 0 to 3"),
        (["gradcam", "--target", "policy"], "method 'gradcam' cannot explain target 'policy'"),
        (["gradcam", "--layer", "c9"], "unknown layer 'c9'"),
    ],
)
def test_what_a_network_cannot_serve_is_one_line_and_status_2(
    run: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(run, "--saliency", *more)) == 2
    assert message in error_of(capsys)
    assert names(run) == ["config.json", "model.pkl"]


def test_a_network_without_attention_is_scored_by_other_methods_beside_the_baselines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = make_run(tmp_path / "cnn", "cnn"), tmp_path / "out"
    words = ["--saliency", "perturbation", "--stride", "28", "--target", "value"]
    words += ["--trials", "9903", "--output-dir", str(out), "--processed-obs"]
    assert main(arguments(run, *words)) == 0
    assert names(out) == COMPARED
    said = capsys.readouterr().out
    for start in ("convention paper: mean", "convention mit: mean", "perturbation      value"):
        assert any(line.startswith(start) for line in said.splitlines()), said
    assert "mean_gaze is the gaze of the other half of the trial's decisions" in said
    found = json.loads((out / "saliency.json").read_text())
    assert found["map"]["source"] == "perturbation"
    methods = [method["name"] for method in found["methods"]]
    assert methods[:2] == ["perturbation", "uniform"]
    assert methods[-2:] == ["mean_gaze", "human"]
    assert found["comparison"]["options"]["target"] == "value"

    assert main(arguments(run, *words)) == 2
    assert "saliency.pkl exists; add --overwrite" in capsys.readouterr().err
    assert main(arguments(run, *words[:2], "--baselines", "False", *words[6:], "--overwrite")) == 0
    found = json.loads((out / "saliency.json").read_text())
    assert [method["name"] for method in found["methods"]] == ["perturbation"]


def test_results_of_a_comparison_do_not_outlive_it(run: Path, tmp_path: Path) -> None:
    out = ["--output-dir", str(tmp_path / "out"), "--trials", "9903", "--processed-obs"]
    assert (
        main(arguments(run, *out, "--saliency", "attention", "centre", "--baselines", "False")) == 0
    )
    assert names(tmp_path / "out") == COMPARED
    assert main(arguments(run, *out, "--overwrite")) == 0
    assert names(tmp_path / "out") == FILES


def test_missing_folders_and_other_games_are_one_line_and_status_2(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path / "none")) == 2
    assert "none: no such run directory" in error_of(capsys)
    assert main(arguments(run, trials=tmp_path / "gone")) == 2
    assert "gone" in error_of(capsys)
    (run / "config.json").write_text('{"env_name": "PongNoFrameskip-v4", "network": "cnn_daqn"}')
    assert main(arguments(run)) == 2
    assert "pong" in error_of(capsys).lower()
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    (run / "config.json").write_text(
        '{"env_name": "BreakoutNoFrameskip-v4", "network": "cnn_daqn"}'
    )
    assert main(arguments(run, "--output-dir", str(full))) == 2
    assert "expected a new or empty folder" in error_of(capsys)
    assert names(full) == ["notes.txt"]


def test_a_wrong_method_is_found_before_tensorflow_starts(run: Path) -> None:
    code = (
        "import sys\n"
        "from fl_saliency.cli.benchmark import main\n"
        "assert main(sys.argv[1:]) == 2\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    words = arguments(run, "--saliency", "nothing")
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "unknown saliency method 'nothing'; choose one of: activation" in done.stderr


def test_help_does_not_import_tensorflow() -> None:
    code = (
        "import sys\n"
        "from fl_saliency.cli.benchmark import main\n"
        "assert main(['--help']) == 0\n"
        "assert 'tensorflow' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    for flag in ("--experiment-dir", "--atari-head-dir", "--gaze-alignment", "--processed-obs"):
        assert flag in done.stdout


@pytest.mark.parametrize("methods", [[], ["attention", "perturbation"]])
def test_an_interrupted_benchmark_goes_on_with_the_trials_that_are_left(
    methods: list[str],
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    words = ["--saliency", *methods, "--baselines", "False"] if methods else []
    files = COMPARED if methods else FILES
    assert main(arguments(run, *words, "--output-dir", str(whole))) == 0
    score = benchmark.score_trial

    def interrupted(agent: Any, trial: Any, *more: Any, **named: Any) -> Any:
        if trial.ref.number == 9903:
            raise KeyboardInterrupt
        return score(agent, trial, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(benchmark, "score_trial", interrupted)
        assert main(arguments(run, *words, "--output-dir", str(out))) == 130
    assert names(out) == ["saliency.partial"]
    capsys.readouterr()

    assert main(arguments(run, *words, "--output-dir", str(out), "--processed-obs")) == 2
    assert "an unfinished job with other settings (" in capsys.readouterr().err

    scored = []
    monkeypatch.setattr(
        benchmark,
        "score_trial",
        lambda agent, trial, *more, **named: (
            scored.append(trial.ref.number) or score(agent, trial, *more, **named)
        ),
    )
    assert main(arguments(run, *words, "--output-dir", str(out))) == 0
    assert "goes on with an unfinished benchmark: 1 trials are scored" in capsys.readouterr().out
    assert scored == [9903]
    assert names(out) == files
    for name in files:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name

    assert main(arguments(run, *words, "--output-dir", str(out), "--overwrite")) == 0
    assert scored == [9903, 9901, 9903]
