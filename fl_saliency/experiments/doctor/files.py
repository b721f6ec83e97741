"""What a directory may hold, and how any part of it can be opened: size, kind, snapshots."""

import json
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from fl_saliency.checkpoints.snapshots import (
    Snapshot,
    find_leftovers,
    find_snapshots,
    read_snapshot,
)
from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.doctor.report import Report

__all__ = [
    "COMPARISON_FILES",
    "GAZE_FILES",
    "GAZE_PARTIAL",
    "LABORATORY_FILES",
    "MAX_BYTES",
    "RUN_FILES",
    "checked",
    "examine_snapshots",
    "names_in",
    "read_json",
    "require",
]

RUN_FILES = ("config.json", "model.pkl", "checkpoints")

# As `fls benchmark` names them: experiments may not import atari_head and cli, a test compares.
GAZE_PARTIAL = "saliency.partial"
GAZE_FILES = ("saliency.pkl", "saliency.json", "saliency.csv", "saliency.png")
COMPARISON_FILES = ("saliency_methods.png", "saliency_frames.png")
"""Further files of a gaze score of several methods."""
LABORATORY_FILES = {
    "maps.json": ("maps.npz", "states.npz", "stills.png"),
    "intervention.json": ("intervention.npz", "intervention.png"),
    "sanity.json": (
        "sanity.html",
        "examples.png",
        "randomisation.png",
        "insertion_deletion.png",
        "zeroing.png",
        "agreement.png",
    ),
}
"""Record of `fls saliency`, `intervene` and `sanity` -> what lies beside it; a test compares."""

MAX_BYTES = 1 << 30
"""Largest log, picture or table that is read, in bytes."""


def checked(path: Path, *, limit: int | None = MAX_BYTES) -> Path:
    """`path`, if that is a file of a size that may be read: a pipe or a device would never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(f"{path}: expected a file, found a folder or a device")
    if limit is not None and status.st_size > limit:
        raise FileFormatError(f"{path}: {status.st_size} bytes, more than the {limit} read")
    return path


def names_in(folder: Path) -> list[str]:
    """The names in `folder`, sorted; none if it is no folder."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def require(report: Report, names: Iterable[str]) -> None:
    """A finding for each of `names` that the directory lacks."""
    for name in names:
        if name not in report.names:
            report.bad(name, "missing")


def read_json(path: Path) -> dict[str, Any]:
    """The object in strict JSON file `path`."""
    try:
        text = checked(path).read_text(encoding="utf-8")
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not strict JSON ({error})") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{path}: expected an object")
    return value


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} in it")


def examine_snapshots(report: Report, folder: str) -> list[Snapshot]:
    """The whole snapshots in `folder`, the newest first; a finding for each damaged one."""
    whole = []
    with report.reading(folder) as place:
        for path in find_snapshots(place):
            with report.reading(f"{folder}/{path.name}"):
                try:
                    whole.append(read_snapshot(path))
                except FileFormatError:
                    if not report.at_work or path.exists():  # its writer drops the older ones
                        raise
        if not report.at_work:
            for path in find_leftovers(place):
                report.note(f"{folder}/{path.name}", "left by a job that was killed; harmless")
    return whole
