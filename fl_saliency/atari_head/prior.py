"""Where people look anyway: a density of gaze that a decision's own gaze has no part in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl_saliency.atari_head.archives import open_binary
from fl_saliency.atari_head.fixations import gaze_to_fixations
from fl_saliency.atari_head.labels import read_labels
from fl_saliency.atari_head.reader import TrialRef, frame_prefix
from fl_saliency.atari_head.settings import BenchmarkSettings
from fl_saliency.base import FloatArray, IntArray
from fl_saliency.errors import FileFormatError
from fl_saliency.metrics.distribution import blur_fixations
from fl_saliency.metrics.fixation import Fixations

__all__ = [
    "BLURS",
    "FLOOR",
    "OTHER_HALF",
    "OTHER_TRIALS",
    "GazePrior",
    "OtherGaze",
    "gaze_density",
    "prior_of_halves",
    "prior_of_trials",
]

FLOOR = 0.01
"""The part of every gaze density that is spread evenly, so that it is 0 nowhere."""
OTHER_TRIALS = "all gaze of the other trials"
OTHER_HALF = "the gaze of the other half of the trial's decisions"
BLURS = {OTHER_TRIALS: 2.0, OTHER_HALF: 6.0}
"""Width of mean gaze's blur by its source, in parts of the settings' sigma.

Half a trial holds few glances: sharper, it predicts the other half worse than an even map does.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class GazePrior:
    """Mean gaze for the T decisions of a trial."""

    densities: FloatArray
    """float64 [K, H, W], each above 0 and summing to 1."""
    fold: IntArray
    """Which of them is a decision's, int [T]."""
    source: str
    """`OTHER_TRIALS` or `OTHER_HALF`."""


def gaze_density(counts: IntArray, *, sigma: float) -> FloatArray:
    """Fixations per pixel [H, W] -> density float64 [H, W] > 0 that sums to 1.

    99 % are the fixations under a Gaussian of `sigma` pixels (as `blur_fixations`), 1 % is even;
    all of it is if there is no fixation.
    """
    even = np.full(counts.shape, 1 / counts.size)
    if not counts.any():
        return even
    return np.asarray((1 - FLOOR) * blur_fixations(counts, sigma=sigma) + FLOOR * even)


def prior_of_trials(counts: IntArray, decisions: int, *, sigma: float) -> GazePrior:
    """One density for all decisions, of the fixations `counts` [H, W] of other trials."""
    return GazePrior(
        densities=gaze_density(counts, sigma=BLURS[OTHER_TRIALS] * sigma)[None],
        fold=np.zeros(decisions, np.int64),
        source=OTHER_TRIALS,
    )


def prior_of_halves(fixations: Sequence[Fixations], *, stack: int, sigma: float) -> GazePrior:
    """For the decisions of either half the density of the other half's fixations.

    Decisions of the two halves that share frames, by stacks of `stack`, are left out of it.
    """
    middle, gap = len(fixations) // 2, stack - 1
    halves = (fixations[middle + gap :], fixations[: max(0, middle - gap)])
    shape = fixations[0].shape
    counts = [Fixations.union(half, shape).counts() for half in halves]
    densities = [gaze_density(half, sigma=BLURS[OTHER_HALF] * sigma) for half in counts]
    return GazePrior(
        densities=np.stack(densities),
        fold=(np.arange(len(fixations)) >= middle).astype(np.int64),
        source=OTHER_HALF,
    )


class OtherGaze:
    """Where each trial of a game was looked at; read once, when it is first asked for."""

    def __init__(self, refs: Sequence[TrialRef], settings: BenchmarkSettings) -> None:
        self._refs = refs
        self._shape = settings.shape
        self._counts: dict[str, IntArray] | None = None

    def without(self, ref: TrialRef) -> IntArray | None:
        """Fixations per pixel [H, W] of the trials other than `ref`; None if there is none.

        Every labelled frame counts. Trials whose labels cannot be read have no gaze here.
        """
        if self._counts is None:
            self._counts = {ref.name: _trial_counts(ref, self._shape) for ref in self._refs}
        others = [counts for name, counts in self._counts.items() if name != ref.name]
        total = sum(others, np.zeros(self._shape, np.int64))
        return total if total.any() else None


def _trial_counts(ref: TrialRef, shape: tuple[int, int]) -> IntArray:
    total = np.zeros(shape, np.int64)
    if ref.labels is None:
        return total
    shown = ref.labels if ref.container is None else ref.container / ref.labels
    try:
        with open_binary(ref.labels, container=ref.container) as stream:
            labels = read_labels(stream, shown=shown, prefix=frame_prefix(ref))
    except FileFormatError:
        return total  # the trial is skipped, with this reason, when it is opened
    gaze = [row.gaze for row in labels.rows.values()]
    return total + gaze_to_fixations(np.concatenate(gaze), shape).counts() if gaze else total
