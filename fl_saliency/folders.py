"""Folders that jobs write to: checked at the door, held by one job at a time, never overwritten."""

import contextlib
import fcntl
import getpass
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from fl_saliency.errors import InputError

__all__ = [
    "LOCK",
    "ResultsPlace",
    "check_output_dir",
    "check_same_job",
    "hold",
    "lock_owner",
    "prepare_output_dir",
]

LOCK = ".lock"
"""Name of the file by which a job holds a folder."""
_LONGEST = 65536


def check_output_dir(path: Path, *, keep: Iterable[str] = (), hint: str = "") -> None:
    """Raise `InputError` unless `path` is new, or a folder with nothing but the names in `keep`.

    A lock is no content. `hint` ends the message: what else the user can do.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"--output-dir {path}: expected a folder, found a file")
    try:
        found = sorted(item.name for item in path.iterdir()) if path.exists() else []
    except OSError as error:
        raise InputError(f"--output-dir {path}: cannot read it ({error.strerror})") from error
    surplus = [name for name in found if name not in {LOCK, *keep}]
    if surplus:
        raise InputError(
            f"--output-dir {path}: expected a new or empty folder, found {surplus[0]!r} in it{hint}"
        )


def check_same_job(folder: Path, before: Any, now: Mapping[str, Any]) -> None:
    """Raise `InputError` unless what an unfinished job in `folder` was told is what it is told now.

    Both are JSON types, `before` as it was read; the error names the first setting that differs.
    """
    if difference := _difference(before, now):
        raise InputError(
            f"{folder}: an unfinished job with other settings ({difference}); "
            "add --overwrite to begin anew, or give another --output-dir"
        )


def _difference(before: Any, now: Mapping[str, Any]) -> str | None:
    if not isinstance(before, dict):
        return "they are not known"
    for name in sorted(before.keys() | now.keys()):
        if (was := before.get(name)) != (wanted := now.get(name)):
            if isinstance(was, dict) and isinstance(wanted, dict):
                return f"{name}: {_difference(was, wanted)}"
            return f"{name} {json.dumps(was)}, now {json.dumps(wanted)}"
    return None


def prepare_output_dir(path: Path) -> Path:
    """Make `path` a folder that can be written to, or raise `InputError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"--output-dir {path}: cannot write there ({error.strerror})") from error
    return path


class ResultsPlace:
    """Where a job puts its results: a folder of their own, or the run directory they are of."""

    def __init__(
        self, path: Path, *, run: Path, names: Iterable[str], partial: str, overwrite: bool
    ) -> None:
        """`names` are the files of the results, `partial` the folder of an unfinished job.

        Results that are there are only replaced if the user said `overwrite`.
        """
        self.path = path
        self.unfinished = path / partial
        self._names = tuple(names)
        self._is_own = path.resolve() != run.resolve()
        self._overwrite = overwrite

    def check(self) -> None:
        """Raise `InputError` if results cannot go there; writes nothing."""
        if self._is_own:
            check_output_dir(self.path, keep=(*self._names, self.unfinished.name))
        existing = [name for name in self._names if (self.path / name).exists()]
        # An unfinished job has its scores before its videos.
        if existing and not self._overwrite and not self.unfinished.exists():
            raise InputError(
                f"{self.path / existing[0]} exists; add --overwrite to replace the results, "
                "or give another --output-dir"
            )

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the folder; what is to be overwritten is removed."""
        self.check()
        with hold(self.path):
            self.check()  # again, now that nobody else can write there
            if self._overwrite:
                shutil.rmtree(self.unfinished, ignore_errors=True)
                for name in self._names:
                    (self.path / name).unlink(missing_ok=True)
            yield


@contextlib.contextmanager
def hold(path: Path) -> Iterator[Path]:
    """Make folder `path` and hold it for this job; InputError if another job does, naming it.

    The hold ends with the process, however that ends (flock); its file is removed at the end, and
    the folder with it if it was made here and stayed empty.
    """
    is_new = not path.exists()
    prepare_output_dir(path)
    file = _locked(path / LOCK)
    try:
        file.truncate(0)
        file.write(json.dumps(_owner()) + "\n")
        file.flush()
        yield path
    finally:
        (path / LOCK).unlink(missing_ok=True)  # while it is held: nobody else can hold this file
        file.close()
        if is_new:  # a job that failed before it wrote anything leaves nothing
            with contextlib.suppress(OSError):
                path.rmdir()


def _locked(path: Path) -> TextIO:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = _described(file.read())
            file.close()
            raise InputError(
                f"{path.parent}: another job is at work in this folder: {owner}"
            ) from error
        except OSError:  # a file system without locks: two jobs in one folder go unnoticed there
            return file
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # its owner removed it between our opening and locking it


def _owner() -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": _user(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": " ".join(sys.argv),
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())


def _described(text: str) -> str:
    try:
        owner = json.loads(text)
        return (
            f"process {owner['pid']} of {owner['user']} on {owner['host']} "
            f"since {owner['since']} ({owner['command'][:200]})"
        )
    except (ValueError, TypeError, KeyError):
        return "a process that has not told its name"


def _without_waiting(name: str, flags: int) -> int:
    """Open a file that may be a pipe without a writer, for which opening would wait."""
    return os.open(name, flags | os.O_NONBLOCK)


def lock_owner(path: Path) -> str | None:
    """Who holds folder `path` now, or None."""
    try:
        with open(path / LOCK, encoding="utf-8", opener=_without_waiting) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _described(file.read(_LONGEST))
    except OSError:
        return None
    return None
