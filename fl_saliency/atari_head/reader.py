"""Finds and opens the trials of Atari-HEAD (Zhang et al. 2020), in the layouts of both records.

Record 2603190 is flat: `<trial>.tar.bz2`, `<trial>.txt` and meta_data.csv in one folder. Record
3451402 has meta_data.csv and one zip a game, which holds `<game>/` and `<game>/highscore/`. Zips
and archives are read as they are, or unpacked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from fl_saliency.atari_head.archives import GAME_LIMITS, open_binary, zip_names
from fl_saliency.atari_head.audit import TrialAudit, count_trial
from fl_saliency.atari_head.frames import FolderStore, FrameStore, SpoolStore, decode_png
from fl_saliency.atari_head.games import GAMES, canonical_game, find_game
from fl_saliency.atari_head.labels import FrameLabel, Labels, read_labels
from fl_saliency.atari_head.metadata import MetaRow, read_metadata
from fl_saliency.base import UInt8Array
from fl_saliency.errors import FileFormatError, FlsError, InputError

__all__ = [
    "Trial",
    "TrialError",
    "TrialRef",
    "audit_trials",
    "find_all_trials",
    "find_trials",
    "frame_prefix",
    "open_trial",
]

_TRIAL_NAME = re.compile(r"(?P<number>\d{1,9})_(?P<prefix>.+?_\d+)(?:_.*)?", re.ASCII)
_ARCHIVE_SUFFIXES = (".tar.bz2", ".tar.gz", ".tgz", ".tar", ".zip")


class TrialError(FlsError):
    """One trial cannot be used; the others may be."""


@dataclass(frozen=True, kw_only=True)
class TrialRef:
    """Where a trial is; nothing of it is read yet."""

    number: int
    name: str
    """Like "593_RZ_5037271_Aug-05-15-35-12"; the bare number for a trial without files."""
    game: str
    """Canonical name, like "ms_pacman"."""
    labels: Path | None
    """The label file, inside `container` if there is one; None if it is missing."""
    archive: Path | None
    """The frames' archive, or the folder that it was unpacked into; None if it is missing."""
    container: Path | None = None
    """The game's zip that holds both; None if they lie in the file system."""
    num_frames: int | None = None
    """Frames that meta_data.csv announces; None if it does not."""
    highscore: bool = False
    """Whether it is one of the best player's trials."""
    subject: str | None = None
    load_trial: int | None = None
    """The trial that this one continues; 0 for none."""
    fps: int | None = None

    @property
    def absent(self) -> bool:
        """Whether meta_data.csv lists it, but no file of it is there."""
        return self.labels is None and self.archive is None


class Trial:
    """An open trial: gaze and labels in memory, frames decoded one at a time.

    Use it as a context manager; frames and gaze are aligned by frame number, never by position.
    """

    def __init__(self, ref: TrialRef, store: FrameStore, labels: Labels) -> None:
        self.ref = ref
        self.frame_numbers: npt.NDArray[np.int64] = np.array(store.numbers, dtype=np.int64)
        """The frames that are there, int64 [N], sorted."""
        self.labels: Mapping[int, FrameLabel] = labels.rows
        """Labels by frame number, of frames that are missing too."""
        self.gaze: Mapping[int, npt.NDArray[np.float64]] = {
            number: row.gaze for number, row in labels.rows.items()
        }
        """Gaze samples float64 [K, 2], (x, y) in pixels, by frame number; K is 0 for null gaze."""
        self.audit: TrialAudit = count_trial(
            trial=ref.number,
            name=ref.name,
            game=ref.game,
            expected=ref.num_frames,
            frames=store.numbers,
            foreign_frames=store.foreign,
            labels=labels,
        )
        self._store = store

    def frames(self) -> Iterator[tuple[int, UInt8Array]]:
        """(number, uint8 [210, 160, 3] RGB) in the order of the numbers; may be called again.

        Raises TrialError at a frame that cannot be decoded.
        """
        for number in self._store.numbers:
            try:
                frame = decode_png(self._store.png(number))
            except FileFormatError as error:
                raise _trial_error(self.ref, f"frame {number}: {error}") from error
            yield number, frame

    def close(self) -> None:
        """Free the temporary file that holds the frames."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def open_trial(ref: TrialRef) -> Trial:
    """Open `ref`; raises TrialError, one line that names the trial, if it is broken.

    Broken is: no labels, no archive, a damaged, hostile or foreign file, no frame, or no label
    that belongs to a frame. What is merely odd is counted in the trial's `audit`.
    """
    if ref.labels is None or ref.archive is None:
        what = "files" if ref.absent else "label file" if ref.labels is None else "archive"
        raise _trial_error(ref, f"its {what} cannot be found")
    try:
        store = _open_store(ref, ref.archive)
    except FileFormatError as error:
        raise _trial_error(ref, str(error)) from error
    try:
        return Trial(ref, store, _checked_labels(ref, ref.labels, store))
    except FileFormatError as error:
        store.close()
        raise _trial_error(ref, str(error)) from error


def audit_trials(refs: Iterable[TrialRef], *, decode: bool = False) -> Iterator[TrialAudit]:
    """The audit of each trial that is there; a broken one's has a `problem`.

    With `decode`, every frame is decoded too.
    """
    for ref in refs:
        if ref.absent:
            continue
        try:
            with open_trial(ref) as trial:
                for _ in trial.frames() if decode else ():
                    pass
                yield trial.audit
        except TrialError as error:
            yield TrialAudit(
                trial=ref.number,
                name=ref.name,
                game=ref.game,
                expected=ref.num_frames,
                problem=str(error),
            )


def _trial_error(ref: TrialRef, problem: str) -> TrialError:
    return TrialError(f"trial {ref.name} ({ref.game}): {problem}")


def frame_prefix(ref: TrialRef) -> str:
    """What the names of a trial's frames begin with, before their number."""
    match = _TRIAL_NAME.fullmatch(ref.name)
    if match is None:
        raise FileFormatError("its name is not <number>_<recording>_<date>")
    return match["prefix"]


def _open_store(ref: TrialRef, archive: Path) -> FrameStore:
    if ref.container is None and archive.is_dir():
        store: FrameStore = FolderStore(archive, frame_prefix(ref))
    else:
        store = SpoolStore(archive, frame_prefix(ref), container=ref.container)
    if not store.numbers:
        store.close()
        raise FileFormatError(f"{archive}: holds no frame {frame_prefix(ref)}_<n>.png")
    return store


def _checked_labels(ref: TrialRef, path: Path, store: FrameStore) -> Labels:
    shown = path if ref.container is None else ref.container / path
    with open_binary(path, container=ref.container) as stream:
        labels = read_labels(stream, shown=shown, prefix=frame_prefix(ref))
    if labels.rows.keys().isdisjoint(store.numbers):
        raise FileFormatError(f"{shown}: none of its rows belongs to a frame of the archive")
    return labels


def find_trials(directory: Path, game: str) -> list[TrialRef]:
    """The trials of `game` (any spelling, or an env id) in `directory`, by number.

    Those that meta_data.csv lists without a file being there are among them, `absent`; so are
    those that lack one of their two files. Raises InputError if the folder or its meta_data.csv
    is missing, the game is unknown, or nothing of it is there.
    """
    rows = read_metadata(directory)
    name = canonical_game(game, sorted({*GAMES, *(row.game for row in rows)}))
    refs = _trials(directory, rows, name)
    if all(ref.absent for ref in refs):
        raise InputError(f"Atari-HEAD folder {directory}: it holds no trial of {name}")
    return refs


def find_all_trials(directory: Path) -> list[TrialRef]:
    """`find_trials` of every game of which there is any trial, by game and number."""
    rows = read_metadata(directory)
    games = sorted({*GAMES, *(row.game for row in rows)})
    each = [_trials(directory, rows, game) for game in games]
    refs = [ref for refs in each if not all(ref.absent for ref in refs) for ref in refs]
    if not refs:
        raise InputError(f"Atari-HEAD folder {directory}: it holds no trial")
    return refs


def _trials(directory: Path, rows: Iterable[MetaRow], game: str) -> list[TrialRef]:
    meta = {row.number: row for row in rows if row.game == game}
    found = _found_trials(directory, game, meta)
    seen = {ref.number for ref in found}
    refs = [_with_meta(ref, meta.get(ref.number)) for ref in found]
    refs += [_absent(row) for row in meta.values() if row.number not in seen]
    return sorted(refs, key=lambda ref: (ref.number, ref.name))


def _absent(row: MetaRow) -> TrialRef:
    ref = TrialRef(
        number=row.number, name=str(row.number), game=row.game, labels=None, archive=None
    )
    return _with_meta(ref, row)


def _with_meta(ref: TrialRef, row: MetaRow | None) -> TrialRef:
    if row is None:
        return ref
    return replace(
        ref,
        num_frames=row.num_frames,
        highscore=ref.highscore or row.highscore,
        subject=row.subject,
        load_trial=row.load_trial,
        fps=row.fps,
    )


def _found_trials(directory: Path, game: str, meta: Mapping[int, MetaRow]) -> list[TrialRef]:
    """The trials that have a file, unpacked ones before those of the same name in a zip."""
    found: dict[str, TrialRef] = {}
    for path in _files_on_disk(directory, game, meta):
        _note(found, path, game, None, path.relative_to(directory))
    on_disk = set(found)
    for container in sorted(_game_paths(directory, game)):
        if container.suffix.lower() == ".zip" and container.is_file():
            for member in map(Path, zip_names(container, GAME_LIMITS)):
                if _trial_name(member) not in on_disk:
                    _note(found, member, game, container, member)
    return list(found.values())


def _note(
    found: dict[str, TrialRef], path: Path, game: str, container: Path | None, within: Path
) -> None:
    """Enter a label file or an archive into `found`; an archive goes before its folder."""
    name = _trial_name(path)
    if name is None or any(part.startswith((".", "__")) for part in within.parts):
        return
    ref = found.get(name) or TrialRef(
        number=int(name.split("_")[0]),
        name=name,
        game=game,
        labels=None,
        archive=None,
        container=container,
        highscore="highscore" in within.parts,
    )
    if path.suffix.lower() == ".txt":
        ref = replace(ref, labels=ref.labels or path)
    elif ref.archive is None or (container is None and ref.archive.is_dir()):
        ref = replace(ref, archive=path)
    found[name] = ref


def _trial_name(path: Path) -> str | None:
    """The trial whose label file, archive or folder goes by this name; None for other files."""
    name = path.name
    for suffix in (".txt", *_ARCHIVE_SUFFIXES):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
            break
    return name if _TRIAL_NAME.fullmatch(name) else None


def _game_paths(directory: Path, game: str) -> list[Path]:
    """The folders and zips in `directory` that bear the game's name, in any spelling."""
    return [
        path
        for path in directory.iterdir()
        if find_game(path.name.removesuffix(".zip"), (game,)) and not path.name.startswith(".")
    ]


def _files_on_disk(directory: Path, game: str, meta: Mapping[int, MetaRow]) -> Iterator[Path]:
    """Files and folders of the game's trials: in the folder itself, as its number tells, or below
    the game's own."""
    for path in sorted(directory.iterdir()):
        name = _trial_name(path)
        if name is not None and int(name.split("_")[0]) in meta:
            yield path
    for folder in sorted(_game_paths(directory, game)):
        if folder.is_dir():
            yield from _walk(folder, depth=3)


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """What lies in `folder` and its folders, but for those that are trials (20 000 files each)."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and _trial_name(path) is None:
            if depth:
                yield from _walk(path, depth - 1)
        else:
            yield path
