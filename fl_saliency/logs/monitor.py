"""Monitor files: the whole-game returns of each training env, in OpenAI Baselines' format."""

import contextlib
import json
from pathlib import Path
from typing import TextIO

from fl_saliency.base import Closing, EpisodeRecord
from fl_saliency.errors import FileFormatError
from fl_saliency.logs.textfile import open_to_append, whole_lines

__all__ = ["MonitorWriter", "monitor_path", "parse_header"]


def monitor_path(directory: Path, env: int) -> Path:
    """The monitor file of env number `env` in `directory`: 0.3.monitor.csv for env 3."""
    return directory / f"0.{env}.monitor.csv"


class MonitorWriter(Closing):
    """One file per env: a JSON header (`t_start`, `env_id`), then a line `r,l,t` per game.

    A context manager. A file with content is continued: its header stays, and its times go on
    counting from the start that the header names.
    """

    def __init__(self, directory: Path, *, env_id: str, num_envs: int, t_start: float) -> None:
        """Open (or continue) a file per env; `t_start` is Unix time in seconds of the envs."""
        self._offsets: list[float] = []
        self._files: list[TextIO] = []
        with contextlib.ExitStack() as stack:
            for env in range(num_envs):
                path = monitor_path(directory, env)
                file = stack.enter_context(open_to_append(path))
                start = _start(path, file, env_id=env_id, t_start=t_start)
                self._files.append(file)
                self._offsets.append(t_start - start)
            self._closing = stack.pop_all()

    def write(self, record: EpisodeRecord) -> None:
        """Append one finished game to its env's file and flush it."""
        seconds = record.time + self._offsets[record.env]
        file = self._files[record.env]
        # Baselines rounds both to 6 places, and its csv module ends lines with \r\n.
        reward = round(float(record.reward), 6)
        file.write(f"{reward},{record.length},{round(float(seconds), 6)}\r\n")
        file.flush()

    def close(self) -> None:
        """Close every file."""
        self._closing.close()


def _start(path: Path, file: TextIO, *, env_id: str, t_start: float) -> float:
    """The start time in the header of `path`; a header is written if the file is empty."""
    lines = whole_lines(path)
    if lines:
        return parse_header(path, lines[0])[0]
    # json.dumps of a float is its shortest exact form, which is what the reader needs.
    header = json.dumps({"t_start": float(t_start), "env_id": env_id})
    file.write(f"# {header} \nr,l,t\r\n")
    file.flush()
    return t_start


def parse_header(path: Path, line: str) -> tuple[float, str]:
    """(t_start, env_id) of `line`, the first of monitor file `path`: `#{...}` or `# {...}`."""
    try:
        if not line.startswith("#"):
            raise ValueError(line)
        header = json.loads(line.removeprefix("#"))
        start = float(header["t_start"])
        env_id = header.get("env_id")
        if not abs(start) < float("inf"):
            raise ValueError(start)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise FileFormatError(
            f'{path}, line 1: expected a monitor header #{{"t_start": seconds, "env_id": name}}'
        ) from error
    return start, "" if env_id is None else str(env_id)
