"""The `paper` convention over a sequence of frames: NSS, KL and shuffled AUC, one value a frame.

Source: the evaluation of Nikulin et al. 2019, "Free-Lunch Saliency via Attention in Atari Agents".
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from fl_saliency.base import FloatArray, IntArray
from fl_saliency.metrics.distribution import kl_blurred_fixations_to_map
from fl_saliency.metrics.fixation import Fixations, nss, shuffled_auc

__all__ = [
    "METRICS",
    "OTHER_FRAMES",
    "SEED",
    "SPLITS",
    "DropReason",
    "SequenceScorer",
    "SequenceScores",
    "other_frames",
    "score_sequence",
    "why_undefined",
]

METRICS = ("nss", "kldiv", "sauc")
OTHER_FRAMES = 10
"""How many other frames give the negatives of one frame's shuffled AUC (drawn with replacement)."""
SPLITS = 100
SEED = 42

DropReason: TypeAlias = Literal[
    "no_fixation", "map_not_finite", "constant_map", "zero_under_gaze", "no_other_fixation"
]
"""Why a metric is undefined on a frame."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SequenceScores:
    """Metrics of T frames, each float64 [T] with NaN where undefined, and why it is."""

    nss: FloatArray
    kldiv: FloatArray
    """KL(blurred fixations || map), nats."""
    sauc: FloatArray
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per metric: how many frames were dropped for which `DropReason`."""


def other_frames(rng: np.random.RandomState, frame: int, num_frames: int) -> IntArray:
    """Ten of the frames other than `frame`, uniform with replacement: int [10]; none if alone."""
    if num_frames < 2:
        return np.zeros(0, np.int64)
    drawn = rng.randint(num_frames - 1, size=OTHER_FRAMES)
    return np.asarray(drawn + (drawn >= frame))


class SequenceScorer:
    """Scores the maps of a sequence of T frames one after another."""

    def __init__(self, fixations: Sequence[Fixations], *, sigma: float, seed: int = SEED) -> None:
        """See `score_sequence`; fixations are needed whole, for the negatives."""
        self._fixations = fixations
        self._sigma = sigma
        self._seed = seed
        self._rng = np.random.RandomState(seed)
        self._frame = 0
        self._values = np.full((len(METRICS), len(fixations)), np.nan)
        self._reasons: dict[str, Counter[str]] = {name: Counter() for name in METRICS}

    def add(self, saliency: FloatArray) -> None:
        """Score the next frame's map [H, W]; ValueError if there is no further frame."""
        frame, number = self._frame, len(self._fixations)
        if frame == number:
            raise ValueError(f"more maps than the {number} frames")
        self._frame += 1
        points = self._fixations[frame]
        blocked = why_undefined(saliency, points)
        if blocked:  # The outer generator stands still on such a frame.
            for counter in self._reasons.values():
                counter[blocked] += 1
            return
        chosen = [self._fixations[other] for other in other_frames(self._rng, frame, number)]
        others = Fixations.union(chosen, points.shape)
        found = _score(saliency, points, others, self._sigma, self._seed)
        for row, (value, reason) in enumerate(found):
            if value is None:
                self._reasons[METRICS[row]][reason] += 1
            else:
                self._values[row, frame] = value

    def scores(self) -> SequenceScores:
        """The scores of all frames; ValueError if a map is missing."""
        if self._frame != len(self._fixations):
            raise ValueError(f"{self._frame} maps of {len(self._fixations)} frames")
        dropped = {name: dict(counter) for name, counter in self._reasons.items()}
        return SequenceScores(**dict(zip(METRICS, self._values, strict=True)), dropped=dropped)


def score_sequence(
    maps: Iterable[FloatArray], fixations: Sequence[Fixations], *, sigma: float, seed: int = SEED
) -> SequenceScores:
    """Score T maps [H, W], drawn one at a time, against the T frames' fixations.

    sigma: blur of the fixations for KL, pixels (the paper: 5 at 210x160, 2 at 84x84).
    Only one map is held at a time; the fixations are needed whole, for the negatives.
    Raises ValueError if there are not as many maps as frames, or shapes differ.
    """
    scorer = SequenceScorer(fixations, sigma=sigma, seed=seed)
    for saliency in maps:
        scorer.add(saliency)
    return scorer.scores()


def why_undefined(saliency: FloatArray, points: Fixations) -> DropReason | None:
    """Why no metric at all is defined on this frame, if so."""
    if not points.total:
        return "no_fixation"
    return None if np.isfinite(saliency).all() else "map_not_finite"


def _score(
    saliency: FloatArray, points: Fixations, others: Fixations, sigma: float, seed: int
) -> list[tuple[float | None, DropReason]]:
    """Each metric of one frame, in the order of `METRICS`, with the reason it would be None for."""
    return [
        (nss(saliency, points), "constant_map"),
        (kl_blurred_fixations_to_map(points, saliency, sigma=sigma), "zero_under_gaze"),
        (
            shuffled_auc(saliency, points, others, splits=SPLITS, seed=seed),
            "constant_map" if others.total else "no_other_fixation",
        ),
    ]
