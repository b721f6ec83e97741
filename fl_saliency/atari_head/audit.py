"""What is in a trial and what is odd about it: the audit table of `fls data audit`."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fl_saliency.atari_head.frames import HEIGHT, WIDTH
from fl_saliency.atari_head.labels import Labels

__all__ = ["COLUMNS", "TrialAudit", "count_trial", "to_csv", "to_json", "to_text"]

LOW_SAMPLES = 10
"""Frames with fewer gaze samples count as low, as the data set's own low_sample_rate does."""


@dataclass(frozen=True, kw_only=True)
class TrialAudit:
    """One trial's counts; all None if it is broken, and `problem` says why."""

    trial: int
    name: str
    game: str
    expected: int | None = None
    """Frames that meta_data.csv announces."""
    frames: int | None = None
    """Frames in the archive."""
    first: int | None = None
    """Lowest frame number."""
    last: int | None = None
    """Highest frame number."""
    missing: int | None = None
    """Frame numbers between the two that have no frame."""
    labels: int | None = None
    """Frames that the label file labels."""
    header: bool | None = None
    """Whether the label file opens with column names."""
    samples: int | None = None
    """Gaze samples."""
    null_gaze: int | None = None
    """Labelled frames without any sample."""
    null_samples: int | None = None
    """Null samples beside others in a row."""
    low_samples: int | None = None
    """Labelled frames with fewer than 10 samples, those with none included."""
    out_of_bounds: int | None = None
    """Samples off the screen; they are never moved on to it."""
    labels_without_frame: int | None = None
    frames_without_label: int | None = None
    duplicates: int | None = None
    """Further rows of a frame that had one; the first row counts."""
    foreign: int | None = None
    """Rows and PNG files whose frame id is not of this trial; they are ignored."""
    malformed: int | None = None
    """Rows that could not be read; they are ignored."""
    problem: str | None = None
    """Why the trial cannot be used; None if it can."""


COLUMNS = tuple(field.name for field in dataclasses.fields(TrialAudit))
"""The table's columns, in order."""


def count_trial(
    *,
    trial: int,
    name: str,
    game: str,
    expected: int | None,
    frames: Sequence[int],
    foreign_frames: int,
    labels: Labels,
) -> TrialAudit:
    """Audit a readable trial with the sorted, non-empty frame numbers `frames`."""
    present = set(frames)
    per_row = np.array([len(row.gaze) for row in labels.rows.values()], dtype=np.int64)
    return TrialAudit(
        trial=trial,
        name=name,
        game=game,
        expected=expected,
        frames=len(frames),
        first=frames[0],
        last=frames[-1],
        missing=frames[-1] - frames[0] + 1 - len(frames),
        labels=len(labels.rows),
        header=labels.header,
        samples=int(per_row.sum()),
        null_gaze=int(np.count_nonzero(per_row == 0)),
        null_samples=labels.null_samples,
        low_samples=int(np.count_nonzero(per_row < LOW_SAMPLES)),
        out_of_bounds=_out_of_bounds(labels),
        labels_without_frame=len(labels.rows.keys() - present),
        frames_without_label=len(present - labels.rows.keys()),
        duplicates=labels.duplicates,
        foreign=labels.foreign + foreign_frames,
        malformed=labels.malformed,
    )


def _out_of_bounds(labels: Labels) -> int:
    gaze = [row.gaze for row in labels.rows.values()]
    if not gaze:
        return 0
    samples = np.concatenate(gaze)
    inside = ((samples >= 0) & (samples < (WIDTH, HEIGHT))).all(axis=1)
    return int(np.count_nonzero(~inside))


_HEADINGS = {
    "labels_without_frame": "no frame",
    "frames_without_label": "no label",
    "out_of_bounds": "off screen",
    "null_gaze": "null gaze",
    "null_samples": "null samples",
    "low_samples": "<10 samples",
}


def to_text(audits: Iterable[TrialAudit]) -> str:
    """The table in aligned columns; the problems of broken trials follow it, one a line."""
    rows = list(audits)
    names = [name for name in COLUMNS if name not in ("name", "problem")]
    cells = [[_HEADINGS.get(name, name) for name in names]]
    cells += [[_cell(getattr(row, name)) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.rjust, line, widths)).rstrip() for line in cells]
    return "\n".join(lines + [f"broken: {row.problem}" for row in rows if row.problem])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def to_json(audits: Iterable[TrialAudit]) -> str:
    """A JSON list of objects with all the columns."""
    return json.dumps([dataclasses.asdict(audit) for audit in audits], indent=4)


def to_csv(audits: Iterable[TrialAudit]) -> str:
    """CSV with a header; empty cells stand for None."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(audit) for audit in audits)
    return out.getvalue().rstrip("\n")
