"""How far each log file has got, so that a resumed run can cut them back to a checkpoint."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from fl_saliency.errors import FileFormatError

__all__ = ["cut_back", "log_sizes", "sync_logs"]

_PATTERNS = (
    "logs/log.txt",
    "logs/progress.csv",
    "logs/*.monitor.csv",
    "tb/events.out.tfevents.*",
)


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    """The log files of run directory `directory` by relative name; others are not touched."""
    for pattern in _PATTERNS:
        for path in sorted(directory.glob(pattern)):
            yield path.relative_to(directory).as_posix(), path


def log_sizes(directory: Path) -> dict[str, int]:
    """Bytes in every log file of run directory `directory`."""
    return {name: path.stat().st_size for name, path in _files(directory)}


def sync_logs(directory: Path) -> None:
    """Have every log file of run directory `directory` on disk."""
    for _, path in _files(directory):
        with path.open("rb") as file:
            os.fsync(file.fileno())


def cut_back(directory: Path, sizes: Mapping[str, int]) -> None:
    """Bring the log files of run directory `directory` back to `sizes`; a later one is removed.

    Raises FileFormatError, and changes nothing, if a file is missing or shorter than that.
    """
    found = dict(_files(directory))
    for name, size in sizes.items():
        if type(size) is not int or size < 0 or name not in found:
            raise FileFormatError(f"{directory / name}: the log file of the checkpoint is missing")
        if (present := found[name].stat().st_size) < size:
            raise FileFormatError(
                f"{directory / name}: {present} bytes, fewer than the {size} at the checkpoint"
            )
    for name, path in found.items():
        if name in sizes:
            os.truncate(path, sizes[name])
        else:
            path.unlink()
