"""Downloads a game of Atari-HEAD from Zenodo, doi:10.5281/zenodo.3451402 (CC-BY-4.0)."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fl_saliency.atari_head.games import canonical_game, find_game
from fl_saliency.atari_head.metadata import FILE_NAME as META_DATA
from fl_saliency.atari_head.metadata import read_metadata
from fl_saliency.atari_head.transfer import RemoteFile, Transfer, check_url, has_content
from fl_saliency.errors import InputError, JobError

__all__ = ["BASE_URL", "RECORD", "download_game", "list_record"]

BASE_URL = "https://zenodo.org"
RECORD = 3451402
"""Version 4 of the data set, 20 games; 2603190 is the version that the paper used."""


def download_game(
    game: str,
    output_dir: Path,
    *,
    record: int = RECORD,
    base_url: str = BASE_URL,
    transfer: Transfer,
) -> list[Path]:
    """Download the files of `game` from a Zenodo record into `output_dir`; their paths.

    Files that are there and whole are not fetched again, interrupted ones are continued. Raises
    InputError for an unknown game or an `output_dir` that cannot serve, JobError, naming the
    file, for one that cannot be had.
    """
    name = canonical_game(game)
    check_url(base_url)
    _check_output_dir(output_dir)
    files = list_record(record, base_url=base_url, transfer=transfer)
    first = _common_files(files, record)
    zips = [file for file in files if _is_zip_of(file, name)]
    paths = _fetch([*first, *zips], output_dir, transfer)
    if not zips:
        trials = _flat_files(files, output_dir, name)
        if not trials:
            raise JobError(f"Zenodo record {record}: it holds no file of {name}")
        paths += _fetch(trials, output_dir, transfer)
    return paths


def list_record(record: int, *, base_url: str = BASE_URL, transfer: Transfer) -> list[RemoteFile]:
    """The files of a Zenodo record; raises JobError if it cannot be read."""
    base = check_url(base_url).rstrip("/")
    what = f"Zenodo record {record}"
    answer = transfer.json(f"{base}/api/records/{record}", what)
    try:
        entries = answer["files"]
        return [_remote_file(entry, f"{base}/api/records/{record}/files") for entry in entries]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobError(f"{what}: its list of files is not understood ({error!r})") from error


def _remote_file(entry: Mapping[str, Any], folder: str) -> RemoteFile:
    """One entry of the record; older answers call key and size filename and filesize."""
    name = str(entry["key"] if "key" in entry else entry["filename"])
    if not re.fullmatch(r"[^./\\\0][^/\\\0]*", name):
        raise ValueError(f"file name {name!r}")
    md5 = str(entry["checksum"]).removeprefix("md5:").lower()
    if not re.fullmatch(r"[0-9a-f]{32}", md5):
        raise ValueError(f"checksum of {name!r}")
    url = entry.get("links", {}).get("self") or f"{folder}/{quote(name)}/content"
    size = int(entry["size"] if "size" in entry else entry["filesize"])
    return RemoteFile(name=name, url=check_url(url), size=size, md5=md5)


def _check_output_dir(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"--output-dir {path}: expected a folder, found a file")


def _common_files(files: Iterable[RemoteFile], record: int) -> list[RemoteFile]:
    """The list of trials, the meaning of the actions and the data set's own text."""
    common = [
        file
        for file in files
        if file.name in (META_DATA, "action_enums.txt") or file.name.lower().startswith("readme")
    ]
    if META_DATA not in {file.name for file in common}:
        raise JobError(f"Zenodo record {record}: it holds no {META_DATA}, so it is no Atari-HEAD")
    return common


def _is_zip_of(file: RemoteFile, game: str) -> bool:
    stem, dot, suffix = file.name.rpartition(".")
    return bool(dot) and suffix.lower() == "zip" and find_game(stem, (game,)) is not None


def _flat_files(files: Iterable[RemoteFile], output_dir: Path, game: str) -> list[RemoteFile]:
    """Of the flat record, the trials whose numbers meta_data.csv gives to the game."""
    numbers = {str(row.number) for row in read_metadata(output_dir) if row.game == game}
    return [
        file
        for file in files
        if file.name.endswith((".txt", ".tar.bz2")) and file.name.split("_")[0] in numbers
    ]


def _fetch(files: Sequence[RemoteFile], output_dir: Path, transfer: Transfer) -> list[Path]:
    """Fetch those that are not there yet."""
    targets = {file: output_dir / file.name for file in files}
    wanted = [file for file, path in targets.items() if not _is_there(file, path)]
    _make_room(wanted, output_dir)
    for file in wanted:
        transfer.fetch(file, targets[file])
    return list(targets.values())


def _is_there(file: RemoteFile, path: Path) -> bool:
    if has_content(path, file):
        return True
    if path.exists():  # downloads never leave a file of this name that is not whole
        raise InputError(
            f"{path}: it is not the file of the Zenodo record (size or md5 differ); "
            "move it away, or choose another --output-dir"
        )
    return False


def _make_room(files: Iterable[RemoteFile], output_dir: Path) -> None:
    """Make the folder; raises InputError if it cannot be written or is too small for `files`."""
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output_dir):
            pass
        free = shutil.disk_usage(output_dir).free
    except OSError as error:
        raise InputError(
            f"--output-dir {output_dir}: cannot write there ({error.strerror})"
        ) from error
    parts = (output_dir / f"{file.name}.part" for file in files)
    needed = sum(file.size for file in files) - sum(p.stat().st_size for p in parts if p.exists())
    if needed > free:
        raise InputError(
            f"--output-dir {output_dir}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB free"
        )
