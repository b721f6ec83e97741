"""Findings about the parts of a directory, and how whatever fails becomes one."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fl_saliency.errors import FlsError

__all__ = ["Finding", "Report", "Status", "count", "is_close"]

Status = Literal["ok", "note", "bad"]
_RANK: dict[Status, int] = {"ok": 0, "note": 1, "bad": 2}
_LONGEST = 300
"""Characters of what is said of a file: a stranger's may have megabytes in a message."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one file or folder."""

    part: str
    """Its path, relative to the directory that was examined (`.`)."""
    status: Status
    """`ok`; `note`: worth knowing, nothing is damaged; `bad`: damaged, missing or contradictory."""
    text: str


@dataclass(kw_only=True)
class Report:
    """Collects what is said of each part of a directory."""

    directory: Path
    """The absolute path: no part of it can be taken for an address."""
    shown: Path
    """The path as it was given."""
    names: frozenset[str]
    at_work: bool = False
    """Whether a job is writing there now: what is unfinished is none of our business then."""
    _said: dict[str, dict[str, Status]] = field(default_factory=lambda: {".": {}})

    def _add(self, part: str, status: Status, text: str) -> None:
        self._said.setdefault(part, {}).setdefault(text[:_LONGEST], status)

    def ok(self, part: str, text: str) -> None:
        """`part` is as it should be."""
        self._add(part, "ok", text)

    def note(self, part: str, text: str) -> None:
        """Something that one should know of `part`."""
        self._add(part, "note", text)

    def bad(self, part: str, text: str) -> None:
        """`part` is not as it should be."""
        self._add(part, "bad", text)

    def is_bad(self, *parts: str) -> bool:
        """Whether anything bad is known of one of `parts`."""
        return any("bad" in self._said.get(part, {}).values() for part in parts)

    @contextlib.contextmanager
    def reading(self, part: str) -> Iterator[Path]:
        """The path of `part`; whatever fails while it is read is a finding about it."""
        path = self.directory / part
        try:
            yield path
        # Damage and malice fail in every way there is, and the other parts are still to be read.
        except Exception as error:
            self.bad(part, _reason(error, path))

    def findings(self) -> list[Finding]:
        """One finding per part: its worst status, and all that was said but mere praise."""
        found = []
        for part, said in self._said.items():
            worst = max(said.values(), key=_RANK.__getitem__, default=None)
            if worst is not None:
                texts = [text for text, status in said.items() if status != "ok" or worst == "ok"]
                found.append(Finding(part=part, status=worst, text="; ".join(texts)))
        return found


def _reason(error: Exception, path: Path) -> str:
    """What `error` says of the file at `path`, without its name."""
    if isinstance(error, FlsError):
        return str(error).removeprefix(str(path)).lstrip(",:/ ")
    if isinstance(error, FileNotFoundError):
        return "missing"
    if isinstance(error, OSError):
        return f"cannot read it ({error.strerror or error})"
    if isinstance(error, MemoryError):
        return "more than the memory holds"
    return f"cannot be read ({type(error).__name__}: {error})"


def count(number: int, noun: str) -> str:
    """`number` with its noun, in the plural where it must be."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_close(found: Any, expected: float | None) -> bool:
    """Whether `found`, of whatever type, is the number `expected` (None: is None)."""
    if expected is None or type(found) not in (int, float):
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
