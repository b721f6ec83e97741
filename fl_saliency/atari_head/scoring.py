"""Scores one method's maps over a trial by both conventions, and picks decisions to show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

import numpy as np

from fl_saliency.atari_head.prior import GazePrior
from fl_saliency.atari_head.scores import Example, MethodScores
from fl_saliency.atari_head.settings import BenchmarkSettings
from fl_saliency.atari_head.tracks import SHIFTS, Track
from fl_saliency.base import FloatArray
from fl_saliency.metrics.mit import MitScorer
from fl_saliency.metrics.paper import SequenceScorer

__all__ = ["Progress", "Result", "score_track"]

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
    """Score `track`; keep the maps of the decisions `shown`, and with `tell` of telling ones.

    Each map is drawn once, for both conventions and all shifts; telling ones once more.
    """
    mit = MitScorer(
        track.fixations[0], sigma=settings.sigma, baseline=prior.densities, fold=prior.fold
    )
    paper = {
        shift: SequenceScorer(points, sigma=settings.sigma, seed=settings.seed)
        for shift, points in track.fixations.items()
    }
    kept: dict[int, FloatArray] = {}
    for decision, saliency in enumerate(track.maps()):
        mit.add(saliency)
        for scorer in paper.values():
            scorer.add(saliency)
        if decision in shown:
            kept[decision] = saliency
        progress(1)
    scores = {shift: scorer.scores() for shift, scorer in paper.items()}
    telling = _telling(scores[0].nss) if tell else ()
    found = MethodScores(
        name=track.name,
        target=track.target,
        num_fixations=np.array([points.total for points in track.fixations[0]]),
        paper=scores[0],
        mit=mit.scores(),
        shifted={shift: scores[shift] for shift in SHIFTS},
    )
    if telling:
        maps = islice(track.maps(), max(telling) + 1)
        kept |= {
            decision: saliency for decision, saliency in enumerate(maps) if decision in telling
        }
    return Result(scores=found, maps=kept, telling=telling)
