"""Reads a trial's label file: what a person did and where they looked, frame by frame.

The format is Atari-HEAD's (Zhang et al. 2020): frame_id, episode_id, score, duration(ms),
unclipped_reward, action, then x0, y0, x1, y1, ... to the end of the line; any of them may be null.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from fl_saliency.errors import FileFormatError

__all__ = ["FrameLabel", "Labels", "frame_number", "read_labels"]

COLUMNS = ("frame_id", "episode_id", "score", "duration(ms)", "unclipped_reward", "action")
"""The columns before the gaze, in the order of a file without a header."""

MAX_LINE = 2**22
"""Longest line, in bytes: thousands of samples fit many times over."""

MAX_MALFORMED_SHARE = 0.05
"""A file with a larger share of unreadable rows is refused: it is no label file."""

_NULLS = frozenset({"", "null", "none", "nan"})


@dataclass(frozen=True, kw_only=True)
class FrameLabel:
    """One row; None stands for the file's null."""

    action: int | None
    """ALE action, 0..17."""
    duration: float | None
    """How long the frame was shown, in milliseconds."""
    reward: float | None
    """Raw reward of the emulator."""
    episode: int | None
    """Which game of the trial it belongs to."""
    score: float | None
    """The score so far."""
    gaze: npt.NDArray[np.float64]
    """Gaze samples float64 [K, 2], (x, y) in frame pixels from the top left, off screen too."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """A label file: its rows by frame number, and what was odd about it."""

    rows: dict[int, FrameLabel]
    """In the order of the file; of two rows with one frame id, the first."""
    header: bool
    """Whether the file opens with column names."""
    duplicates: int
    """Further rows of a frame that had one."""
    foreign: int
    """Rows whose frame id is not one of this trial."""
    malformed: int
    """Rows that could not be read."""
    null_samples: int
    """Null samples among others in a row."""


class _BadRowError(ValueError):
    """One row that is no label."""


def frame_number(frame_id: str, prefix: str) -> int | None:
    """The n of the frame id "<prefix>_<n>"; None for the id of another recording."""
    match = re.fullmatch(r"(.+)_(\d{1,9})", frame_id, flags=re.ASCII)
    return int(match[2]) if match and match[1] == prefix else None


def read_labels(stream: IO[bytes], *, shown: Path, prefix: str) -> Labels:
    """Read the label file `stream`, keeping the rows of the recording `prefix` ("RZ_5037271").

    Raises FileFormatError, naming the file as `shown`, when it is not a label file: it holds no
    row, or too many that cannot be read. `MAX_MALFORMED_SHARE` of bad rows are dropped and counted.
    """
    lines = _lines(stream, shown)
    first = next(lines, None)
    if first is None:
        raise FileFormatError(f"{shown}: expected frame labels, found an empty file")
    header = first[1].split(",")[0].strip().lower() == "frame_id"
    order = _column_order(first[1], shown) if header else tuple(range(len(COLUMNS)))
    tally = _Tally(prefix, order)
    if not header:
        tally.add(*first)
    for number, line in lines:
        tally.add(number, line)
    return tally.finish(shown, header=header)


def _lines(stream: IO[bytes], shown: Path) -> Iterator[tuple[int, str]]:
    """(line number, text) of the lines that are not blank."""
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        if len(line) >= MAX_LINE:
            raise FileFormatError(
                f"{shown}, line {number}: longer than {MAX_LINE} bytes, no row of labels"
            )
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").strip()
        if text:
            yield number, text


def _column_order(header: str, shown: Path) -> tuple[int, ...]:
    """Where each of COLUMNS stands; the gaze must be the last column."""
    names = [name.strip().lower() for name in header.split(",")]
    missing = [name for name in COLUMNS if name not in names]
    if missing or len(names) > len(COLUMNS) + 1:
        odd = f"lacks the column {missing[0]!r}" if missing else f"has {len(names)} columns"
        raise FileFormatError(f"{shown}: the header of the labels {odd}")
    if len(names) > len(COLUMNS) and names[-1] in COLUMNS:
        raise FileFormatError(f"{shown}: the gaze is not the last column of the labels")
    return tuple(names.index(name) for name in COLUMNS)


class _Tally:
    """Collects rows and counts the odd ones."""

    def __init__(self, prefix: str, order: tuple[int, ...]) -> None:
        self._prefix = prefix
        self._order = order
        self._rows: dict[int, FrameLabel] = {}
        self._first_bad = ""
        self._read = self._duplicates = self._foreign = self._malformed = self._nulls = 0

    def add(self, line_number: int, line: str) -> None:
        self._read += 1
        try:
            frame_id, label, nulls = _parse(line, self._order)
        except _BadRowError as error:
            self._malformed += 1
            self._first_bad = self._first_bad or f"line {line_number}: {error}"
            return
        number = frame_number(frame_id, self._prefix)
        if number is None:
            self._foreign += 1
        elif number in self._rows:
            self._duplicates += 1
        else:
            self._rows[number] = label
            self._nulls += nulls

    def finish(self, shown: Path, *, header: bool) -> Labels:
        if self._malformed > MAX_MALFORMED_SHARE * self._read:
            raise FileFormatError(
                f"{shown}: {self._malformed} of {self._read} rows are no labels; {self._first_bad}"
            )
        if not self._read:
            raise FileFormatError(f"{shown}: expected frame labels, found only a header")
        return Labels(
            rows=self._rows,
            header=header,
            duplicates=self._duplicates,
            foreign=self._foreign,
            malformed=self._malformed,
            null_samples=self._nulls,
        )


def _parse(line: str, order: tuple[int, ...]) -> tuple[str, FrameLabel, int]:
    """(frame id, label, null samples) of one row."""
    fields = line.split(",")
    if len(fields) < len(COLUMNS):
        raise _BadRowError(f"{len(fields)} fields, expected {len(COLUMNS)} and the gaze")
    frame_id, episode, score, duration, reward, action = (fields[i].strip() for i in order)
    if not frame_id:
        raise _BadRowError("no frame id")
    gaze, nulls = _gaze(fields[len(COLUMNS) :])
    label = FrameLabel(
        action=_whole(action),
        duration=_number(duration),
        reward=_number(reward),
        episode=_whole(episode),
        score=_number(score),
        gaze=gaze,
    )
    return frame_id, label, nulls


def _number(field: str) -> float | None:
    if field.lower() in _NULLS:
        return None
    value = _float(field)
    if not np.isfinite(value):
        raise _BadRowError(f"{field!r} is not a finite number")
    return value


def _whole(field: str) -> int | None:
    value = _number(field)
    if value is not None and value != int(value):
        raise _BadRowError(f"{field!r} is not a whole number")
    return None if value is None else int(value)


def _sample(field: str) -> float:
    return np.nan if field.lower() in _NULLS else _float(field)


def _float(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        raise _BadRowError(f"{field[:20]!r} is not a number") from None


def _gaze(fields: Sequence[str]) -> tuple[npt.NDArray[np.float64], int]:
    """Samples float64 [K, 2] and how many more were null (not counted in a row of only nulls)."""
    end = next((i for i in range(len(fields), 0, -1) if fields[i - 1].strip()), 0)  # ",,,"
    try:
        values = list(map(float, fields[:end]))  # nearly every row; they hold millions of numbers
    except ValueError:
        values = [_sample(field.strip()) for field in fields[:end]]
    if np.isnan(values).all():
        return np.empty((0, 2)), 0
    if len(values) % 2:
        raise _BadRowError(f"{len(values)} gaze numbers, expected pairs of x and y")
    samples = np.array(values, dtype=np.float64).reshape(-1, 2)
    if np.isinf(samples).any():
        raise _BadRowError("a gaze number is infinite")
    known = ~np.isnan(samples).any(axis=1)
    return samples[known], int(np.count_nonzero(~known))
