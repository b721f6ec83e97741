"""Keeps a trial's frames as the PNG files they came as, and decodes them one at a time."""

import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np

from fl_saliency.atari_head.archives import TRIAL_LIMITS, iter_files
from fl_saliency.atari_head.labels import frame_number
from fl_saliency.base import UInt8Array
from fl_saliency.errors import FileFormatError

__all__ = ["HEIGHT", "WIDTH", "FolderStore", "FrameStore", "SpoolStore", "decode_png"]

HEIGHT, WIDTH = 210, 160
"""Size of an Atari frame in pixels."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class FrameStore(Protocol):
    """Random access to the PNG files of a trial."""

    numbers: list[int]
    """Frame numbers, sorted."""
    foreign: int
    """PNG files that are no frame of this trial."""

    def png(self, number: int) -> bytes:
        """The file of frame `number`."""

    def close(self) -> None:
        """Free what it holds."""


class SpoolStore:
    """The frames of an archive, whose members come in any order, in one temporary file.

    A trial's PNG files are some 20 MB; memory holds an offset for each.
    """

    def __init__(self, path: Path, prefix: str, *, container: Path | None = None) -> None:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115
        self._places: dict[int, tuple[int, int]] = {}
        self.foreign = 0
        shown = path if container is None else container / path
        try:
            for name, data in iter_files(path, TRIAL_LIMITS, container=container):
                self._add(name, data, prefix, shown)
        except BaseException:
            self._spool.close()
            raise
        self._spool.flush()
        self.numbers = sorted(self._places)

    def _add(self, name: str, data: bytes, prefix: str, shown: Path) -> None:
        if not _is_png(name):
            return
        number = frame_number(Path(name).stem, prefix)
        if number is None:
            self.foreign += 1
            return
        if number in self._places:
            raise FileFormatError(f"{shown}: frame {number} is in it twice, as {name!r}")
        if problem := png_problem(data):
            raise FileFormatError(f"{shown}: member {name!r} {problem}")
        self._places[number] = (self._spool.tell(), len(data))
        self._spool.write(data)

    def png(self, number: int) -> bytes:
        """The file of frame `number`; safe to call from several threads."""
        offset, size = self._places[number]
        return os.pread(self._spool.fileno(), size, offset)

    def close(self) -> None:
        """Delete the temporary file."""
        self._spool.close()


class FolderStore:
    """The frames of an archive that was unpacked into a folder."""

    def __init__(self, path: Path, prefix: str) -> None:
        self._files: dict[int, Path] = {}
        self.foreign = 0
        for file in _png_files(path):
            number = frame_number(file.stem, prefix)
            if number is None:
                self.foreign += 1
            elif number in self._files:
                raise FileFormatError(f"{path}: frame {number} is in it twice, as {file.name!r}")
            else:
                self._files[number] = file
        self.numbers = sorted(self._files)

    def png(self, number: int) -> bytes:
        """The file of frame `number`; raises FileFormatError for a damaged one."""
        file = self._files[number]
        try:
            if (size := file.stat().st_size) > TRIAL_LIMITS.member_bytes:
                raise FileFormatError(
                    f"{file}: has {size} bytes, more than {TRIAL_LIMITS.member_bytes}"
                )
            data = file.read_bytes()
        except OSError as error:
            raise FileFormatError(f"{file}: cannot be read ({error.strerror})") from error
        if problem := png_problem(data):
            raise FileFormatError(f"{file}: {problem}")
        return data

    def close(self) -> None:
        """Nothing to free."""


def _is_png(name: str) -> bool:
    base = name.rsplit("/", 1)[-1]
    return base.lower().endswith(".png") and not base.startswith(".")


def _png_files(folder: Path) -> Iterator[Path]:
    """The PNG files in `folder` and, as `tar` may have made one, in its folders."""
    try:
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                yield from (file for file in sorted(path.iterdir()) if _is_png(file.name))
            elif _is_png(path.name):
                yield path
    except OSError as error:
        raise FileFormatError(f"{folder}: cannot be read ({error.strerror})") from error


def png_problem(data: bytes) -> str | None:
    """What is wrong with a frame's PNG file, to follow its name; None if its checksums hold."""
    if not data.startswith(_SIGNATURE):
        return "is no PNG file"
    offset, kind = len(_SIGNATURE), b""
    with suppress(struct.error):
        while kind != b"IEND":
            size, kind = struct.unpack_from(">I4s", data, offset)
            end = offset + 8 + size
            if struct.unpack_from(">I", data, end)[0] != zlib.crc32(data[offset + 4 : end]):
                return "is a damaged PNG file"
            if kind == b"IHDR":
                width, height = struct.unpack_from(">II", data, offset + 8)
                if (height, width) != (HEIGHT, WIDTH):
                    return f"is {width}x{height} pixels, expected {WIDTH}x{HEIGHT}"
            offset = end + 4
        return None
    return "is a truncated PNG file"


def decode_png(data: bytes) -> UInt8Array:
    """A PNG file -> uint8 [210, 160, 3], RGB; raises FileFormatError if it cannot be decoded."""
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None or image.shape != (HEIGHT, WIDTH, 3):
        raise FileFormatError("the PNG file cannot be decoded")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
