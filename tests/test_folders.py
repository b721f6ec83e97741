"""Output folders: checked at the door, held by one job, results never overwritten silently."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from fl_saliency.errors import InputError
from fl_saliency.folders import (
    LOCK,
    ResultsPlace,
    check_output_dir,
    hold,
    lock_owner,
    prepare_output_dir,
)


def test_an_output_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    assert prepare_output_dir(path) == path
    assert prepare_output_dir(path) == path
    assert not list(path.iterdir())


def test_an_output_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").touch()
    with pytest.raises(InputError, match=r"found 'model\.pkl' in it; and so on"):
        check_output_dir(tmp_path, hint="; and so on")
    check_output_dir(tmp_path, keep=("model.pkl",))


def test_a_file_in_place_of_the_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder, found a file"):
        check_output_dir(tmp_path / "file")
    with pytest.raises(InputError, match="cannot write there"):
        prepare_output_dir(tmp_path / "file" / "below")


def test_an_output_folder_that_cannot_be_written_is_refused() -> None:
    # A file system that nobody can write to, root included.
    with pytest.raises(InputError, match="cannot write there"):
        prepare_output_dir(Path("/proc/fl-saliency"))


def _hold_until_told(path: Path, pipe: Connection) -> None:
    with hold(path):
        pipe.send("held")
        pipe.recv()


@pytest.mark.parametrize("end", ["leaves", "is killed"])
def test_a_folder_is_held_by_one_process_until_it_leaves_or_dies(end: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    other = context.Process(target=_hold_until_told, args=(tmp_path / "run", theirs))
    other.start()
    assert ours.recv() == "held"
    second = hold(tmp_path / "run")
    with pytest.raises(InputError, match=f"another job is at work .* process {other.pid} of"):
        second.__enter__()
    assert f"process {other.pid} of" in str(lock_owner(tmp_path / "run"))
    if end == "leaves":
        ours.send("go")
    else:
        os.kill(other.pid or 0, signal.SIGKILL)
    other.join(20)
    assert lock_owner(tmp_path / "run") is None
    with hold(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).exists()
    assert not (tmp_path / "run" / LOCK).exists()


def test_a_folder_that_was_made_and_stayed_empty_goes(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name in ("old", "empty", "full"):
        with hold(tmp_path / name):
            if name == "full":
                (tmp_path / name / "result").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "old"]


def test_a_lock_that_is_a_pipe_or_a_dead_jobs_is_nobodys(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    assert lock_owner(tmp_path) is None
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).write_text("{}")
    assert lock_owner(tmp_path) is None


def test_a_lock_is_no_content_of_a_folder(tmp_path: Path) -> None:
    with hold(tmp_path / "run"):
        check_output_dir(tmp_path / "run")


def place(path: Path, run: Path, *, overwrite: bool = False) -> ResultsPlace:
    return ResultsPlace(
        path, run=run, names=("a.json", "b.png"), partial="a.partial", overwrite=overwrite
    )


def test_results_are_only_replaced_if_told_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "model.pkl").touch()
    for path in (run, tmp_path / "out"):
        with place(path, run).hold():
            (path / "a.json").write_text("1")
        with pytest.raises(InputError, match=r"a\.json exists; add --overwrite"):
            place(path, run).check()
        with place(path, run, overwrite=True).hold():
            assert not (path / "a.json").exists()
    assert (run / "model.pkl").exists()


def test_a_folder_of_ones_own_must_hold_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"found 'thesis\.tex' in it"):
            place(tmp_path, tmp_path / "run", overwrite=overwrite).check()


def test_an_unfinished_job_may_go_on_beside_its_first_results(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    (tmp_path / "a.partial").mkdir()
    place(tmp_path, tmp_path / "run").check()
    with place(tmp_path, tmp_path / "run", overwrite=True).hold():
        assert not (tmp_path / "a.partial").exists()
