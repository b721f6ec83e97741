"""Snapshots: whole or not there, damage found, the older one kept, nothing in them runs."""

import hashlib
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.checkpoints.snapshots import (
    Snapshot,
    find_snapshots,
    read_newest,
    read_snapshot,
    remove_leftovers,
    write_snapshot,
)
from fl_saliency.errors import FileFormatError

FILES = ("arrays.safetensors", "state.json", "checksums.json")


def snapshot(index: int) -> Snapshot:
    arrays = {
        "weights/a:0": np.arange(6, dtype=np.float32).reshape(2, 3) / 7 + index,
        "scalar": np.array(0.1, np.float32),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "actions": np.zeros(0, np.uint8),
        "flags": np.array([True, False]),
    }
    return Snapshot(index=index, arrays=arrays, state={"rng": 2**127 + 1, "x": 0.1, "n": None})


def test_a_snapshot_comes_back_bit_for_bit(tmp_path: Path) -> None:
    written = snapshot(3)
    found = read_snapshot(write_snapshot(tmp_path, written))
    assert found.index == 3
    assert found.state == written.state
    assert found.arrays.keys() == written.arrays.keys()
    for name, array in written.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for index in (0, 7, 12, 100_000_000):
        write_snapshot(tmp_path, snapshot(index))
    assert [path.name for path in find_snapshots(tmp_path)] == ["100000000", "00000012"]
    assert len(list(tmp_path.iterdir())) == 2


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes(content[: len(content) // 2] if how == "cut" else content)
    if how == "missing":
        path.unlink()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
def test_damage_to_any_file_is_found_and_the_older_one_is_taken(
    name: str, how: str, tmp_path: Path
) -> None:
    write_snapshot(tmp_path, snapshot(1))
    newest = write_snapshot(tmp_path, snapshot(2))
    damage(newest / name, how)
    found, damaged = read_newest(tmp_path)
    assert found is not None
    assert found.index == 1
    assert len(damaged) == 1
    assert "00000002" in damaged[0]
    # Writing it again mends it.
    write_snapshot(tmp_path, snapshot(2))
    assert read_snapshot(newest).index == 2


@pytest.mark.parametrize("call", range(6))
def test_a_writer_that_fails_anywhere_leaves_the_last_one_and_nothing_half_written(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_snapshot(tmp_path, snapshot(1))
    calls = iter(range(100))
    fsync = os.fsync

    def full(handle: int) -> None:
        if next(calls) == call:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    if call < 5:  # three files, their folder, the folder above
        with pytest.raises(OSError, match="No space left"):
            write_snapshot(tmp_path, snapshot(2))
    else:
        write_snapshot(tmp_path, snapshot(2))
    found, damaged = read_newest(tmp_path)
    assert found is not None
    assert found.index == (1 if call < 4 else 2)
    assert not damaged
    assert not list(tmp_path.glob(".*"))


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    write_snapshot(tmp_path, snapshot(1))
    (tmp_path / ".unfinished-abc").mkdir()
    (tmp_path / ".unfinished-abc" / "state.json").write_text("{")
    assert [path.name for path in find_snapshots(tmp_path)] == ["00000001"]
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


def test_one_that_is_there_whole_is_left_as_it_is(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, snapshot(1))
    before = (path / "state.json").stat().st_mtime_ns
    write_snapshot(tmp_path, snapshot(1))
    assert (path / "state.json").stat().st_mtime_ns == before


def test_no_file_of_a_snapshot_is_a_pickle(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, snapshot(1))
    for name in FILES:
        assert not (path / name).read_bytes().startswith(b"\x80")


def forged(path: Path, **contents: bytes) -> None:
    """Give a snapshot other contents, and the checksums that go with them."""
    (path / "arrays.safetensors").write_bytes(contents["arrays"])
    (path / "state.json").write_bytes(contents["state"])
    digests = {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in FILES[:2]}
    (path / "checksums.json").write_text(json.dumps({"sha256": digests}))


def header(value: object) -> bytes:
    text = json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text


STATE = b'{"version": 1, "index": 1, "state": {}}'


@pytest.mark.parametrize(
    ("arrays", "state"),
    [
        (header({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}), STATE),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}) + b"1234", STATE),
        (struct.pack("<Q", 2**60), STATE),
        (b"", STATE),
        (header({}), b'{"version": 2, "index": 1, "state": {}}'),
        (header({}), b'{"version": 1, "index": 2, "state": {}}'),
        (header({}), b'{"version": 1, "index": 1, "state": []}'),
        (header({}), b"[" * 100_000),
        (header({}), b"\xff"),
    ],
)
def test_a_forged_snapshot_is_one_error(arrays: bytes, state: bytes, tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, snapshot(1))
    forged(path, arrays=arrays, state=state)
    with pytest.raises(FileFormatError, match="00000001"):
        read_snapshot(path)
