"""A run directory: where each file of a training run is, and its config.json."""

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fl_saliency.base import write_json
from fl_saliency.checkpoints.snapshots import find_snapshots
from fl_saliency.errors import FileFormatError, InputError
from fl_saliency.folders import check_output_dir
from fl_saliency.logs.readers import monitor_files

__all__ = [
    "RunDir",
    "check_run_directory",
    "game_name",
    "read_config",
    "run_path",
    "write_config",
]

MAX_CONFIG_BYTES = 1 << 20
"""Largest config.json; ours have some 2000 bytes."""

_REQUIRED = ("env_name", "network")
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "env_name": (str, "a text"),
    "network": (str, "a text"),
    "train_seed": (int, "a whole number"),
    "num_timesteps": (int, "a whole number"),
    "protocol": (dict, "an object"),
    "versions": (dict, "an object"),
    "extra_import": (list, "a list"),
    "git_commit": ((str, type(None)), "a text or null"),
}


@dataclass(frozen=True)
class RunDir:
    """Paths of the files in run directory `path`; whether they exist is not asked."""

    path: Path

    @property
    def config(self) -> Path:
        """Every setting, as JSON."""
        return self.path / "config.json"

    @property
    def logs(self) -> Path:
        """Folder of monitor files, log.txt and progress.csv."""
        return self.path / "logs"

    @property
    def log(self) -> Path:
        """The log as a table for people."""
        return self.logs / "log.txt"

    @property
    def progress(self) -> Path:
        """The log as a table, a line per update."""
        return self.logs / "progress.csv"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard's event files."""
        return self.path / "tb"

    @property
    def model(self) -> Path:
        """The trained model, Baselines format."""
        return self.path / "model.pkl"

    @property
    def checkpoints(self) -> Path:
        """What an exact resume needs."""
        return self.path / "checkpoints"

    @property
    def curve(self) -> Path:
        """Picture of the learning curve."""
        return self.path / "curve.png"

    def monitors(self) -> list[Path]:
        """The monitor files that there are; `FileFormatError` if there is none."""
        return monitor_files(self.logs)


def game_name(env_name: str) -> str:
    """The game in an env id: Breakout for BreakoutNoFrameskip-v4 and for ALE/Breakout-v5."""
    base = env_name.rsplit("/", 1)[-1]
    return re.sub(r"(-ram)?(NoFrameskip|Deterministic)?-v\d+$", "", base) or env_name


def run_path(root: Path, env_name: str, network: str, train_seed: int) -> Path:
    """The usual place of a run: `root/Breakout.cnn_sparse_fls/3`."""
    return root / f"{game_name(env_name)}.{network}" / str(train_seed)


def write_config(directory: Path, config: Mapping[str, Any]) -> None:
    """Write `config` as `directory`/config.json: strict JSON, atomically."""
    write_json(RunDir(directory).config, dict(config))


def check_run_directory(path: Path, *, resume: bool) -> None:
    """Raise InputError unless a training run may begin in `path`, or with `resume` go on in it."""
    checkpoints = RunDir(path).checkpoints
    if resume and find_snapshots(checkpoints):
        return
    # What a run leaves that was killed before its first checkpoint may be begun again.
    keep = ("config.json", "checkpoints") if resume else ()
    has_run = checkpoints.exists()
    hint = "; add --resume to go on with the run in it" if has_run and not resume else ""
    check_output_dir(path, keep=keep, hint=hint)


def read_config(directory: Path) -> dict[str, Any]:
    """config.json of run directory `directory`, ours or of the published layout.

    `env_name` and `network` are there, and known keys are of their types; further keys are the
    writer's. Raises `InputError` where there is no run, `FileFormatError` where it is damaged.
    """
    path = RunDir(directory).config
    config = _load(directory, path)
    if not isinstance(config, dict):
        raise FileFormatError(f"{path}: expected an object, found {_kind(config)}")
    missing = [key for key in _REQUIRED if key not in config]
    if missing:
        raise FileFormatError(f"{path}: {' and '.join(map(repr, missing))} missing")
    for key, (kind, wanted) in _TYPES.items():
        value = config.get(key)
        if key in config and (not isinstance(value, kind) or isinstance(value, bool)):
            raise FileFormatError(f"{path}: {key!r} is {_kind(value)}, expected {wanted}")
    empty = [key for key in _REQUIRED if not config[key].strip()]
    if empty:
        raise FileFormatError(f"{path}: {empty[0]!r} is empty")
    return config


def _load(directory: Path, path: Path) -> Any:
    try:
        if not directory.is_dir():
            raise InputError(f"{directory}: no such run directory")
        _check_file(path)
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: not found; a run directory has it, with at least env_name and network"
        ) from error
    except json.JSONDecodeError as error:
        raise FileFormatError(
            f"{path}, line {error.lineno}: not valid JSON ({error.msg.lower()})"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "not JSON text"
        raise FileFormatError(f"{path}: cannot read it ({reason})") from error


def _check_file(path: Path) -> None:
    """A pipe would never end, and what is much longer than any config.json is none."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(f"{path}: expected a file, found a folder or a device")
    if status.st_size > MAX_CONFIG_BYTES:
        raise FileFormatError(
            f"{path}: {status.st_size} bytes, more than the {MAX_CONFIG_BYTES} that it may have"
        )


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")
