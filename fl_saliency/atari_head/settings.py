"""What a gaze score depends on besides the network and the trial."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fl_saliency.atari_head.fixations import PROCESSED_SHAPE, SCREEN_SHAPE, Alignment
from fl_saliency.envs.protocol import Protocol
from fl_saliency.metrics.paper import SEED
from fl_saliency.saliency.methods import BASELINES, check_methods
from fl_saliency.saliency.options import MethodOptions

__all__ = [
    "ALL_BASELINES",
    "GAZE_METHODS",
    "HUMAN",
    "MEAN_GAZE",
    "BenchmarkSettings",
    "Kind",
    "check_saliency",
    "kind_of",
]

MEAN_GAZE = "mean_gaze"
"""Where people look anyway: the mean gaze of other trials, or of the trial's other half."""
HUMAN = "human"
"""What gaze itself scores: a decision's earlier gaze samples as the map, its later ones judge."""
GAZE_METHODS = (MEAN_GAZE, HUMAN)
"""Methods that are made of gaze, not of an agent or an observation."""
ALL_BASELINES = (*BASELINES, *GAZE_METHODS)

Kind: TypeAlias = Literal["agent", "baseline", "bound"]
"""Whether a method asks the agent, knows nothing of it, or is the upper bound."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkSettings:
    """What a score depends on besides the network and the trial."""

    protocol: Protocol
    """The preprocessing that the network was trained with; no-ops and FIRE play no part."""
    processed: bool = False
    """Compare on the network's 84x84 input instead of the 210x160 screen."""
    alignment: Alignment = "frames"
    seed: int = SEED
    """Of the shuffled AUC's draws."""
    saliency: tuple[str, ...] = ("attention",)
    """The methods asked for; the first one's scores are those of saliency.pkl."""
    baselines: bool | None = None
    """Whether to score `ALL_BASELINES` too; None: unless `saliency` is attention alone."""
    options: MethodOptions = field(default_factory=MethodOptions)
    """What the methods are told."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the maps that are compared."""
        return PROCESSED_SHAPE if self.processed else SCREEN_SHAPE

    @property
    def sigma(self) -> float:
        """Blur of the fixations, in pixels of those maps."""
        return 2.0 if self.processed else 5.0

    @property
    def methods(self) -> tuple[str, ...]:
        """All that is scored: the methods asked for, then the baselines that they lack."""
        wanted = self.saliency != ("attention",) if self.baselines is None else self.baselines
        return tuple(dict.fromkeys((*self.saliency, *(ALL_BASELINES if wanted else ()))))

    @property
    def is_plain(self) -> bool:
        """Whether this is the published benchmark: attention alone."""
        return self.methods == ("attention",)


def check_saliency(names: Sequence[str]) -> None:
    """InputError for no method, an unknown one, or one given twice: see `check_methods`."""
    check_methods(names, further=GAZE_METHODS)


def kind_of(name: str) -> Kind:
    """The kind of the method `name`."""
    if name == HUMAN:
        return "bound"
    return "baseline" if name in ALL_BASELINES else "agent"
