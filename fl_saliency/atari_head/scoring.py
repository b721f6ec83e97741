"""Scores one method's maps over a trial by both conventions, and picks decisions to show."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from fl_saliency.atari_head.prior import GazePrior
from fl_saliency.atari_head.scores import Example, MethodScores
from fl_saliency.atari_head.settings import BenchmarkSettings
from fl_saliency.atari_head.tracks import SHIFTS, Track
from fl_saliency.base import FloatArray
from fl_saliency.metrics.mit import score_sequence_mit
from fl_saliency.metrics.paper import SequenceScores, score_sequence

__all__ = ["PASSES", "Progress", "Result", "score_track"]

PASSES = 2 + len(SHIFTS)
"""How often a method's maps are drawn: for each convention, and for gaze that is shifted."""

Progress: TypeAlias = Callable[[int], object]
"""Told of that many further steps."""


@dataclass(kw_only=True)
class Result:
    """One method's scores, and decisions that are shown of it."""

    scores: MethodScores
    maps: dict[int, FloatArray]
    """The maps of the decisions shown."""
    telling: Sequence[int]
    """Those of them that show how good and bad the method is."""
    examples: dict[int, Example] = field(default_factory=dict)

    def with_frames(self) -> MethodScores:
        """The scores, with the examples of the telling decisions."""
        return replace(self.scores, frames=tuple(self.examples[d] for d in self.telling))


def _telling(nss: FloatArray) -> tuple[int, ...]:
    """The decisions with the best, the median and the worst of nss [T]; fewer if they coincide."""
    order = [int(place) for place in np.argsort(nss) if np.isfinite(nss[place])]
    if not order:
        return ()
    return tuple(dict.fromkeys((order[-1], order[len(order) // 2], order[0])))


def score_track(
    track: Track,
    prior: GazePrior,
    settings: BenchmarkSettings,
    progress: Progress,
    *,
    shown: Sequence[int],
    tell: bool,
) -> Result:
    """Score `track`; keep the maps of the decisions `shown`, and with `tell` of telling ones."""

    def maps() -> Iterator[FloatArray]:
        for saliency in track.maps():
            yield saliency
            progress(1)

    def paper(shift: int) -> SequenceScores:
        return score_sequence(
            maps(), track.fixations[shift], sigma=settings.sigma, seed=settings.seed
        )

    scores, kept = paper(0), {}
    telling = _telling(scores.nss) if tell else ()
    wanted = {*shown, *telling}

    def kept_maps() -> Iterator[FloatArray]:
        for decision, saliency in enumerate(maps()):
            if decision in wanted:
                kept[decision] = saliency
            yield saliency

    mit = score_sequence_mit(
        kept_maps(),
        track.fixations[0],
        sigma=settings.sigma,
        baseline=prior.densities,
        fold=prior.fold,
    )
    found = MethodScores(
        name=track.name,
        target=track.target,
        num_fixations=np.array([points.total for points in track.fixations[0]]),
        paper=scores,
        mit=mit,
        shifted={shift: paper(shift) for shift in SHIFTS},
    )
    return Result(scores=found, maps=kept, telling=telling)
