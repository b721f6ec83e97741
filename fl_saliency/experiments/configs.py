"""Settings of the jobs: each dataclass is a command line and what config.json holds."""

import math
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from fl_saliency.agents.ppo2.config import MAX_ENVS, PPO2Config, count_updates
from fl_saliency.envs.protocol import Protocol, resolve_protocol
from fl_saliency.errors import FileFormatError, InputError
from fl_saliency.experiments.runs import RunDir, run_path
from fl_saliency.folders import ResultsPlace
from fl_saliency.seeding import check_seed

__all__ = [
    "PARTIAL",
    "RESULT_FILES",
    "EvaluationConfig",
    "ProtocolFlags",
    "TrainConfig",
    "config_notes",
    "environment_record",
    "unknown_keys",
]


RESULT_FILES = (
    "results.json",
    "eval.pkl",
    "results.png",
    "perception.mkv",
    "perception.mp4",
    "perception.png",
)
"""What an evaluation leaves."""
PARTIAL = "evaluation.partial"
"""Folder of an unfinished evaluation."""


@dataclass(frozen=True, kw_only=True)
class ProtocolFlags:
    """Departures from the env id's own protocol; None keeps what the id says."""

    frame_skip: int | None = None
    """Emulator frames that one action lasts."""
    noop_max: int | None = None
    """A game starts with 1 to this many no-op frames; 0 for none."""
    fire_reset: bool | None = None
    """Press FIRE at each start of a game or life, in games that have FIRE."""
    episodic_life: bool | None = None
    """A lost life ends the learner's episode."""
    clip_rewards: bool | None = None
    """The learner sees the sign of a reward; scores stay raw."""
    repeat_action_probability: float | None = None
    """Sticky actions: probability per frame that the action before is played instead."""
    full_action_set: bool | None = None
    """All 18 actions instead of the game's minimal set."""
    max_frames: int | None = None
    """Emulator frames after which a game is cut."""

    def overrides(self) -> dict[str, Any]:
        """The protocol fields that these flags set."""
        given = {field.name: getattr(self, field.name) for field in fields(ProtocolFlags)}
        return {name: value for name, value in given.items() if value is not None}

    def protocol(self, env_name: str) -> Protocol:
        """The protocol of `env_name` with these flags applied; InputError for wrong values."""
        return resolve_protocol(env_name, **self.overrides())


@dataclass(frozen=True, kw_only=True)
class TrainConfig(PPO2Config, ProtocolFlags):
    """Everything that a training run depends on; Baselines' defaults."""

    network: str = "cnn_sparse_fls"
    """Network; `fls networks` lists them."""
    env_name: str = "BreakoutNoFrameskip-v4"
    """Atari game: `<Game>NoFrameskip-v4` (Baselines' rules) or `ALE/<Game>-v5` (sticky actions)."""
    train_seed: int = 1
    """Seed of weights, action sampling, minibatches and games."""
    num_timesteps: int = 50_000_000
    """Agent steps over all envs together (1 step = 4 emulator frames)."""
    output_dir: Path | None = None
    """Run directory, new or empty; default runs/<Game>.<network>/<seed>."""
    resume: bool = False
    """Go on with the run in --output-dir after its newest checkpoint, with the settings in its
    config.json; begin if there is none."""
    checkpoint_minutes: float = 10.0
    """Minutes between checkpoints; a run that ends or is interrupted writes one in any case."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the convolutions; bfloat16 pays on CPUs and GPUs that have it."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""
    env_workers: int | None = None
    """Processes that play games beside this one; default one less than there are cores."""
    progress: bool = True
    """Progress bar (on a terminal only)."""

    def check(self) -> None:
        """Raise InputError for a number out of range."""
        check_seed("--train-seed", self.train_seed)
        count_updates(self.num_timesteps, self.batch_size)
        _check_workers(self.env_workers)
        if not 0 <= self.checkpoint_minutes < math.inf:
            raise InputError(
                f"--checkpoint-minutes {self.checkpoint_minutes}: expected 0 or more (0: at every "
                "update)"
            )

    @classmethod
    def from_dict(cls, config: Mapping[str, Any], path: Path) -> Self:
        """The settings in `config`, read from config.json `path`; FileFormatError for a wrong one.

        Keys of other meaning (protocol, versions, ...) are left out; an unknown key is an error.
        """
        hints = get_type_hints(cls)
        known = {field.name for field in fields(cls)}
        if surplus := unknown_keys(config):
            raise FileFormatError(f"{path}: unknown key {surplus[0]!r}")
        given = {name: value for name, value in config.items() if name in known}
        for name, value in given.items():
            if not _fits(value, hints[name]):
                raise FileFormatError(
                    f"{path}: {name!r} is {value!r}, expected {_shown(hints[name])}"
                )
        settings = {name: _from_json(value, hints[name]) for name, value in given.items()}
        try:
            return cls(**settings)
        except InputError as error:
            raise FileFormatError(f"{path}: {error}") from error

    @property
    def run_directory(self) -> Path:
        """The folder of the run: --output-dir, or its usual place below runs/."""
        return self.output_dir or run_path(
            Path("runs"), self.env_name, self.network, self.train_seed
        )

    def as_dict(self) -> dict[str, Any]:
        """Every setting as JSON types."""
        settings = {name: value for name, value in asdict(self).items() if name != "resume"}
        return {**settings, "output_dir": str(self.output_dir) if self.output_dir else None}


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig(ProtocolFlags):
    """An evaluation: whole games, raw scores, the protocol of training unless told otherwise."""

    experiment_dir: Path
    """Run directory: config.json and model.pkl, ours or OpenAI Baselines'."""
    num_env: int = 8
    """Environments that play side by side."""
    evals_per_env: int = 1
    """Whole games that each environment plays."""
    eval_seed: int = 1000
    """Seed of games and action sampling."""
    max_eplen: int = 108_000
    """Emulator frames after which a game is cut (108000 are 30 minutes)."""
    raw_obs: bool = False
    """Record a video of the screen with the attention over it."""
    processed_obs: bool = False
    """Record a video of the network's input with the attention over it."""
    video_recorder: bool = False
    """Record a video; of the screen, unless --processed-obs alone is given."""
    output_dir: Path | None = None
    """Folder for the results, new or empty; default: the run directory itself."""
    overwrite: bool = False
    """Replace results that are there, and begin anew instead of going on with an unfinished job."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""
    allow_protocol_mismatch: bool = False
    """Play under another protocol than the trained one; the results say so."""
    env_workers: int | None = None
    """Processes that play games beside this one; default one less than there are cores."""
    progress: bool = True
    """Progress bar (on a terminal only)."""

    @property
    def place(self) -> ResultsPlace:
        """Where the results go."""
        return ResultsPlace(
            self.output_dir or self.experiment_dir,
            run=self.experiment_dir,
            names=RESULT_FILES,
            partial=PARTIAL,
            overwrite=self.overwrite,
        )

    @property
    def shows_raw(self) -> bool:
        """Whether the video has the screen in it."""
        return self.raw_obs or (self.video_recorder and not self.processed_obs)

    def check(self) -> None:
        """Raise InputError for a number out of range."""
        for name in ("num_env", "evals_per_env", "max_eplen"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(f"--{name.replace('_', '-')} {value}: expected 1 or more")
        if self.num_env > MAX_ENVS:
            raise InputError(f"--num-env {self.num_env}: expected at most {MAX_ENVS}")
        check_seed("--eval-seed", self.eval_seed)
        _check_workers(self.env_workers)


def unknown_keys(config: Mapping[str, Any]) -> list[str]:
    """The keys of a run's config.json that nothing here knows, sorted."""
    return sorted(config.keys() - {field.name for field in fields(TrainConfig)} - _RECORDS)


def config_notes(directory: Path, config: Mapping[str, Any]) -> list[str]:
    """A line that names the keys in a run's config.json that nothing here knows, if there are any.

    They are no error where a run is only read: its writer may have had more to say.
    """
    surplus = ", ".join(map(repr, unknown_keys(config)))
    path = RunDir(directory).config
    return [f"note: {path}: keys that are not known here: {surplus}"] if surplus else []


_RECORDS = {"protocol", "versions", "git_commit"}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value is of a field's type."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if parts:
        return any(_fits(value, part) for part in parts)
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is (str if hint is Path else hint)


def _from_json(value: Any, hint: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if hint is float:
        return float(value)
    return Path(value) if isinstance(value, str) and Path in get_args(hint) else value


def _shown(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    names |= {Path: "a path", type(None): "null"}
    parts = get_args(hint) or (hint,)
    return " or ".join(names.get(part, "a list of texts") for part in parts if part is not Ellipsis)


def _check_workers(count: int | None) -> None:
    if count is not None and count < 0:
        raise InputError(f"--env-workers {count}: expected 0 or more")


def environment_record() -> dict[str, Any]:
    """Versions and git commit, for config.json."""
    found = {name: number for name in _PACKAGES if (number := _version(name))}
    return {
        "versions": {"python": platform.python_version(), **found},
        "git_commit": _git_commit(),
    }


_PACKAGES = (
    "fl-saliency",
    "tensorflow",
    "tensorflow-cpu",  # in the Docker image: the same release without the GPU's kernels
    "keras",
    "numpy",
    "ale-py",
    "opencv-python-headless",
)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """The commit of the checkout that the code runs from, with `+` if modified; None elsewhere."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return None
    try:
        describe = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return describe.stdout.strip()
