"""Parameter randomisation: do a method's maps change when the network forgets what it learned?

Adebayo et al. 2018, "Sanity Checks for Saliency Maps", arXiv 1810.03292, section 3.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import FloatArray
from fl_saliency.experiments.sanity.bootstrap import Interval, interval
from fl_saliency.networks.policy import HEADS, build_policy, get_arrays, layer_of, set_arrays
from fl_saliency.seeding import derive_seed, stream

__all__ = ["Kind", "Randomised", "Stage", "StageFinding", "redrawn", "stages"]

Kind: TypeAlias = Literal["cascading", "independent"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Some layers whose weights are re-drawn."""

    kind: Kind
    layer: str
    """The layer that is new in this stage."""
    layers: tuple[str, ...]
    """All layers that are re-drawn: with `cascading`, those of the stages before too."""

    @property
    def name(self) -> str:
        """For files: `cascading-fc1`."""
        return f"{self.kind}-{self.layer}"


def stages(layers: Sequence[str]) -> list[Stage]:
    """Cascading from the output down, then each layer alone; `layers` are given first to last."""
    order = [name for name in HEADS if name in layers]
    order += [name for name in reversed(layers) if name not in HEADS]
    downwards = [
        Stage(kind="cascading", layer=name, layers=tuple(order[: place + 1]))
        for place, name in enumerate(order)
    ]
    return [*downwards, *(Stage(kind="independent", layer=n, layers=(n,)) for n in order)]


class Randomised:
    """A network like `agent`'s, of its own, in which layers are re-drawn stage by stage."""

    def __init__(self, agent: PolicyAgent, seed: int) -> None:
        """The weights come from the same orthogonal initialisation as before training."""
        # Derived: the seed itself may be the one of the agent's own initial weights.
        model = build_policy(agent.name, agent.num_actions, seed=derive_seed("weights", seed))
        self._trained = get_arrays(agent.model)
        self._drawn = get_arrays(model)
        self.agent = PolicyAgent(model, stream("policy", seed))

    def redraw(self, layers: Sequence[str]) -> None:
        """Re-draw `layers`; all others get the trained weights."""
        set_arrays(self.agent.model, redrawn(self._trained, self._drawn, layers))


def redrawn(
    trained: Mapping[str, FloatArray], drawn: Mapping[str, FloatArray], layers: Sequence[str]
) -> dict[str, FloatArray]:
    """The `trained` weights, by file name, with those of `layers` taken from `drawn`."""
    return {
        name: drawn[name] if layer_of(name) in layers else array for name, array in trained.items()
    }


@dataclass(frozen=True, kw_only=True)
class StageFinding:
    """How alike the maps of the trained network and of one re-drawn are."""

    stage: Stage
    methods: Mapping[str, Mapping[str, Interval]]
    """Method -> measure of similarity -> its mean over states."""

    @classmethod
    def of(
        cls, stage: Stage, found: Mapping[str, Mapping[str, FloatArray]], *, seed: int
    ) -> "StageFinding":
        """From method -> measure -> its values [S]."""
        return cls(
            stage=stage,
            methods={
                method: {name: interval(values, seed=seed) for name, values in measures.items()}
                for method, measures in found.items()
            },
        )
