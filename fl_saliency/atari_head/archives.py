"""The one place that opens archives: tar (plain, gzip, bzip2) and zip, streamed, never unpacked."""

import bz2
import contextlib
import gzip
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast

from fl_saliency.errors import FileFormatError

__all__ = [
    "GAME_LIMITS",
    "TRIAL_LIMITS",
    "Limits",
    "content_kind",
    "describe_content",
    "iter_files",
    "open_binary",
    "zip_names",
]

_BLOCK = 512  # of a tar


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an honest archive stays below; a larger one is refused before it fills the memory."""

    members: int
    """Most members, folders included."""
    member_bytes: int
    """Largest size of one member, in bytes."""
    total_bytes: int
    """Largest size of all that the archive holds, in bytes."""


TRIAL_LIMITS = Limits(members=200_000, member_bytes=2**20, total_bytes=2**30)
"""Of a trial's archive: real ones hold below 20 000 frames of 0.6 to 1.5 kB."""

GAME_LIMITS = Limits(members=5_000, member_bytes=2**33, total_bytes=2**36)
"""Of a game's zip: real ones hold below 30 trials of some 20 MB."""

_KINDS = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"BZh": "bzip2",
    b"\x1f\x8b": "gzip",
    b"version https://git-lfs": "lfs",
}

_DESCRIPTIONS = {
    "zip": "a zip archive",
    "bzip2": "a bzip2 file",
    "gzip": "a gzip file",
    "tar": "a tar archive",
    "lfs": "a Git LFS pointer",
    "html": "an HTML or XML page",
    "empty": "an empty file",
    "unknown": "something else",
}

_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What the standard library raises on damaged archives."""

_DAMAGE_WHILE_READING = (zipfile.BadZipFile, zlib.error, EOFError, OSError)
"""The part of it that can only come from the file, where others' code reads the stream."""


def content_kind(head: bytes) -> str:
    """What a file is by its first 512 bytes: zip, bzip2, gzip, tar, html, lfs, empty or unknown."""
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    if head[257:262] == b"ustar":
        return "tar"
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|\?xml|head|body|title)", head, re.IGNORECASE):
        return "html"
    return "unknown" if head else "empty"


def describe_content(head: bytes) -> str:
    """`content_kind` in words, for a message: "expected a zip archive, found an empty file"."""
    return _DESCRIPTIONS[content_kind(head)]


@contextlib.contextmanager
def open_binary(path: Path, *, container: Path | None = None) -> Iterator[IO[bytes]]:
    """`path` as a binary stream; with `container`, a zip, the member of that name inside it.

    Raises FileFormatError where the zip is damaged or lacks the member, or the file is unreadable.
    """
    shown = path if container is None else container / path
    with contextlib.ExitStack() as stack:
        with _damage_named(shown):
            if container is None:
                stream: IO[bytes] = stack.enter_context(path.open("rb"))
            else:
                bundle = stack.enter_context(zipfile.ZipFile(container))
                stream = stack.enter_context(bundle.open(path.as_posix()))
        with _damage_named(shown, _DAMAGE_WHILE_READING):
            yield stream


def zip_names(path: Path, limits: Limits) -> list[str]:
    """The names of the files in the zip `path`, in its order, all members checked."""
    with _damage_named(path), zipfile.ZipFile(path) as bundle:
        return [info.filename for info in _checked_zip(bundle, _Gate(path, limits))]


def iter_files(
    path: Path, limits: Limits, *, container: Path | None = None
) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file of an archive, in the archive's order, one in memory at a time.

    The kind is told by content, not by suffix. Raises FileFormatError, naming the member, for
    absolute and parent paths, links, devices, names that occur twice and anything above `limits`,
    and for an archive that is damaged, truncated or none at all.
    """
    shown = path if container is None else container / path
    gate = _Gate(shown, limits)
    with _damage_named(shown), open_binary(path, container=container) as raw:
        head = raw.read(_BLOCK)
        raw.seek(0)
        kind = content_kind(head)
        if kind == "zip":
            yield from _zip_files(raw, gate)
        elif kind in ("bzip2", "gzip", "tar"):
            yield from _tar_files(raw, kind, gate)
        else:
            raise FileFormatError(
                f"{shown}: expected a tar or zip archive, found {_DESCRIPTIONS[kind]}"
            )


@contextlib.contextmanager
def _damage_named(shown: Path, damage: tuple[type[Exception], ...] = _DAMAGE) -> Iterator[None]:
    """Turn whatever the standard library says of a damaged archive into one line."""
    try:
        yield
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{shown}: cannot be read ({error.strerror or error})") from error
    except damage as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileFormatError(f"{shown}: damaged or truncated archive ({reason})") from error


class _Gate:
    """Lets members of one archive pass, one after the other, or names the one that may not."""

    def __init__(self, shown: Path, limits: Limits) -> None:
        self.limits = limits
        self._shown = shown
        self._seen: set[str] = set()
        self._total = 0

    def admit(self, name: str, size: int, *, plain: bool) -> None:
        """`plain` tells that the member is a file or folder, no link, device or sparse file."""
        key = name.rstrip("/")
        if not plain:
            self.refuse(name, "is neither a plain file nor a folder")
        if _leaves_folder(name):
            self.refuse(name, "leads out of the archive's folder")
        if key in self._seen:
            self.refuse(name, "occurs twice")
        self._seen.add(key)
        self._total += size
        self._check_limits(name, size)

    def _check_limits(self, name: str, size: int) -> None:
        if not 0 <= size <= self.limits.member_bytes:
            self.refuse(name, f"has {size} bytes, more than {self.limits.member_bytes}")
        if self._total > self.limits.total_bytes:
            self.refuse(name, f"makes the archive larger than {self.limits.total_bytes} bytes")
        if len(self._seen) > self.limits.members:
            self.refuse(name, f"is one more than {self.limits.members} members")

    def refuse(self, name: str, reason: str) -> None:
        raise FileFormatError(f"{self._shown}: member {name!r} {reason}")


def _leaves_folder(name: str) -> bool:
    parts = re.split(r"[/\\]", name)
    return "\0" in name or parts[0] == "" or ".." in parts or bool(re.match(r"[A-Za-z]:", name))


class _StrictHeader(tarfile.TarInfo):
    """A tar header; `tarfile` takes a damaged one for the archive's end, this one raises."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if len(buf) != _BLOCK:
            raise tarfile.ReadError("it ends without the end mark")
        if not any(buf):
            return super().frombuf(buf, encoding, errors)  # the end mark
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from error
        if header.size < 0:
            raise tarfile.ReadError(f"member {header.name!r} has a negative size")
        return header


class _Capped:
    """A stream that stops a decompression bomb: no more than `limit` bytes come out of it."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._left = limit

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise tarfile.ReadError("it unpacks to more than a trial can hold")
        return data


@contextlib.contextmanager
def _decompressed(raw: IO[bytes], kind: str) -> Iterator[IO[bytes]]:
    if kind == "tar":
        yield raw
        return
    opener: Any = bz2.BZ2File if kind == "bzip2" else gzip.GzipFile
    with opener(**{"filename" if kind == "bzip2" else "fileobj": raw}) as stream:
        yield cast(IO[bytes], stream)


def _tar_files(raw: IO[bytes], kind: str, gate: _Gate) -> Iterator[tuple[str, bytes]]:
    with _decompressed(raw, kind) as stream:
        capped = _Capped(stream, gate.limits.total_bytes)
        with tarfile.open(fileobj=cast(IO[bytes], capped), mode="r|", tarinfo=_StrictHeader) as tar:
            headers: list[tarfile.TarInfo] = cast(Any, tar).members
            while (info := tar.next()) is not None:
                headers.clear()  # else the headers of 20 000 frames stay in memory
                plain = info.isdir() or (info.isreg() and not info.issparse())
                gate.admit(info.name, info.size, plain=plain)
                if info.isreg():
                    yield info.name, _tar_content(tar, info)
        # What lies behind the end mark is read too: a cut there shows in no other way.
        while capped.read(2**16):
            pass


def _tar_content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(info)
    data = stream.read() if stream is not None else b""
    if len(data) != info.size:
        raise tarfile.ReadError(f"member {info.name!r} is cut short")
    return data


def _checked_zip(bundle: zipfile.ZipFile, gate: _Gate) -> Iterator[zipfile.ZipInfo]:
    for info in bundle.infolist():
        mode = info.external_attr >> 16
        plain = stat.S_IFMT(mode) in (0, stat.S_IFREG, stat.S_IFDIR)
        gate.admit(info.filename, info.file_size, plain=plain)
        if info.flag_bits & 1:
            gate.refuse(info.filename, "is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            gate.refuse(info.filename, f"is packed by unknown method {info.compress_type}")
        if not info.is_dir():
            yield info


def _zip_files(raw: IO[bytes], gate: _Gate) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(raw) as bundle:
        for info in _checked_zip(bundle, gate):
            yield info.filename, bundle.read(info)
