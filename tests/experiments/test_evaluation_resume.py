"""Evaluations that are interrupted go on as if they had never stopped; nothing is overwritten."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fl_saliency.cli import run as command
from fl_saliency.experiments import evaluation, progress
from fl_saliency.playback.play import BetweenSteps
from tests.helpers import make_run

FLAGS = "--num-env 2 --evals-per-env 3 --max-eplen 200 --env-workers 0 --raw-obs --processed-obs"
VIDEOS = ("perception.mkv", "perception.mp4", "perception.png")


def evaluate(experiment: Path, output: Path, *arguments: str) -> int:
    where = ["--experiment-dir", str(experiment), "--output-dir", str(output)]
    return command.main([*where, *FLAGS.split(), *arguments])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("experiment") / "01")


@pytest.fixture(scope="module")
def reference(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("eval") / "out"
    assert evaluate(experiment, output) == 0
    return output


def interrupt_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> Callable[[], None]:
    """Have evaluations be interrupted after that many steps; every ended game is saved at once."""
    play = evaluation.play

    def interrupted(*arguments: Any, **named: Any) -> Any:
        left = steps
        for event in play(*arguments, **named):
            yield event
            left -= isinstance(event, BetweenSteps)
            if not left:
                raise KeyboardInterrupt

    monkeypatch.setattr(progress, "AFTER_A_GAME", 0.0)
    monkeypatch.setattr(evaluation, "play", interrupted)
    return monkeypatch.undo


def timeless(output: Path) -> dict[str, Any]:
    found = json.loads((output / "results.json").read_text())
    del found["elapsed_time"]
    return found


def test_an_interrupted_evaluation_goes_on_and_gives_the_same_games_and_video(
    experiment: Path,
    reference: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    for steps in (70, 60):  # twice
        undo = interrupt_after(monkeypatch, steps)
        assert evaluate(experiment, out) == 130
        undo()
        assert not (out / "results.json").exists()
    capsys.readouterr()
    assert evaluate(experiment, out) == 0
    assert "goes on with an unfinished evaluation: 4 of 6 games" in capsys.readouterr().out
    assert timeless(out) == timeless(reference)
    for name in VIDEOS:
        assert (out / name).read_bytes() == (reference / name).read_bytes()
    assert sorted(path.name for path in out.iterdir()) == sorted(
        path.name for path in reference.iterdir()
    )
    times = json.loads((out / "results.json").read_text())["elapsed_time"]
    assert times[:3] == sorted(times[:3])


@pytest.fixture
def unfinished(experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    undo = interrupt_after(monkeypatch, 70)
    assert evaluate(experiment, tmp_path / "out") == 130
    undo()
    return tmp_path / "out"


def test_an_unfinished_evaluation_of_other_settings_is_refused_until_overwritten(
    experiment: Path, unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, difference in (
        (["--eval-seed", "7"], "eval_seed 1000, now 7"),
        (["--max-eplen", "100"], "max_eplen 200, now 100"),
    ):
        assert evaluate(experiment, unfinished, *arguments) == 2
        error = capsys.readouterr().err
        assert f"an unfinished job with other settings ({difference}); add --overwrite" in error
    assert evaluate(experiment, unfinished, "--eval-seed", "7", "--overwrite") == 0
    assert "goes on" not in capsys.readouterr().out
    assert timeless(unfinished)["eval_seed"] == 7


def test_another_model_is_another_job(
    experiment: Path, unfinished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_run(tmp_path / "other", seed=1)
    assert evaluate(other, unfinished) == 2
    assert "model_sha256" in capsys.readouterr().err


def test_a_damaged_unfinished_evaluation_is_named(
    experiment: Path, unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (unfinished / "evaluation.partial").glob("*/state.json"):
        path.write_text("{}")
    assert evaluate(experiment, unfinished) == 2
    assert "checksum of state.json is wrong; add --overwrite" in capsys.readouterr().err


def test_an_evaluation_that_died_while_it_drew_its_video_draws_it_from_the_frames(
    experiment: Path,
    reference: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(progress, "AFTER_A_GAME", 0.0)
    with monkeypatch.context() as patch:

        def die(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(evaluation.PerceptionRecorder, "close", die)
        assert evaluate(experiment, out) == 130
    assert (out / "results.json").exists()
    assert evaluate(experiment, out) == 0
    assert (out / "perception.mkv").read_bytes() == (reference / "perception.mkv").read_bytes()
    assert timeless(out) == timeless(reference)


def test_finished_results_are_only_replaced_with_overwrite(
    experiment: Path, reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(reference, tmp_path / "out")
    assert evaluate(experiment, out) == 2
    assert "results.json exists; add --overwrite" in capsys.readouterr().err
    assert timeless(out) == timeless(reference)
    scores = [flag for flag in FLAGS.split() if "obs" not in flag]
    where = ["--experiment-dir", str(experiment), "--output-dir", str(out)]
    assert command.main([*where, *scores, "--overwrite"]) == 0
    # Videos of other games than the scores' would be worse than none.
    assert not list(out.glob("perception*"))


def test_nothing_is_left_of_an_evaluation_that_reached_nothing(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = interrupt_after(monkeypatch, 3)
    assert evaluate(experiment, tmp_path / "out") == 130
    undo()
    assert not (tmp_path / "out").exists()
