"""Snapshots of running jobs: folders of arrays and plain state, whole or not there at all.

A snapshot is written under a temporary name, synced to disk and renamed; it names the SHA-256 of
its files, so that damage is found. Nothing in it can run code: arrays are safetensors, the rest is
JSON.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fl_saliency.base import umask
from fl_saliency.errors import FileFormatError

__all__ = [
    "Snapshot",
    "find_leftovers",
    "find_snapshots",
    "read_newest",
    "read_snapshot",
    "remove_leftovers",
    "write_snapshot",
]

VERSION = 1
MAX_BYTES = 1 << 32
"""Largest file of a snapshot that is read, in bytes."""

_ARRAYS, _STATE, _CHECKSUMS = "arrays.safetensors", "state.json", "checksums.json"
_NAME = re.compile(r"\d{8,}")
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One moment of a job."""

    index: int
    """Its place among the job's snapshots: the number of updates, games or steps done."""
    arrays: Mapping[str, npt.NDArray[Any]]
    """Numeric arrays by name."""
    state: Mapping[str, Any]
    """The rest, in types that JSON has; NaN and infinity are not among them."""


def write_snapshot(folder: Path, snapshot: Snapshot, *, keep: int = 2) -> Path:
    """Write `snapshot` into `folder`, and remove all but the newest `keep`; returns its own folder.

    One that is there already, whole, under the same index is left as it is.
    """
    path = folder / f"{snapshot.index:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists() and not _damage(path):
        return path
    partial = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
    try:
        _fill(partial, snapshot)
        if path.exists():
            shutil.rmtree(path)
        partial.rename(path)
        _sync(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for old in find_snapshots(folder)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def _fill(path: Path, snapshot: Snapshot) -> None:
    path.chmod(0o777 & ~umask())
    plain = {name: np.ascontiguousarray(array) for name, array in snapshot.arrays.items()}
    state = {"version": VERSION, "index": snapshot.index, "state": snapshot.state}
    contents = {
        _ARRAYS: save({name: plain[name].reshape(snapshot.arrays[name].shape) for name in plain}),
        _STATE: json.dumps(state, allow_nan=False).encode(),
    }
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    contents[_CHECKSUMS] = json.dumps({"sha256": digests}, indent=4).encode()
    for name, content in contents.items():
        with (path / name).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    _sync(path)


def _sync(folder: Path) -> None:
    """Make the names in `folder` outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def find_snapshots(folder: Path) -> list[Path]:
    """The snapshots in `folder`, the newest first, whole or damaged."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def read_newest(folder: Path) -> tuple[Snapshot | None, list[str]]:
    """The newest whole snapshot in `folder`, and a line about each newer one that is damaged."""
    damaged: list[str] = []
    for path in find_snapshots(folder):
        try:
            return read_snapshot(path), damaged
        except FileFormatError as error:
            damaged.append(str(error))
    return None, damaged


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in folder `path`; FileFormatError if it is damaged, foreign or unreadable."""
    contents = _contents(path)
    if reason := _damage_of(contents):
        raise FileFormatError(f"{path}: damaged snapshot: {reason}")
    try:
        record = json.loads(contents[_STATE])
        if record["version"] != VERSION:
            raise FileFormatError(
                f"{path}: snapshot of version {record['version']!r}, expected {VERSION}"
            )
        index, state = record["index"], record["state"]
        arrays = load(contents[_ARRAYS])
    except (ValueError, TypeError, KeyError, RecursionError, SafetensorError) as error:
        raise FileFormatError(f"{path}: not a snapshot ({error})") from error
    if type(index) is not int or not isinstance(state, dict) or path.name != f"{index:08d}":
        raise FileFormatError(f"{path}: not a snapshot (its index or state is wrong)")
    return Snapshot(index=index, arrays=arrays, state=state)


def _damage(path: Path) -> str | None:
    try:
        return _damage_of(_contents(path))
    except FileFormatError as error:
        return str(error)


def _contents(path: Path) -> dict[str, bytes]:
    contents = {}
    for name in (_ARRAYS, _STATE, _CHECKSUMS):
        file = path / name
        try:
            if not file.is_file():
                raise FileFormatError(f"{path}: damaged snapshot: {name} is missing")
            if file.stat().st_size > MAX_BYTES:
                raise FileFormatError(f"{file}: more than the {MAX_BYTES} bytes it may have")
            contents[name] = file.read_bytes()
        except OSError as error:
            raise FileFormatError(f"{file}: cannot read it ({error.strerror})") from error
    return contents


def _damage_of(contents: Mapping[str, bytes]) -> str | None:
    """What is wrong with the files of a snapshot, if anything is."""
    try:
        digests = json.loads(contents[_CHECKSUMS])["sha256"]
        expected = {name: digests[name] for name in (_ARRAYS, _STATE)}
    except (ValueError, TypeError, KeyError, RecursionError):
        return f"{_CHECKSUMS} is damaged"
    for name, digest in expected.items():
        if hashlib.sha256(contents[name]).hexdigest() != digest:
            return f"the checksum of {name} is wrong"
    return None


def find_leftovers(folder: Path) -> list[Path]:
    """What a process that was killed while it wrote left in `folder`, sorted by name."""
    return sorted(folder.glob(f"{_UNFINISHED}*"))


def remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed while it wrote left in `folder`."""
    for path in find_leftovers(folder):
        shutil.rmtree(path, ignore_errors=True)
