"""The training log, one writer a format, with the keys and formats of OpenAI Baselines' logger."""

import contextlib
import csv
import io
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeAlias

import numpy as np
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from fl_saliency.base import Closing, atomic_path
from fl_saliency.logs.textfile import open_to_append, whole_lines

__all__ = ["CsvWriter", "Logger", "TableWriter", "TensorBoardWriter", "Writer"]

Value: TypeAlias = float | np.floating[Any] | np.integer[Any]

_WIDEST = 23


class Writer(Protocol):
    """One format of the log."""

    def write(self, row: Mapping[str, Value], step: int) -> None:
        """Write one row of the log and flush it; `step` is the number of the update, from 1."""

    def close(self) -> None:
        """Close the file."""


class TableWriter:
    """The human-readable table of log.txt: keys sorted, one boxed block a row.

    Floats are shown with 3 digits and float32 scalars in full, as Baselines does.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`, and close it in the end."""
        self._stream = stream

    def note(self, text: str) -> None:
        """Write one line of text."""
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def write(self, row: Mapping[str, Value], step: int) -> None:
        """Write `row` as a boxed block."""
        cells = [(_clip(key), _clip(_shown(value))) for key, value in sorted(row.items())]
        if not cells:
            return
        key_width = max(len(key) for key, _ in cells)
        value_width = max(len(value) for _, value in cells)
        rule = "-" * (key_width + value_width + 7)
        lines = [f"| {key:<{key_width}} | {value:<{value_width}} |" for key, value in cells]
        self.note("\n".join([rule, *lines, rule]))

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def _shown(value: Value) -> str:
    return f"{value:<8.3g}" if isinstance(value, float) else str(value)


def _clip(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


class CsvWriter:
    """progress.csv: one line a row, columns sorted by key; a key that comes later adds a column.

    An existing file is continued under its own header. A new column stands at the end, and is
    empty in the lines before it (the file is rewritten for that, atomically).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = whole_lines(path) if path.exists() else []
        self._columns: list[str] = next(csv.reader(lines[:1]), [])
        self._file = open_to_append(path)

    def write(self, row: Mapping[str, Value], step: int) -> None:
        """Append `row`; a column that it lacks is left empty."""
        surplus = sorted(row.keys() - set(self._columns))
        if surplus:
            self._add_columns(surplus)
        self._file.write(_csv_line(str(row.get(key, "")) for key in self._columns))
        self._file.flush()

    def _add_columns(self, surplus: list[str]) -> None:
        self._columns += surplus
        self._file.close()
        lines = [line + "," * len(surplus) for line in whole_lines(self._path)[1:]]
        header = _csv_line(self._columns)
        with atomic_path(self._path) as partial:
            partial.write_text(header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
        self._file = open_to_append(self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _csv_line(fields: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(fields)
    return buffer.getvalue()


class TensorBoardWriter:
    """A TensorBoard event file of scalars, one event a row, written without TensorFlow.

    tensorboard's own EventFileWriter opens its file through TensorFlow, so only its record
    format and its protocol buffers are used.
    """

    def __init__(self, directory: Path, *, first_step: int = 1) -> None:
        """Start a new event file in `directory`, which is made if missing.

        A run that goes on with `first_step` tells a TensorBoard that is watching to forget what it
        has seen from that step on.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.path = _event_path(directory)
        self._file = self.path.open("xb")
        self._records = RecordWriter(self._file)
        self._write(event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2"))
        if first_step > 1:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._write(event_pb2.Event(wall_time=time.time(), step=first_step, session_log=start))

    def write(self, row: Mapping[str, Value], step: int) -> None:
        """Append `row` as one event at `step`, tags in the order of its keys."""
        values = [
            summary_pb2.Summary.Value(tag=key, simple_value=float(value))
            for key, value in row.items()
        ]
        summary = summary_pb2.Summary(value=values)
        self._write(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def _write(self, event: Any) -> None:
        self._records.write(event.SerializeToString())
        self._records.flush()

    def close(self) -> None:
        """Close the file."""
        self._records.close()


def _event_path(directory: Path) -> Path:
    """A new name of the form that TensorBoard looks for; files of one run sort by their start."""
    stem = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
    taken = sum(1 for _ in directory.glob(f"{stem}.*"))
    return directory / f"{stem}.{taken}"


class Logger(Closing):
    """The log of a training run: log.txt and progress.csv in `directory`, and TensorBoard's file.

    A context manager. Every row is on disk when `write` returns. Existing text files are
    continued, and TensorBoard gets a further event file.
    """

    def __init__(
        self, directory: Path, tb_directory: Path | None = None, *, first_step: int = 1
    ) -> None:
        """Open the files for rows from `first_step` on."""
        with contextlib.ExitStack() as stack:
            self._writers: list[Writer] = []
            for writer in _open_writers(directory, tb_directory, first_step):
                stack.callback(writer.close)
                self._writers.append(writer)
            self._closing = stack.pop_all()

    def write(self, row: Mapping[str, Value], step: int) -> None:
        """Write one row to every format; `step` is the number of the update, from 1."""
        for writer in self._writers:
            writer.write(row, step)

    def close(self) -> None:
        """Close every file."""
        self._closing.close()


def _open_writers(directory: Path, tb_directory: Path | None, first_step: int) -> Iterator[Writer]:
    table = TableWriter(open_to_append(directory / "log.txt"))
    yield table
    table.note(
        f"Logging to {directory}" if first_step == 1 else f"Going on with update {first_step}"
    )
    yield CsvWriter(directory / "progress.csv")
    if tb_directory is not None:
        yield TensorBoardWriter(tb_directory, first_step=first_step)
