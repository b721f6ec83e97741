"""What is whole and what is not in a run directory or a folder of results; only ever reads.

Files are opened by the readers of the jobs, none of which can run what it reads, and whatever is
wrong becomes a finding, so that one damaged file does not hide another.
"""

import contextlib
import csv
import json
import math
import shlex
import stat
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

import av
import numpy as np

from fl_saliency.agents.ppo2.config import count_updates
from fl_saliency.agents.ppo2.state import TrainerState
from fl_saliency.base import FloatArray
from fl_saliency.checkpoints.baselines import adam_slots, match_variables, read_model
from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.checkpoints.snapshots import Snapshot, find_snapshots, read_snapshot
from fl_saliency.envs.protocol import Protocol, mismatches
from fl_saliency.envs.snapshots import games_from_arrays
from fl_saliency.errors import FileFormatError, FlsError, InputError
from fl_saliency.experiments.configs import PARTIAL, RESULT_FILES, TrainConfig, unknown_keys
from fl_saliency.experiments.load import trained_protocol
from fl_saliency.experiments.runs import read_config
from fl_saliency.folders import LOCK, lock_owner
from fl_saliency.logs.monitor import monitor_path
from fl_saliency.logs.positions import log_sizes
from fl_saliency.logs.readers import (
    _event,
    _records,
    monitor_files,
    read_monitor,
    read_progress,
    read_tensorboard,
)
from fl_saliency.logs.textfile import whole_lines
from fl_saliency.metrics.paper import METRICS
from fl_saliency.networks.policy import build_policy, named_variables
from fl_saliency.networks.registry import network_names
from fl_saliency.render.video import count_frames

__all__ = ["Finding", "Status", "check_directory", "examine"]

Status = Literal["ok", "note", "bad"]
_RANK: dict[Status, int] = {"ok": 0, "note": 1, "bad": 2}

MAX_BYTES = 1 << 30
"""Largest log, picture or table that is read, in bytes."""
_LONGEST = 300
"""Characters of what is said of a file: a stranger's may have megabytes in a message."""

_RUN = ("config.json", "model.pkl", "checkpoints")
GAZE_PARTIAL = "saliency.partial"
GAZE_FILES = ("saliency.pkl", "saliency.json", "saliency.csv", "saliency.png")
_VIDEOS = ("perception.mkv", "perception.mp4")
_STREAMS = ("policy", "minibatches")
_ANY_ACTIONS = 256
"""Number of actions where the protocol is not known: an action is a byte."""

_Variables: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""TensorFlow-1 names and shapes."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one file or folder."""

    part: str
    """Its path, relative to the directory that was examined (`.`)."""
    status: Status
    """`ok`; `note`: worth knowing, nothing is damaged; `bad`: damaged, missing or contradictory."""
    text: str


def check_directory(directory: Path) -> frozenset[str]:
    """The names in `directory`; `InputError` unless it is a folder with something of ours in it."""
    try:
        names = frozenset(path.name for path in directory.iterdir())
    except FileNotFoundError as error:
        raise InputError(f"{directory}: no such folder") from error
    except OSError as error:
        raise InputError(f"{directory}: cannot read it ({error.strerror})") from error
    if names.isdisjoint((*_RUN, *RESULT_FILES, *GAZE_FILES, PARTIAL, GAZE_PARTIAL, LOCK)):
        below = [path for depth in ("*", "*/*") for path in directory.glob(f"{depth}/config.json")]
        hint = f"; did you mean {min(below).parent}?" if below else ""
        raise InputError(
            f"{directory}: expected a run directory (config.json, model.pkl) or results "
            f"(results.json, saliency.json), found neither{hint}"
        )
    return names


def examine(directory: Path) -> list[Finding]:
    """Everything that can be said of run directory or results folder `directory`, file by file.

    Modules that its config.json names are not imported: a user's own network must have been
    registered before. Raises `InputError` for a folder that is neither (see `check_directory`).
    """
    names = check_directory(directory)
    report = _Report(directory=directory.absolute(), shown=directory, names=names)
    report.at_work = _examine_lock(report)
    with np.errstate(all="ignore"):
        if not names.isdisjoint(_RUN):
            _examine_run(report)
        else:
            report.ok(".", "a folder of results")
        _examine_evaluation(report)
        _examine_gaze(report)
    _note_leftovers(report)
    return report.findings()


@dataclass(kw_only=True)
class _Report:
    """Collects what is said of each part of a directory."""

    directory: Path
    """The absolute path: no part of it can be taken for an address."""
    shown: Path
    """The path as it was given."""
    names: frozenset[str]
    at_work: bool = False
    """Whether a job is writing there now: what is unfinished is none of our business then."""
    _said: dict[str, dict[str, Status]] = field(default_factory=lambda: {".": {}})

    def _add(self, part: str, status: Status, text: str) -> None:
        self._said.setdefault(part, {}).setdefault(text[:_LONGEST], status)

    def ok(self, part: str, text: str) -> None:
        """`part` is as it should be."""
        self._add(part, "ok", text)

    def note(self, part: str, text: str) -> None:
        """Something that one should know of `part`."""
        self._add(part, "note", text)

    def bad(self, part: str, text: str) -> None:
        """`part` is not as it should be."""
        self._add(part, "bad", text)

    def is_bad(self, *parts: str) -> bool:
        """Whether anything bad is known of one of `parts`."""
        return any("bad" in self._said.get(part, {}).values() for part in parts)

    @contextlib.contextmanager
    def reading(self, part: str) -> Iterator[Path]:
        """The path of `part`; whatever fails while it is read is a finding about it."""
        path = self.directory / part
        try:
            yield path
        # Damage and malice fail in every way there is, and the other parts are still to be read.
        except Exception as error:
            self.bad(part, _reason(error, path))

    def findings(self) -> list[Finding]:
        """One finding per part: its worst status, and all that was said but mere praise."""
        found = []
        for part, said in self._said.items():
            worst = max(said.values(), key=_RANK.__getitem__, default=None)
            if worst is not None:
                texts = [text for text, status in said.items() if status != "ok" or worst == "ok"]
                found.append(Finding(part=part, status=worst, text="; ".join(texts)))
        return found


def _reason(error: Exception, path: Path) -> str:
    """What `error` says of the file at `path`, without its name."""
    if isinstance(error, FlsError):
        return str(error).removeprefix(str(path)).lstrip(",:/ ")
    if isinstance(error, FileNotFoundError):
        return "missing"
    if isinstance(error, OSError):
        return f"cannot read it ({error.strerror or error})"
    if isinstance(error, MemoryError):
        return "more than the memory holds"
    return f"cannot be read ({type(error).__name__}: {error})"


def _checked(path: Path) -> Path:
    """`path`, if that is a file of a size that may be read: a pipe or a device would never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(f"{path}: expected a file, found a folder or a device")
    if status.st_size > MAX_BYTES:
        raise FileFormatError(f"{path}: {status.st_size} bytes, more than the {MAX_BYTES} read")
    return path


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- what jobs leave beside their files ---------------------------------------------------------


def _examine_lock(report: _Report) -> bool:
    """Whether a job holds the folder; says which, or that one was killed in it."""
    if LOCK not in report.names:
        return False
    with report.reading(LOCK) as path:
        if owner := lock_owner(_checked(path).parent):
            report.note(LOCK, f"being written now: {owner}")
            return True
        report.note(LOCK, "left by a job that was killed; harmless")
    return False


def _note_leftovers(report: _Report) -> None:
    """Files under temporary names: a job was killed while it wrote them."""
    known = (*_RUN, "curve.png", *RESULT_FILES, *GAZE_FILES)
    hidden = [name for name in report.names if name.startswith(tuple(f".{n}." for n in known))]
    with report.reading("logs") as path:
        hidden += [f"logs/{name}" for name in _names(path) if name.startswith(".progress.csv.")]
    if not report.at_work:
        for name in sorted(hidden):
            report.note(name, "left by a job that was killed; can be removed")


# --- a run --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Expected:
    """What config.json says of the other files; None where it does not say it."""

    env_name: str | None = None
    settings: TrainConfig | None = None
    """None for the published layout, which has no settings of training."""
    protocol: Protocol | None = None
    variables: _Variables | None = None

    @property
    def updates(self) -> int | None:
        """Updates of the whole run."""
        if self.settings is None:
            return None
        return count_updates(self.settings.num_timesteps, self.settings.batch_size)


@dataclass(frozen=True, kw_only=True)
class _Saved:
    """The checkpoints of a run."""

    last: int | None = None
    """Update of the newest checkpoint, whole or damaged."""
    state: TrainerState | None = None
    """The newest one that is whole."""
    logs: Mapping[str, Any] = field(default_factory=dict)
    """How far the log files had got then."""


def _examine_run(report: _Report) -> None:
    expected = _examine_config(report)
    weights = _examine_model(report, expected) if "model.pkl" in report.names else None
    saved = _examine_checkpoints(report, expected)
    _compare_sizes(report, saved)
    rows = _examine_logs(report, expected, saved)
    _examine_picture(report, "curve.png")
    if expected.settings is not None:
        _examine_end(report, expected, saved, rows)
        _compare_weights(report, expected, saved, weights)
    elif report.is_bad("config.json"):
        report.ok(".", "a run directory")
    else:
        report.ok(".", "a run directory of the published layout")
        if "model.pkl" not in report.names:
            report.bad("model.pkl", "missing")


def _examine_config(report: _Report) -> _Expected:
    with report.reading("config.json"):
        config = read_config(report.directory)
        settings = _settings(report, config)
        protocol = _protocol(report, config, settings)
        report.ok("config.json", _described(config, settings))
        variables = None if protocol is None else _built(config["network"], protocol.num_actions)
        return _Expected(
            env_name=config["env_name"], settings=settings, protocol=protocol, variables=variables
        )
    return _Expected()


def _described(config: Mapping[str, Any], settings: TrainConfig | None) -> str:
    agent = f"{config['env_name']}, {config['network']}"
    if settings is None:
        return f"{agent}, published layout"
    updates = settings.num_timesteps // settings.batch_size
    return (
        f"{agent}, seed {settings.train_seed}, {_count(updates, 'update')} "
        f"of {settings.batch_size} timesteps"
    )


def _settings(report: _Report, config: Mapping[str, Any]) -> TrainConfig | None:
    """The settings of training, if config.json has them."""
    unknown = unknown_keys(config)
    if unknown:
        report.note("config.json", f"unknown keys: {', '.join(map(repr, unknown))}")
    with report.reading("config.json") as path:
        known = {name: value for name, value in config.items() if name not in unknown}
        settings = TrainConfig.from_dict(known, path)
        settings.check()
        if config.keys() >= {"num_timesteps", "num_envs", "num_steps"}:
            return settings
    return None


def _protocol(
    report: _Report, config: dict[str, Any], settings: TrainConfig | None
) -> Protocol | None:
    """The protocol of training; None if game or network are not known."""
    network, modules = config["network"], config.get("extra_import")
    if modules and network not in network_names():
        text = f"network {network!r} is not known; --extra-import {' '.join(map(str, modules))}"
        report.note("config.json", f"{text} may add it")
        return None
    with report.reading("config.json") as path:
        protocol = trained_protocol(path, config)
        if settings is not None and not config.get("protocol"):
            report.note("config.json", "no protocol in it: that of its env id is taken")
        elif settings is not None:
            differences = mismatches(protocol, settings.protocol(settings.env_name))
            if differences:
                raise FileFormatError(f"its protocol is not that of its flags: {differences[0]}")
        return protocol
    return None


@cache
def _built(network: str, num_actions: int) -> _Variables:
    model = build_policy(network, num_actions)
    return tuple((item.name, item.shape) for item in named_variables(model))


def _examine_model(report: _Report, expected: _Expected) -> dict[str, FloatArray] | None:
    """The weights in model.pkl, if they are those of the network."""
    with report.reading("model.pkl") as path:
        model = read_model(path)
        if expected.variables is None:
            report.ok("model.pkl", f"{_count(len(model.arrays), 'array')} of a network not known")
            return None
        matched = match_variables(model, expected.variables, path)
        weights: dict[str, FloatArray] = {name: matched[name] for name, _ in expected.variables}
        size = sum(array.size for array in weights.values())
        text = f"{_count(len(weights), 'variable')}, {_count(size, 'parameter')}"
        if adam_slots(matched) is None:
            report.note("model.pkl", f"{text}, without the optimizer's state")
        else:
            report.ok("model.pkl", f"{text}, with the optimizer's state")
        return weights
    return None


def _examine_snapshots(report: _Report, folder: str) -> list[Snapshot]:
    """The whole snapshots in `folder`, the newest first; a finding for each damaged one."""
    whole = []
    with report.reading(folder) as place:
        for path in find_snapshots(place):
            with report.reading(f"{folder}/{path.name}"):
                try:
                    whole.append(read_snapshot(path))
                except FileFormatError:
                    if not report.at_work or path.exists():  # its writer drops the older ones
                        raise
        if not report.at_work:
            for name in _names(place):
                if name.startswith(".unfinished-"):
                    report.note(f"{folder}/{name}", "left by a job that was killed; harmless")
    return whole


def _examine_checkpoints(report: _Report, expected: _Expected) -> _Saved:
    folder, last = "checkpoints", None
    with report.reading(folder) as path:
        last = max((int(found.name) for found in find_snapshots(path)), default=None)
    saved = _Saved(last=last)
    for snapshot in reversed(_examine_snapshots(report, folder)):
        part = f"{folder}/{snapshot.index:08d}"
        with report.reading(part):
            state, logs = _trainer_state(snapshot, expected)
            report.ok(part, f"update {state.update}, {_count(len(state.games), 'open game')}")
            saved = _Saved(last=last, state=state, logs=logs)
    return saved


def _trainer_state(
    snapshot: Snapshot, expected: _Expected
) -> tuple[TrainerState, Mapping[str, int]]:
    """The state in `snapshot` and the sizes of its logs; FileFormatError if no run can go on so."""
    actions = _ANY_ACTIONS if expected.protocol is None else expected.protocol.num_actions
    state = TrainerState.from_snapshot(snapshot, num_actions=actions)
    if problems := list(_state_problems(state, expected)):
        raise FileFormatError("; ".join(problems))
    logs = snapshot.state["logs"]
    if not isinstance(logs, dict) or not all(
        type(size) is int and size >= 0 for size in logs.values()
    ):
        raise FileFormatError("the sizes of its logs are no sizes")
    return state, logs


def _state_problems(state: TrainerState, expected: _Expected) -> Iterator[str]:
    """Why the run could not go on from `state`."""
    for group in ("weights", "adam_m", "adam_v"):
        shapes = {name: array.shape for name, array in getattr(state, group).items()}
        wanted = dict(expected.variables or shapes)
        if wrong := sorted({name for name, _ in wanted.items() ^ shapes.items()}):
            yield f"{group} are of another network: variable {wrong[0]!r}"
    if not state.is_finite():
        yield "weights that are not finite"
    if state.adam_powers.shape != (2,):
        yield "no state of the optimizer"
    for name in _STREAMS:
        try:
            np.random.default_rng().bit_generator.state = state.random[name]
        except (KeyError, TypeError, ValueError, OverflowError):
            yield f"no state of random stream {name!r}"
    if expected.settings is not None and len(state.games) != expected.settings.num_envs:
        yield f"{len(state.games)} open games, the run has {expected.settings.num_envs} envs"
    if expected.updates is not None and state.update > expected.updates:
        yield f"of update {state.update}, the run has {expected.updates}"


def _compare_sizes(report: _Report, saved: _Saved) -> None:
    """No log may be shorter than the newest checkpoint says: that is where the run goes on."""
    with report.reading("logs"):
        present = log_sizes(report.directory)
        for name, size in sorted(saved.logs.items()):
            folder, _, file = name.partition("/")
            part, label = ("tb", f"{file}: ") if folder == "tb" else (name, "")
            if folder not in report.names:
                report.bad(folder, "missing")
            elif name not in present:
                report.bad(part, f"{label}missing")
            elif present[name] < size:
                report.bad(
                    part,
                    f"{label}{present[name]} bytes, fewer than the {size} at the last checkpoint",
                )


def _compare_weights(
    report: _Report,
    expected: _Expected,
    saved: _Saved,
    weights: Mapping[str, FloatArray] | None,
) -> None:
    """model.pkl of a finished run is what its last checkpoint holds."""
    state = saved.state
    if weights is None or state is None or state.update != expected.updates or report.at_work:
        return
    if any(not np.array_equal(weights[name], state.weights[name]) for name in weights):
        report.bad("model.pkl", f"not of the last update: other weights than at {state.update}")


def _examine_end(report: _Report, expected: _Expected, saved: _Saved, rows: int | None) -> None:
    """How far the run has come, and whether what it leaves at its end is there."""
    total = expected.updates or 0
    # The last update may be logged and not yet saved: then the run is still to go on.
    done = rows if saved.last is None else saved.last
    if done is None and "logs" in report.names:
        report.note(".", "a run directory: its log does not say how far the run has come")
    elif done is None and "model.pkl" in report.names:
        report.note(".", "a run directory: the model alone, without logs and checkpoints")
    elif done is None or done < total:
        reached = max(done or 0, rows or 0)
        rest = " so far" if report.at_work else _next(report, expected, saved)
        report.note(".", f"a run directory: {reached} of {_count(total, 'update')}{rest}")
    else:
        report.ok(".", f"a run directory: finished, {_count(total, 'update')}")
        for name in ("model.pkl", "curve.png"):
            if name not in report.names and not report.at_work:
                report.bad(name, "missing, though the run is finished")


def _next(report: _Report, expected: _Expected, saved: _Saved) -> str:
    """How an unfinished run can be finished."""
    if saved.state is None:
        return ", and no checkpoint from which it could go on"
    command = ["fls", "train", "--resume", "--output-dir", str(report.shown)]
    if expected.settings is not None and expected.settings.extra_import:
        command += ["--extra-import", *expected.settings.extra_import]
    return f"; {shlex.join(command)} goes on after update {saved.state.update}"


# --- logs ---------------------------------------------------------------------------------------


def _examine_logs(report: _Report, expected: _Expected, saved: _Saved) -> int | None:
    """How many updates are logged, if that is known."""
    if "logs" not in report.names:
        return None
    present = _names(report.directory / "logs")
    trained_here = expected.settings is not None
    rows = None
    if "progress.csv" in present or trained_here:
        rows = _examine_progress(report, expected, saved)
    needed = trained_here and rows != 0
    if "log.txt" in present or needed:
        _examine_text(report)
    if needed or any(name.endswith("monitor.csv") for name in present):
        _examine_monitors(report, expected, needed=needed)
    if "tb" in report.names or needed:
        _compare_rows(report, expected, saved, rows, _examine_tensorboard(report))
    return rows


def _examine_text(report: _Report) -> None:
    with report.reading("logs/log.txt") as path:
        lines = whole_lines(_checked(path))
        report.ok("logs/log.txt", _count(len(lines), "line"))
    _note_torn(report, "logs/log.txt")


def _note_torn(report: _Report, part: str) -> None:
    """A last line without its end is no damage: readers leave it out, and a resumed run cuts it."""
    with report.reading(part) as path, _checked(path).open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        if file.read(1) not in (b"", b"\n") and not report.at_work:
            report.note(part, "an unfinished last line")


def _examine_progress(report: _Report, expected: _Expected, saved: _Saved) -> int | None:
    """The number of rows in progress.csv."""
    part = "logs/progress.csv"
    with report.reading(part) as path:
        begun = saved.last or "model.pkl" in report.names
        if not begun and not (path.exists() and whole_lines(_checked(path))):
            report.note(part, "no update is logged yet")
            return 0
        table = read_progress(_checked(path))
        for problem in _progress_problems(table.to_dict("list"), expected):
            report.bad(part, problem)
        report.ok(part, _count(len(table), "row"))
        _note_torn(report, part)
        return len(table)
    return None


def _progress_problems(table: Mapping[Any, list[float]], expected: _Expected) -> Iterator[str]:
    """What contradicts in the columns of progress.csv; the original may log every n-th update."""
    updates = table.get("nupdates")
    if updates is None:
        yield "no column nupdates"
        return
    settings = expected.settings
    for line, (before, update) in enumerate(pairwise([0.0, *updates]), start=2):
        if update != before + 1 and (settings is not None or not update > before):
            yield f"line {line}: nupdates {update:g} follows {before:g}"
            return
    if settings is None:
        return
    units = {"total_timesteps": settings.batch_size, "serial_timesteps": settings.num_steps}
    for name, unit in units.items():
        values = table.get(name, [])
        wrong = [n for n, value in enumerate(values, start=1) if value != n * unit]
        if name not in table:
            yield f"no column {name}"
        elif wrong:
            yield f"line {wrong[0] + 1}: {name} is not {wrong[0]} x {unit}"
    if expected.updates is not None and len(updates) > expected.updates:
        yield f"{len(updates)} rows, the run has {_count(expected.updates, 'update')}"


def _examine_monitors(report: _Report, expected: _Expected, *, needed: bool) -> None:
    """One monitor file per env, each of the run's game."""
    num_envs = expected.settings.num_envs if needed and expected.settings is not None else None
    with report.reading("logs") as folder:
        files = monitor_files(folder)
        games = sum(_examine_monitor(report, path, expected) for path in files)
        parts = [f"logs/{path.name}" for path in files]
        if num_envs is not None:
            _compare_envs(report, {path.name for path in files}, num_envs)
        if not report.is_bad(*parts):
            what = f"{_count(len(files), 'env')}, {_count(games, 'finished game')}"
            report.ok("logs/0.*.monitor.csv", what)


def _compare_envs(report: _Report, found: set[str], num_envs: int) -> None:
    expected = {monitor_path(Path(), env).name for env in range(min(num_envs, len(found) + 1))}
    for name in sorted(expected - found):
        report.bad(f"logs/{name}", "missing")
    for name in sorted(found - expected):
        if len(found) > num_envs:
            report.bad(f"logs/{name}", f"the run has {_count(num_envs, 'env')}")


def _examine_monitor(report: _Report, path: Path, expected: _Expected) -> int:
    """The number of games in monitor file `path`."""
    part = f"logs/{path.name}"
    with report.reading(part):
        monitor = read_monitor(_checked(path))
        if monitor.env_id and expected.env_name and monitor.env_id != expected.env_name:
            report.bad(part, f"of {monitor.env_id}, the run is of {expected.env_name}")
        rows = monitor.episodes.to_numpy().tolist()
        for line, (before, row) in enumerate(pairwise(rows), start=4):
            if before == row:
                raise FileFormatError(f"line {line} repeats the line before")
        _note_torn(report, part)
        return len(rows)
    return 0


def _examine_tensorboard(report: _Report) -> int | None:
    """The number of steps in TensorBoard's files."""
    with report.reading("tb") as folder:
        files = sorted(folder.glob("events.out.tfevents.*"))
        steps = [step for path in files for step in _event_steps(report, path)]
        read_tensorboard(folder)  # says what is wrong if there is none
        for before, step in pairwise(steps):
            if step <= before:
                raise FileFormatError(f"step {step} follows step {before}")
        report.ok("tb", f"{_count(len(files), 'event file')}, {_count(len(steps), 'step')}")
        return len(steps)
    return None


def _event_steps(report: _Report, path: Path) -> list[int]:
    """The step of every row of scalars in event file `path`, as they come."""
    steps, size = [], 0
    for number, record in enumerate(_records(_checked(path))):
        size += len(record) + 16  # its length and two checksums
        event = _event(path, number, record)
        if any(value.HasField("simple_value") for value in event.summary.value):
            steps.append(int(event.step))
    if size < path.stat().st_size and not report.at_work:
        report.note("tb", f"{path.name}: an unfinished last record")
    return steps


def _compare_rows(
    report: _Report, expected: _Expected, saved: _Saved, rows: int | None, steps: int | None
) -> None:
    """progress.csv and TensorBoard have the same rows, but for the last moment of a killed run."""
    if rows is None or steps is None or report.at_work or report.is_bad("tb", "logs/progress.csv"):
        return
    if expected.settings is None and steps > rows:  # its csv may be written every n-th update
        return
    is_open = rows < (expected.updates or 0) if saved.last is None else rows > saved.last
    if rows == steps + 1 and is_open:
        report.note("tb", "lacks the last row of progress.csv: the job was killed between the two")
    elif rows > steps:
        report.bad("tb", f"{_count(steps, 'step')}, progress.csv has {_count(rows, 'row')}")
    elif rows < steps:
        report.bad("logs/progress.csv", f"{_count(rows, 'row')}, tb has {_count(steps, 'step')}")


# --- pictures and videos ------------------------------------------------------------------------


def _examine_picture(report: _Report, name: str) -> None:
    if name in report.names:
        with report.reading(name) as path:
            width, height = _png_size(_checked(path))
            report.ok(name, f"{width} x {height} pixels")


def _png_size(path: Path) -> tuple[int, int]:
    """Width and height of the PNG at `path`; every chunk's checksum is right and none is missing.

    Source: the PNG specification (ISO/IEC 15948), section 5.
    """
    data = path.read_bytes()
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        raise FileFormatError(f"{path}: not a PNG picture")
    start, kind = 8, b""
    while kind != b"IEND":
        if start + 12 > len(data):
            raise FileFormatError(f"{path}: breaks off")
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if end > len(data):
            raise FileFormatError(f"{path}: breaks off")
        if zlib.crc32(data[start + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise FileFormatError(f"{path}: damaged: the checksum of a chunk is wrong")
        start = end
    if start < len(data):
        raise FileFormatError(f"{path}: goes on behind its end")
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _examine_videos(report: _Report) -> None:
    """Every frame decodes, and both videos have the same number of them."""
    frames = {name: _examine_video(report, name) for name in _VIDEOS if name in report.names}
    counts = [count for count in frames.values() if count is not None]
    if len(set(counts)) > 1:
        shorter = min(frames, key=lambda name: frames[name] or 0)
        report.bad(shorter, f"{min(counts)} frames, the other video has {max(counts)}")


def _examine_video(report: _Report, name: str) -> int | None:
    with report.reading(name) as path:
        _check_container(_checked(path))
        frames = _count_frames(path)
        promised = _promised_frames(path)
        # Matroska tells a duration in milliseconds, from which the number is only nearly known.
        if promised is not None and promised - frames > (1 if path.suffix == ".mkv" else 0):
            raise FileFormatError(f"breaks off: {frames} frames, its header says {promised}")
        report.ok(name, _count(frames, "frame"))
        return frames
    return None


def _check_container(path: Path) -> None:
    """FFmpeg goes by content: a playlist under a video's name would have it open other files."""
    with path.open("rb") as file:
        head = file.read(64)
    if not (head.startswith(b"\x1aE\xdf\xa3") and b"matroska" in head) and head[4:8] != b"ftyp":
        raise FileFormatError(f"{path}: neither Matroska nor MP4")


def _count_frames(path: Path) -> int:
    """How many frames decode; FileFormatError for any that its decoder only mends."""
    before = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)
    try:
        with av.logging.Capture(local=False) as complaints:
            frames = count_frames(path)
    finally:
        av.logging.set_level(before)
    if complaints:
        raise FileFormatError(f"{path}: damaged ({complaints[0][2].strip()})")
    return frames


def _promised_frames(path: Path) -> int | None:
    """How many frames the header of the video at `path` says that there are."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        if stream.frames:
            return stream.frames
        if container.duration is None or stream.average_rate is None:
            return None
        return round(container.duration * stream.average_rate / av.time_base)


# --- results of an evaluation -------------------------------------------------------------------

_PER_GAME = ("rewards", "lengths", "elapsed_time", "env", "seed", "frames", "end")
_ORIGINAL = ("rewards", "lengths", "elapsed_time", "done_per_env")


def _examine_evaluation(report: _Report) -> None:
    present = report.names.intersection(RESULT_FILES)
    if PARTIAL in report.names:
        _examine_saved_games(report)
    results = _examine_results(report) if "results.json" in present else None
    if "eval.pkl" in present:
        _examine_eval(report, results)
    _examine_videos(report)
    for name in ("results.png", "perception.png"):
        _examine_picture(report, name)
    if PARTIAL in report.names or report.at_work:
        return
    if present.intersection(("eval.pkl", "results.png")):
        _require(report, ("results.json",))
    if results is not None and "n_episodes" in results:  # ours: the original leaves less
        _require(report, RESULT_FILES[:3])
        if present.intersection(RESULT_FILES[3:]):
            _require(report, RESULT_FILES[3:])


def _require(report: _Report, names: Iterable[str]) -> None:
    for name in names:
        if name not in report.names:
            report.bad(name, "missing")


def _read_json(path: Path) -> dict[str, Any]:
    """The object in strict JSON file `path`."""
    try:
        text = _checked(path).read_text(encoding="utf-8")
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not strict JSON ({error})") from error
    if not isinstance(value, dict):
        raise FileFormatError(f"{path}: expected an object")
    return value


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} in it")


def _examine_results(report: _Report) -> dict[str, Any] | None:
    """results.json, if it is whole."""
    with report.reading("results.json") as path:
        results = _read_json(path)
        for problem in _results_problems(results):
            report.bad("results.json", problem)
        if not report.is_bad("results.json"):
            envs = _count(len(results["done_per_env"]), "env")
            report.ok("results.json", f"{_count(len(results['rewards']), 'game')} of {envs}")
            return results
    return None


def _results_problems(results: Mapping[str, Any]) -> Iterator[str]:
    """What contradicts in results.json, ours or the original's."""
    if missing := [name for name in _ORIGINAL if name not in results]:
        yield f"{missing[0]!r} is missing"
        return
    lists = {name: results[name] for name in (*_PER_GAME, "done_per_env") if name in results}
    for name, values in lists.items():
        if not isinstance(values, list) or not all(_is_entry(name, value) for value in values):
            yield f"{name!r} is no list of {'texts' if name == 'end' else 'numbers'}"
            return
    done, games = lists.pop("done_per_env"), len(results["rewards"])
    for name, values in lists.items():
        if len(values) != games:
            yield f"{name} has {len(values)} entries, rewards {games}"
    if sum(done) != games:
        yield f"done_per_env says {sum(done)} games, rewards has {games}"
    elif "env" in lists and Counter(lists["env"]) != +Counter(dict(enumerate(done))):
        yield "done_per_env is not how often each env stands in env"
    yield from _summary_problems(results)


def _is_entry(name: str, value: object) -> bool:
    if name == "end":
        return isinstance(value, str)
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _summary_problems(results: Mapping[str, Any]) -> Iterator[str]:
    """Which of the summary's figures are not those of the games."""
    rewards = results["rewards"]
    expected = {
        "n_episodes": len(rewards),
        "n_finished": results.get("end", []).count("game_over"),
        "mean_reward": float(np.mean(rewards)) if rewards else None,
        "std_reward": float(np.std(rewards)) if rewards else None,
    }
    for name, value in expected.items():
        if name in results and not _is_close(results[name], value):
            yield f"{name} {results[name]!r} is not that of its games, {value!r}"


def _is_close(found: Any, expected: float | None) -> bool:
    if expected is None or type(found) not in (int, float):
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


def _examine_eval(report: _Report, results: Mapping[str, Any] | None) -> None:
    """eval.pkl opens, and has the figures of results.json."""
    with report.reading("eval.pkl") as path:
        arrays = load_foreign(path)
        if not isinstance(arrays, dict):
            raise FileFormatError("expected a dict of arrays")
        report.ok("eval.pkl", "as results.json" if results is not None else "opens")
        for name in ("done_per_env", *_PER_GAME):
            if results is not None and name in results:
                found = arrays.get(name)
                values = found.tolist() if isinstance(found, np.ndarray) else found
                if values != results[name]:
                    report.bad("eval.pkl", f"{name} is not that of results.json")


def _examine_saved_games(report: _Report) -> None:
    """An unfinished evaluation: how many games it has saved, and whether it can go on."""
    snapshots = _examine_snapshots(report, PARTIAL)
    if not snapshots:
        report.note(PARTIAL, "an unfinished evaluation: nothing of it is saved")
        return
    with report.reading(PARTIAL):
        state = snapshots[0].state
        job, recording = state["job"], state["recording"]
        num_actions = Protocol.from_dict(job["protocol"]).num_actions
        games_from_arrays(snapshots[0].arrays, state["games"], num_actions)
        done, total = len(state["episodes"]), job["num_env"] * job["evals_per_env"]
        report.note(
            PARTIAL,
            f"an unfinished evaluation: {done} of {_count(total, 'game')} are saved; "
            "the same command goes on",
        )
        if recording is not None:
            _examine_frames(report, recording["spool"]["bytes"])


def _examine_frames(report: _Report, expected: int) -> None:
    """The frames that wait for the video are as many as were saved, at least."""
    part = f"{PARTIAL}/frames"
    with report.reading(part) as path:
        size = path.stat().st_size
        if size < expected:
            raise FileFormatError(f"{size} bytes, fewer than the {expected} that were saved")


# --- results of a gaze score --------------------------------------------------------------------

_GAZE_COLUMNS = ("trial", "decision", "frame", "n_fixations", *METRICS)

_Trials: TypeAlias = Sequence[tuple[int, Mapping[str, FloatArray]]]
"""Number and metrics of each trial."""


def _examine_gaze(report: _Report) -> None:
    present = report.names.intersection(GAZE_FILES)
    if GAZE_PARTIAL in report.names:
        with report.reading(GAZE_PARTIAL):
            saved = _count(len(_examine_snapshots(report, GAZE_PARTIAL)), "scored trial")
            text = f"an unfinished benchmark: {saved} saved; the same command goes on"
            report.note(GAZE_PARTIAL, text)
    trials = _examine_trials(report) if "saliency.pkl" in present else None
    if "saliency.json" in present:
        _examine_summary(report, trials)
    if "saliency.csv" in present:
        _examine_table(report, trials)
    _examine_picture(report, "saliency.png")
    # The original leaves saliency.pkl alone.
    if present - {"saliency.pkl"} and not (GAZE_PARTIAL in report.names or report.at_work):
        _require(report, GAZE_FILES)


def _examine_trials(report: _Report) -> _Trials | None:
    """The trials in saliency.pkl, if it is whole."""
    with report.reading("saliency.pkl") as path:
        records: Any = load_foreign(path)
        trials = [(record["trial_number"], _metrics(record["metrics"])) for record in records]
        total = sum(len(metrics[METRICS[0]]) for _, metrics in trials)
        text = f"{_count(len(trials), 'trial')}, {_count(total, 'decision')}"
        report.ok("saliency.pkl", text)
        return trials
    return None


def _metrics(values: Mapping[str, Any]) -> dict[str, FloatArray]:
    """A trial's metrics, float64 [T] each."""
    metrics: dict[str, FloatArray] = {
        name: np.asarray(values[name], np.float64) for name in METRICS
    }
    shapes = {array.shape for array in metrics.values()}
    if len(shapes) != 1 or any(len(shape) != 1 for shape in shapes):
        raise FileFormatError("metrics of different lengths")
    return metrics


def _examine_summary(report: _Report, trials: _Trials | None) -> None:
    """saliency.json is strict, and its figures are those of saliency.pkl."""
    part = "saliency.json"
    with report.reading(part) as path:
        summary = _read_json(path)
        found = summary["trials"]
        if trials is None:
            report.ok(part, _count(len(found), "trial"))
            return
        if [trial["trial_number"] for trial in found] != [number for number, _ in trials]:
            raise FileFormatError("not the trials of saliency.pkl")
        for trial, (number, metrics) in zip(found, trials, strict=True):
            for name in METRICS:
                if not _is_summary(trial["metrics"][name], metrics[name]):
                    report.bad(part, f"trial {number}: {name} is not that of saliency.pkl")
        report.ok(part, "as saliency.pkl")


def _is_summary(figures: Mapping[str, Any], values: FloatArray) -> bool:
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if finite.size else None
    return figures["n"] == finite.size and _is_close(figures["mean"], mean)


def _examine_table(report: _Report, trials: _Trials | None) -> None:
    """saliency.csv has a row per decision, with the values of saliency.pkl."""
    part = "saliency.csv"
    with report.reading(part) as path:
        header, *rows = [tuple(row) for row in csv.reader(whole_lines(_checked(path)))]
        if header != _GAZE_COLUMNS:
            raise FileFormatError(f"line 1: expected {','.join(_GAZE_COLUMNS)}")
        if trials is None:
            report.ok(part, _count(len(rows), "row"))
            return
        expected = [row for number, metrics in trials for row in _decisions(number, metrics)]
        for line, (row, wanted) in enumerate(zip(rows, expected, strict=False), start=2):
            if (row[:2], row[4:]) != wanted:
                raise FileFormatError(f"line {line}: not that of saliency.pkl")
        if len(rows) != len(expected):
            raise FileFormatError(f"{len(rows)} rows, saliency.pkl has {len(expected)} decisions")
        report.ok(part, "as saliency.pkl")


def _decisions(
    number: int, metrics: Mapping[str, FloatArray]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """A trial's rows in saliency.csv, without the columns that saliency.pkl does not have."""
    columns = zip(*(metrics[name].tolist() for name in METRICS), strict=True)
    for decision, values in enumerate(columns):
        shown = tuple("" if math.isnan(value) else repr(value) for value in values)
        yield (str(number), str(decision)), shown
