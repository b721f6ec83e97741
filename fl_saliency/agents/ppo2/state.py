"""All that the next update of a training run depends on, to be saved and restored bit for bit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fl_saliency.base import EpisodeRecord, FloatArray
from fl_saliency.checkpoints.snapshots import Snapshot
from fl_saliency.envs.emulator import GameState
from fl_saliency.envs.snapshots import games_from_arrays, games_to_arrays
from fl_saliency.errors import FileFormatError

__all__ = ["TrainerState"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainerState:
    """A training run between two updates."""

    update: int
    """How many updates are finished."""
    weights: Mapping[str, FloatArray]
    """Weights under their names in model.pkl, in file shapes, float32."""
    adam_m: Mapping[str, FloatArray]
    """Adam's first moments, of the same names."""
    adam_v: Mapping[str, FloatArray]
    """Adam's second moments, of the same names."""
    adam_powers: FloatArray
    """beta1 and beta2 to the power of 1 + the number of steps, float32 [2]."""
    games: Sequence[GameState]
    """Each env's open game."""
    random: Mapping[str, Mapping[str, Any]]
    """State of each random stream, by name."""
    recent: Sequence[EpisodeRecord]
    """The last 100 games, for the log's means."""
    seconds: float
    """How long it has trained."""

    def is_finite(self) -> bool:
        """Whether all weights and moments are numbers."""
        groups = (self.weights, self.adam_m, self.adam_v)
        return all(np.isfinite(array).all() for group in groups for array in group.values())

    def to_snapshot(self, extra: Mapping[str, Any]) -> Snapshot:
        """As a snapshot, with `extra` beside its own state."""
        arrays, games = games_to_arrays(self.games)
        arrays["adam_powers"] = self.adam_powers
        for group in _GROUPS:
            arrays |= {f"{group}/{name}": array for name, array in getattr(self, group).items()}
        state = {
            "variables": list(self.weights),  # in the order of model.pkl; arrays have none
            "games": games,
            "random": dict(self.random),
            "recent": [asdict(episode) for episode in self.recent],
            "seconds": self.seconds,
        }
        return Snapshot(index=self.update, arrays=arrays, state={**extra, **state})

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, *, num_actions: int) -> "TrainerState":
        """The state in `snapshot` of a run with `num_actions`; FileFormatError if it has none."""
        try:
            state = snapshot.state
            return cls(
                update=snapshot.index,
                **{group: _group(snapshot, group, state["variables"]) for group in _GROUPS},
                adam_powers=snapshot.arrays["adam_powers"],
                games=games_from_arrays(snapshot.arrays, state["games"], num_actions),
                random=state["random"],
                recent=[EpisodeRecord(**episode) for episode in state["recent"]],
                seconds=float(state["seconds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"snapshot {snapshot.index}: not of a training run") from error


_GROUPS = ("weights", "adam_m", "adam_v")


def _group(snapshot: Snapshot, group: str, variables: Sequence[str]) -> Any:
    return {name: snapshot.arrays[f"{group}/{name}"] for name in variables}
