"""The one place that opens model files of others: restricted, bounded, one clear error each."""

import bz2
import lzma
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

from fl_saliency.checkpoints.pickles import RefusedPickleError, read_plain_pickle
from fl_saliency.errors import FileFormatError

__all__ = ["MAX_BYTES", "load_foreign"]

MAX_BYTES = 1 << 30
"""Largest file, and largest content of a compressed one, in bytes; our largest model has 25 MB."""

_LZMA_MEMORY = 1 << 28
_NOT_MODELS = (
    (b"version https://git-lfs", "a git-LFS pointer, not the model itself; run 'git lfs pull'"),
    (b"<!doctype", "an HTML page, not a model; the download went wrong"),
    (b"<html", "an HTML page, not a model; the download went wrong"),
    (b"<?xml", "an XML page, not a model; the download went wrong"),
    (b"pk\x03\x04", "a zip archive (PyTorch, Keras or .npz?), not a joblib file"),
    (b"\x89hdf", "an HDF5 file, not a joblib file"),
    (b"zf", "written by joblib older than 0.10, which is not supported"),
)


def load_foreign(path: Path) -> object:
    """The object in a file of joblib (0.10 or later, compressed or not) or of pickle.

    It may hold dict, OrderedDict (read as dict), list, tuple, str, bytes, numbers, bool, None and
    NumPy arrays and scalars of numbers; nothing in the file is ever executed or imported.
    Raises `FileFormatError` for anything else, for a damaged file and for one over `MAX_BYTES`.
    """
    content = _decompressed(path, _read(path))
    if content[:1] != b"\x80":
        raise FileFormatError(f"{path}: not a model file (expected a joblib file, binary pickle)")
    try:
        return read_plain_pickle(content)
    except RefusedPickleError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileFormatError(f"{path}: a folder, expected a model file")
        if not stat.S_ISREG(status.st_mode):
            raise FileFormatError(f"{path}: not a regular file, expected a model file")
        if status.st_size > MAX_BYTES:
            raise FileFormatError(
                f"{path}: {status.st_size} bytes, more than the {MAX_BYTES} that a model may have"
            )
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path}: cannot read the model file ({reason})") from error
    if not content:
        raise FileFormatError(f"{path}: empty, expected a model file")
    return content


def _unzlib(content: bytes, limit: int) -> tuple[bytes, bool]:
    reader = zlib.decompressobj(zlib.MAX_WBITS | 32)  # zlib or gzip, by its header
    return reader.decompress(content, limit), reader.eof


def _unbz2(content: bytes, limit: int) -> tuple[bytes, bool]:
    reader = bz2.BZ2Decompressor()
    return reader.decompress(content, limit), reader.eof


def _unlzma(content: bytes, limit: int) -> tuple[bytes, bool]:
    reader = lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)
    return reader.decompress(content, limit), reader.eof


_COMPRESSIONS: tuple[tuple[bytes, Callable[[bytes, int], tuple[bytes, bool]]], ...] = (
    (b"x", _unzlib),
    (b"\x1f\x8b", _unzlib),
    (b"BZ", _unbz2),
    (b"\xfd7zXZ", _unlzma),
    (b"]\x00", _unlzma),
)


def _decompressed(path: Path, content: bytes) -> bytes:
    head = content[:64].lstrip().lower()
    for prefix, what in _NOT_MODELS:
        if head.startswith(prefix):
            raise FileFormatError(f"{path}: {what}")
    for prefix, decompress in _COMPRESSIONS:
        if content.startswith(prefix):
            return _bounded(path, content, decompress)
    return content


def _bounded(
    path: Path, content: bytes, decompress: Callable[[bytes, int], tuple[bytes, bool]]
) -> bytes:
    try:
        plain, whole = decompress(content, MAX_BYTES + 1)
    except (zlib.error, OSError, EOFError, lzma.LZMAError) as error:
        raise FileFormatError(f"{path}: not a model file, or a damaged one ({error})") from error
    if len(plain) > MAX_BYTES:
        raise FileFormatError(
            f"{path}: unpacks to more than the {MAX_BYTES} bytes that a model may have"
        )
    if not whole:
        raise FileFormatError(f"{path}: truncated: its compressed data ends early")
    return plain
