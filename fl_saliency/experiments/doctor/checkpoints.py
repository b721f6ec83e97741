"""The checkpoints of a run: whole, of its network, and such that the run can go on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fl_saliency.agents.ppo2.state import TrainerState
from fl_saliency.checkpoints.snapshots import Snapshot, find_snapshots
from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.doctor.config import Expected
from fl_saliency.experiments.doctor.files import examine_snapshots
from fl_saliency.experiments.doctor.report import Report, count
from fl_saliency.logs.positions import log_sizes

__all__ = ["Saved", "compare_sizes", "examine_checkpoints"]

_STREAMS = ("policy", "minibatches")
_ANY_ACTIONS = 256
"""Number of actions where the protocol is not known: an action is a byte."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """The checkpoints of a run."""

    last: int | None = None
    """Update of the newest checkpoint, whole or damaged."""
    state: TrainerState | None = None
    """The newest one that is whole."""
    logs: Mapping[str, Any] = field(default_factory=dict)
    """How far the log files had got then."""


def examine_checkpoints(report: Report, expected: Expected) -> Saved:
    """Every checkpoint is whole and of this run; returns what they say of it."""
    folder, last = "checkpoints", None
    with report.reading(folder) as path:
        last = max((int(found.name) for found in find_snapshots(path)), default=None)
    saved = Saved(last=last)
    for snapshot in reversed(examine_snapshots(report, folder)):
        part = f"{folder}/{snapshot.index:08d}"
        with report.reading(part):
            state, logs = _trainer_state(snapshot, expected)
            report.ok(part, f"update {state.update}, {count(len(state.games), 'open game')}")
            saved = Saved(last=last, state=state, logs=logs)
    return saved


def _trainer_state(
    snapshot: Snapshot, expected: Expected
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


def _state_problems(state: TrainerState, expected: Expected) -> Iterator[str]:
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


def compare_sizes(report: Report, saved: Saved) -> None:
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
