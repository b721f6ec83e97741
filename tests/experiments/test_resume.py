"""Training runs that are killed, damaged or starved, and go on: the files of a whole job.

What a process that is killed leaves is what lies on disk at that moment, so most tests copy the run
directory in the middle of a run and resume the copy; one kills a real process.
"""

import errno
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.agents.ppo2.learner import PPO2Learner
from fl_saliency.agents.ppo2.state import TrainerState
from fl_saliency.checkpoints.snapshots import find_snapshots, read_newest, read_snapshot
from fl_saliency.cli import train as command
from fl_saliency.experiments import training
from fl_saliency.experiments.training import save_model
from fl_saliency.folders import hold
from fl_saliency.logs.readers import read_progress
from scripts.soak import Cycle, differences, finish

SMALL = ["--num-envs", "2", "--num-steps", "32", "--env-workers", "0", "--network", "cnn_daqn"]
WHOLE = [*SMALL, "--num-timesteps", "640", "--checkpoint-minutes", "0"]
MOMENTS = (1, 4)


def run(path: Path, *arguments: str) -> int:
    return command.main([*WHOLE, "--output-dir", str(path), *arguments])


def at_update(monkeypatch: pytest.MonkeyPatch, action: Callable[[int], None]) -> None:
    """Have `action` called when the rows of an update are logged, before its checkpoint."""
    show = training._show

    def watched(bar: object, update: training.Update, size: int) -> None:
        show(bar, update, size)  # type: ignore[arg-type]
        action(update.index)

    monkeypatch.setattr(training, "_show", watched)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, beside it what was on disk at some of its moments."""
    folder = tmp_path_factory.mktemp("resume")
    with pytest.MonkeyPatch.context() as patch:

        def copy(update: int) -> None:
            if update in MOMENTS:
                shutil.copytree(folder / "run", folder / f"killed at {update}")

        at_update(patch, copy)
        assert run(folder / "run") == 0
    return folder / "run"


def killed(reference: Path, update: int, tmp_path: Path) -> Path:
    """A run directory as a process leaves it that was killed after it logged `update`."""
    path = tmp_path / "run"
    shutil.copytree(reference.parent / f"killed at {update}", path)
    return path


@pytest.mark.parametrize("update", MOMENTS)
def test_a_killed_run_ends_as_one_that_never_stopped(
    update: int, reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, update, tmp_path)
    # Logs were ahead of the checkpoint, and the last lines were torn.
    for name in ("progress.csv", "0.1.monitor.csv", "log.txt"):
        with (path / "logs" / name).open("a") as file:
            file.write("1.0,2")
    (path / "checkpoints" / ".unfinished-x").mkdir()
    assert run(path, "--resume") == 0
    assert f"goes on after update {update - 1} of 10" in capsys.readouterr().out
    assert differences(reference, path) == []
    assert not [item for item in path.rglob("*") if item.name.startswith(".")]


def test_a_resumed_run_needs_no_other_option_and_goes_on_with_its_own(
    reference: Path, tmp_path: Path
) -> None:
    path = killed(reference, 4, tmp_path)
    assert command.main(["--resume", "--output-dir", str(path), "--env-workers", "2"]) == 0
    assert differences(reference, path) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--num-envs", "4"),
        ("--num-timesteps", "6400"),
        ("--network", "cnn_sparse_fls"),  # the default, but not this run's
        ("--train-seed", "2"),
        ("--learning-rate", "0.1"),
        ("--frame-skip", "2"),
    ],
)
def test_another_setting_is_refused_and_named(
    option: str, value: str, reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    assert command.main(["--resume", "--output-dir", str(path), option, value]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"train_baselines.py: error: {option} {value}: the run in {path} began")
    assert error.count("\n") == 1


def test_a_damaged_newest_checkpoint_is_named_and_the_older_one_taken(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    file = find_snapshots(path / "checkpoints")[0] / "arrays.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert run(path, "--resume") == 0
    said = capsys.readouterr().out
    assert "passed over" in said
    assert "00000003" in said
    assert "goes on after update 2 of 10" in said
    assert differences(reference, path) == []


def test_no_whole_checkpoint_is_one_error_and_changes_nothing(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    for snapshot in find_snapshots(path / "checkpoints"):
        (snapshot / "state.json").write_text("{}")
    before = (path / "logs" / "progress.csv").read_bytes()
    assert run(path, "--resume") == 2
    assert "none of its checkpoints is whole" in capsys.readouterr().err
    assert (path / "logs" / "progress.csv").read_bytes() == before


def test_resume_begins_where_there_is_nothing_or_only_a_beginning(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path / "nothing", tmp_path / "beginning"):
        if path.name == "beginning":
            (path / "checkpoints" / ".unfinished-x").mkdir(parents=True)
            shutil.copy(reference / "config.json", path)
        assert run(path, "--resume", "--num-timesteps", "640") == 0
        assert "no run to go on with; it begins" in capsys.readouterr().out
    assert differences(reference, path) == []


def test_a_finished_run_stays_as_it_is_and_gets_the_model_it_lacks(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shutil.copytree(reference, tmp_path / "run")
    before = {item: item.stat().st_mtime_ns for item in path.rglob("*") if item.is_file()}
    assert run(path, "--resume") == 0
    assert "finished already" in capsys.readouterr().out
    assert before == {item: item.stat().st_mtime_ns for item in path.rglob("*") if item.is_file()}
    (path / "model.pkl").unlink()
    assert run(path, "--resume") == 0
    assert differences(reference, path) == []
    # An interrupt's model, if the process died before it wrote the last one.
    save_model(path / "model.pkl", with_other_weights(path))
    (path / "curve.png").unlink()
    assert run(path, "--resume") == 0
    assert differences(reference, path) == []
    assert (path / "curve.png").exists()


def with_other_weights(path: Path) -> TrainerState:
    """The state of the last checkpoint with other weights."""
    snapshot, _ = read_newest(path / "checkpoints")
    assert snapshot is not None
    state = TrainerState.from_snapshot(snapshot, num_actions=4)
    return replace(state, weights={name: array + 1 for name, array in state.weights.items()})


def test_without_resume_a_run_is_never_touched(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    assert run(path) == 2
    assert "add --resume to go on with the run in it" in capsys.readouterr().err


def test_a_terminated_run_leaves_a_checkpoint_of_its_last_update(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"

    def terminate(update: int) -> None:
        if update == 5:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        at_update(patch, terminate)
        assert run(path, "--checkpoint-minutes", "10") == 130
    assert [item.name for item in find_snapshots(path / "checkpoints")] == ["00000005", "00000000"]
    assert run(path, "--resume") == 0
    assert differences(reference, path) == []


def test_an_interrupt_in_the_middle_of_an_update_keeps_the_one_before(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    update, calls = PPO2Learner.update, iter(range(100))

    def interrupted(self: PPO2Learner, *arguments: object) -> object:
        losses = update(self, *arguments)  # type: ignore[arg-type]
        if next(calls) == 3:  # weights have changed, nothing is logged
            raise KeyboardInterrupt
        return losses

    with monkeypatch.context() as patch:
        patch.setattr(PPO2Learner, "update", interrupted)
        assert run(path) == 130
    assert len(read_progress(path / "logs" / "progress.csv")) == 3
    assert run(path, "--resume") == 0
    assert differences(reference, path) == []


def assert_failed_whole(path: Path, updates: int, capsys: pytest.CaptureFixture[str]) -> str:
    """The job left a whole checkpoint and nothing half-written; returns its one error line."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    snapshot, damaged = read_newest(path / "checkpoints")
    assert snapshot is not None
    assert (snapshot.index, damaged) == (updates, [])
    assert not [item for item in path.rglob("*") if item.name.startswith(".")]
    return error


def test_a_full_disk_stops_the_run_with_the_last_checkpoint_whole(
    reference: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "run"
    fsync, is_full = os.fsync, False

    def full(handle: int) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    def fill(update: int) -> None:
        nonlocal is_full
        is_full = update == 4

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        at_update(patch, fill)
        assert run(path) == 1
    assert "No space left on device" in assert_failed_whole(path, 3, capsys)
    assert run(path, "--resume") == 0
    assert differences(reference, path) == []


def test_a_disk_that_really_is_full_stops_the_run(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "disk"
    small.mkdir()
    one = sum(
        file.stat().st_size for file in find_snapshots(reference / "checkpoints")[0].iterdir()
    )
    options = f"size={one * 3 // 2}"  # room for one checkpoint, not for a second
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        assert run(small / "run") == 1
        assert "No space left on device" in assert_failed_whole(small / "run", 0, capsys)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_folder_that_is_removed_during_the_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    at_update(monkeypatch, lambda update: shutil.rmtree(path) if update == 2 else None)
    assert run(path, "--checkpoint-minutes", "10") == 1
    assert capsys.readouterr().err == (
        f"train_baselines.py: error: {path}: the run directory is gone\n"
    )
    assert not path.exists()


def test_a_diverged_run_keeps_its_last_good_checkpoint_and_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    update, calls = PPO2Learner.update, iter(range(100))

    def diverging(self: PPO2Learner, *arguments: object) -> object:
        losses = update(self, *arguments)  # type: ignore[arg-type]
        if next(calls) == 3:
            weights = self.model.trainable_variables[0]
            weights.assign(weights * np.nan)
        return losses

    monkeypatch.setattr(PPO2Learner, "update", diverging)
    assert run(path) == 1
    error = assert_failed_whole(path, 3, capsys)
    assert "weights not finite at update 4; no model.pkl was written" in error
    assert str(path / "checkpoints" / "00000003") in error
    assert not (path / "model.pkl").exists()
    found = read_snapshot(path / "checkpoints" / "00000003")
    assert all(np.isfinite(array).all() for array in found.arrays.values())


def test_two_jobs_never_share_a_folder(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    with hold(path):
        before = sorted(path.rglob("*"))
        assert run(path, "--resume") == 2
        assert sorted(path.rglob("*")) == before
    error = capsys.readouterr().err
    assert f"another job is at work in this folder: process {os.getpid()}" in error


def test_a_run_begun_under_another_protocol_is_refused(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    config = (path / "config.json").read_text()
    (path / "config.json").write_text(config.replace('"noop_max": 30', '"noop_max": 20'))
    assert run(path, "--resume") == 2
    assert "noop_max" in capsys.readouterr().err


def test_modules_that_a_config_names_are_not_imported(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    config = (path / "config.json").read_text()
    (path / "config.json").write_text(
        config.replace('"extra_import": []', '"extra_import": ["no_such_module"]')
    )
    assert "no_such_module" in (path / "config.json").read_text()
    assert run(path, "--resume") == 0


def test_a_config_with_an_unknown_or_wrong_setting_is_refused(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(reference, 4, tmp_path)
    config = (path / "config.json").read_text()
    for change, message in (
        (config.replace('"gamma"', '"gama"'), "unknown key 'gama'"),
        (
            config.replace('"gamma": 0.99', '"gamma": "high"'),
            "'gamma' is 'high', expected a number",
        ),
        (config.replace('"num_envs": 2', '"num_envs": 2.5'), "expected a whole number"),
        (config.replace('"num_envs": 2', '"num_envs": 0'), "--num-envs 0"),
    ):
        assert change != config
        (path / "config.json").write_text(change)
        assert run(path, "--resume") == 2
        assert message in capsys.readouterr().err


def test_a_process_killed_at_random_moments_ends_as_one_that_never_stopped(tmp_path: Path) -> None:
    steps = 8 * 64
    seconds = finish(tmp_path / "reference", steps)
    cycle = Cycle(tmp_path / "run", steps, seconds, random.Random(8))  # one SIGKILL
    cycle.play()
    assert differences(tmp_path / "reference", tmp_path / "run") == []
