"""Readers of training logs, ours and the original's: monitor files, progress.csv, TensorBoard.

Every reader raises `FileFormatError` with file and line for whatever is not in the format. An
unfinished last line or record is none: a running or killed job leaves one, and it is left out.
"""

import csv
import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from fl_saliency.errors import FileFormatError
from fl_saliency.logs.monitor import parse_header
from fl_saliency.logs.textfile import whole_lines

__all__ = [
    "MonitorFile",
    "event_steps",
    "monitor_files",
    "read_monitor",
    "read_monitors",
    "read_progress",
    "read_tensorboard",
]


@dataclass(frozen=True, kw_only=True)
class MonitorFile:
    """One monitor file."""

    t_start: float
    """Unix time in seconds from which `t` counts."""
    env_id: str
    """Name of the game's env; empty where the header has none."""
    episodes: pd.DataFrame
    """A row per game: `r` raw whole-game return, `l` agent steps (int), `t` seconds."""


def read_monitor(path: Path) -> MonitorFile:
    """The games in monitor file `path`; columns beside r, l and t are left out."""
    lines = whole_lines(path)
    if not lines:
        raise FileFormatError(f"{path}: empty, expected a monitor header")
    t_start, env_id = parse_header(path, lines[0])
    columns = _fields(path, 2, lines[1]) if len(lines) > 1 else ["r", "l", "t"]
    missing = [name for name in ("r", "l", "t") if name not in columns]
    if missing or len(set(columns)) != len(columns):
        raise FileFormatError(
            f"{path}, line 2: expected the columns r,l,t, found {lines[1][:60]!r}"
        )
    rows = [_game(path, n, columns, line) for n, line in enumerate(lines[2:], start=3)]
    episodes = pd.DataFrame(rows, columns=["r", "l", "t"])
    return MonitorFile(
        t_start=t_start,
        env_id=env_id,
        episodes=episodes.astype({"r": "float64", "l": "int64", "t": "float64"}),
    )


def _game(path: Path, number: int, columns: list[str], line: str) -> tuple[float, int, float]:
    row = dict(zip(columns, _row(path, number, columns, line), strict=True))
    r, length, t = (_number(path, number, row[name]) for name in ("r", "l", "t"))
    if not (math.isfinite(r) and math.isfinite(t) and 0 <= length < 2**53 and length % 1 == 0):
        raise FileFormatError(
            f"{path}, line {number}: expected r,l,t of a game, found {line[:60]!r}"
        )
    return r, int(length), t


def monitor_files(directory: Path) -> list[Path]:
    """The monitor files in `directory`, in the order of their env's number.

    Raises `FileFormatError` if there are none.
    """
    found = [item for item in directory.glob("*monitor.csv") if not item.name.startswith(".")]
    if not found:
        raise FileFormatError(f"{directory}: no *.monitor.csv files in it")
    return sorted(found, key=lambda item: [int(n) for n in re.findall(r"\d+", item.name)])


def read_monitors(paths: Sequence[Path]) -> pd.DataFrame:
    """The games of several monitor files in the order in which they ended.

    Columns: `env` (index into `paths`), `r`, `l`, `t` (seconds since the earliest start) and
    `steps`, agent steps of all envs together in finished games so far (1 step is 4 emulator frames
    where the frame skip is 4).
    """
    if not paths:
        raise FileFormatError("no monitor files given")
    files = [read_monitor(path) for path in paths]
    begin = min(file.t_start for file in files)
    parts = [
        file.episodes.assign(env=env, t=file.episodes["t"] + (file.t_start - begin))
        for env, file in enumerate(files)
    ]
    games = pd.concat(parts, ignore_index=True).sort_values(["t", "env"], kind="stable")
    games["steps"] = games["l"].cumsum()
    return games[["env", "r", "l", "t", "steps"]].reset_index(drop=True)


def read_progress(path: Path) -> pd.DataFrame:
    """progress.csv: a row per logged update, a float64 column per key, NaN where it is empty."""
    lines = whole_lines(path)
    if not lines:
        raise FileFormatError(f"{path}: empty, expected a line of column names")
    columns = _fields(path, 1, lines[0])
    if len(set(columns)) != len(columns) or "" in columns:
        raise FileFormatError(f"{path}, line 1: expected distinct column names")
    rows = [
        [_number(path, n, text) if text else math.nan for text in _row(path, n, columns, line)]
        for n, line in enumerate(lines[1:], start=2)
    ]
    return pd.DataFrame(rows, columns=columns, dtype="float64")


def _row(path: Path, number: int, columns: list[str], line: str) -> list[str]:
    fields = _fields(path, number, line)
    if len(fields) != len(columns):
        raise FileFormatError(
            f"{path}, line {number}: expected {len(columns)} values, found {len(fields)}"
        )
    return fields


def _fields(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {number}: {error}") from error


def _number(path: Path, number: int, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise FileFormatError(
            f"{path}, line {number}: expected a number, found {text[:40]!r}"
        ) from error


def read_tensorboard(source: Path) -> pd.DataFrame:
    """The scalars of an event file, or of all event files in a folder, in the order of their names.

    A row per step (the index, rising), a float64 column per tag in the order of appearance, and
    `wall_time`, Unix seconds. Where a later file starts again at an earlier step, as after a
    resume, it replaces what came before from that step on.
    """
    files = sorted(source.glob("events.out.tfevents.*")) if source.is_dir() else [source]
    if not files:
        raise FileFormatError(f"{source}: no events.out.tfevents.* files in it")
    rows: dict[int, dict[str, float]] = {}
    for file in files:
        fresh = _scalars(file)
        first = min(fresh, default=None)
        kept = {step: row for step, row in rows.items() if first is None or step < first}
        rows = kept | fresh
    table = pd.DataFrame.from_dict(rows, orient="index", dtype="float64").sort_index()
    return table.rename_axis("step")


def _scalars(path: Path) -> dict[int, dict[str, float]]:
    rows: dict[int, dict[str, float]] = {}
    for number, record in enumerate(_records(path)):
        event = _event(path, number, record)
        values = [item for item in event.summary.value if item.HasField("simple_value")]
        if values:
            row = rows.setdefault(event.step, {"wall_time": event.wall_time})
            row.update((item.tag, item.simple_value) for item in values)
    return rows


def event_steps(path: Path) -> tuple[list[int], bool]:
    """The step of every row of scalars in event file `path`, as they come; is its tail torn?

    Unlike `read_tensorboard` it keeps steps that come twice. The tail is torn if the last record
    is unfinished.
    """
    steps, size = [], 0
    for number, record in enumerate(_records(path)):
        size += len(record) + 16  # its length and two checksums
        event = _event(path, number, record)
        if any(value.HasField("simple_value") for value in event.summary.value):
            steps.append(int(event.step))
    return steps, size < path.stat().st_size


def _event(path: Path, number: int, record: bytes) -> Any:
    try:
        return event_pb2.Event.FromString(record)
    except DecodeError as error:
        raise FileFormatError(f"{path}, record {number}: not a TensorBoard event") from error


def _records(path: Path) -> Iterator[bytes]:
    """The records of a TFRecord file: length, its checksum, data, its checksum."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path}: cannot read it ({reason})") from error
    start, number = 0, 0
    while start + 12 <= len(content):
        length, check = struct.unpack_from("<QI", content, start)
        if masked_crc32c(content[start : start + 8]) != check:
            raise FileFormatError(f"{path}, record {number}: damaged, or not an event file")
        end = start + 12 + length
        if end + 4 > len(content):
            return
        if masked_crc32c(content[start + 12 : end]) != struct.unpack_from("<I", content, end)[0]:
            raise FileFormatError(f"{path}, record {number}: damaged")
        yield content[start + 12 : end]
        start, number = end + 4, number + 1
