"""Text files that grow by whole lines: opened for appending, read back without a torn last line."""

from pathlib import Path
from typing import TextIO

from fl_saliency.errors import FileFormatError

__all__ = ["open_to_append", "whole_lines"]

_BLOCK = 65536


def open_to_append(path: Path) -> TextIO:
    """Open `path` for appending (UTF-8, newlines as written), made with its folders if missing.

    A last line without its newline, left by a process that was killed, is removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.truncate(_end_of_lines(file.seek(0, 2), path))
    return path.open("a", encoding="utf-8", newline="")


def _end_of_lines(size: int, path: Path) -> int:
    """Offset behind the last newline of `path`, found from its end."""
    with path.open("rb") as file:
        while size > 0:
            start = max(0, size - _BLOCK)
            file.seek(start)
            found = file.read(size - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            size = start
    return 0


def whole_lines(path: Path) -> list[str]:
    r"""The lines of `path` without their ends (\n or \r\n).

    A last line that has no end is still being written, or its writer was killed: it is left out.
    Raises `FileFormatError` for a file that is missing, not readable or not text.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file (byte {error.start})") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path}: cannot read it ({reason})") from error
    return [line.removesuffix("\r") for line in text.split("\n")[:-1]]
