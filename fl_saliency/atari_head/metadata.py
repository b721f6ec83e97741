"""Reads meta_data.csv, the list of Atari-HEAD's trials, in the forms of both records."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fl_saliency.atari_head.archives import content_kind, describe_content
from fl_saliency.atari_head.games import GAMES, find_game, split_highscore
from fl_saliency.errors import FileFormatError, InputError

__all__ = ["MetaRow", "read_metadata"]

FILE_NAME = "meta_data.csv"

MAX_BYTES = 2**24
"""Largest list, in bytes; the data set's own have some 10 kB."""

_FORMS: tuple[dict[str, str], ...] = (
    {
        "game": "GameName",
        "number": "trial_id",
        "frames": "total_frame",
        "subject": "subject_id",
        "load_trial": "load_trial",
        "fps": "fps",
    },
    {"game": "Game", "number": "TrialNumber", "frames": "NumberOfFrames", "subject": "SubjectId"},
)
"""Record 3451402's column names and record 2603190's; the first three tell which form it is."""


@dataclass(frozen=True, kw_only=True)
class MetaRow:
    """What meta_data.csv tells of one trial; None where it tells nothing."""

    number: int
    game: str
    """Canonical name, "ms_pacman"."""
    highscore: bool
    """Whether it is one of the best player's trials."""
    num_frames: int | None
    subject: str | None
    load_trial: int | None
    """The trial that this one continues; 0 for none."""
    fps: int | None


def read_metadata(directory: Path) -> list[MetaRow]:
    """The trials that meta_data.csv of `directory` lists, in its order.

    A row without a game or a number is left out. Raises InputError if the folder or the file is
    missing, FileFormatError if the file is another.
    """
    path = directory / FILE_NAME
    if not directory.is_dir():
        problem = "it is a file" if directory.exists() else "there is no such folder"
        raise InputError(f"Atari-HEAD folder {directory}: {problem}")
    if not path.is_file():
        below = sorted(directory.glob(f"*/{FILE_NAME}"))
        hint = f"; did you mean {below[0].parent}?" if below else ""
        raise InputError(f"Atari-HEAD folder {directory}: it holds no {FILE_NAME}{hint}")
    rows = csv.DictReader(io.StringIO(_text(path), newline=""), skipinitialspace=True)
    try:
        form = _form(path, [name.strip() for name in rows.fieldnames or ()])
        return [row for row in _meta_rows(rows, form) if row is not None]
    except csv.Error as error:
        raise FileFormatError(f"{path}: cannot be read as CSV ({error})") from error


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FileFormatError(f"{path}: {size} bytes, more than the {MAX_BYTES} of a list")
        data = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror})") from error
    if content_kind(data[:512]) != "unknown":
        raise FileFormatError(f"{path}: expected CSV, found {describe_content(data[:512])}")
    return data.decode("utf-8-sig", errors="replace")


def _form(path: Path, names: list[str]) -> dict[str, str]:
    for form in _FORMS:
        if {form["game"], form["number"], form["frames"]} <= set(names):
            return form
    wanted = " or ".join(", ".join(list(form.values())[:3]) for form in _FORMS)
    raise FileFormatError(f"{path}: expected the columns {wanted}; found {', '.join(names)[:200]}")


def _meta_rows(
    rows: Iterator[Mapping[str | None, str | list[str] | None]], form: Mapping[str, str]
) -> Iterator[MetaRow | None]:
    for row in rows:
        cells = {
            key.strip(): value.strip()
            for key, value in row.items()
            if isinstance(key, str) and isinstance(value, str)
        }
        yield _meta_row({field: cells.get(name, "") for field, name in form.items()})


def _meta_row(cells: Mapping[str, str]) -> MetaRow | None:
    number = _whole(cells["number"])
    base, highscore = split_highscore(cells["game"])
    if number is None or not base:
        return None
    return MetaRow(
        number=number,
        game=find_game(base, GAMES) or base.lower(),
        highscore=highscore,
        num_frames=_whole(cells["frames"]),
        subject=cells.get("subject") or None,
        load_trial=_whole(cells.get("load_trial", "")),
        fps=_whole(cells.get("fps", "")),
    )


def _whole(cell: str) -> int | None:
    """12, "12" and "12.0" (as pandas writes a column with gaps) are 12; anything else is None."""
    try:
        value = float(cell)
        return int(value) if value >= 0 and value == int(value) else None
    except (ValueError, OverflowError):
        return None
