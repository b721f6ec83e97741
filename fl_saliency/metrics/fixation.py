"""Metrics of a map at points of gaze: NSS (Peters et al. 2005), shuffled AUC (Borji et al. 2012).

Conventions are the `paper` ones of the Free-Lunch Saliency benchmark: undefined is None, never a
number, and every fixation counts, also a second one on the same pixel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from fl_saliency.base import FloatArray, IntArray

__all__ = [
    "Fixations",
    "FixationsLike",
    "as_fixations",
    "auc",
    "check_shape",
    "draw_pixels",
    "nss",
    "shuffled_auc",
]

_NO_SPREAD = 1e-8
"""A map whose standard deviation is not above this is constant to NSS."""


@dataclass(frozen=True, eq=False)
class Fixations:
    """Where one frame was looked at: points on its pixels, not a density.

    Kept sparse, because a trial has thousands of frames with a few hundred fixations each.
    """

    shape: tuple[int, int]
    """Rows and columns of the frame."""
    pixels: IntArray
    """Row-major pixel numbers, int [N], one per fixation: repeats count."""

    @classmethod
    def from_counts(cls, counts: IntArray) -> Self:
        """From counts int [H, W]; a float array is a density and raises TypeError."""
        array = np.asarray(counts)
        if array.dtype.kind not in "iu":
            raise TypeError(
                f"fixations: expected integer counts, got {array.dtype}; "
                "a blurred map is a density, not fixations"
            )
        if array.ndim != 2 or (array < 0).any():
            raise ValueError(f"fixations: expected counts [H, W] >= 0, got shape {array.shape}")
        rows, columns = array.shape
        flat = array.ravel().astype(np.int64)
        pixels = np.repeat(np.arange(flat.size, dtype=np.int32), flat)
        return cls((rows, columns), pixels)

    @classmethod
    def union(cls, parts: Sequence["Fixations"], shape: tuple[int, int]) -> Self:
        """All fixations of `parts` (all of `shape`, perhaps none) together; repeats add up."""
        for part in parts:
            check_shape("fixations", part.shape, shape)
        pixels = [part.pixels for part in parts]
        return cls(shape, np.concatenate([np.zeros(0, np.int32), *pixels]))

    @property
    def total(self) -> int:
        """Number of fixations."""
        return self.pixels.size

    def counts(self) -> IntArray:
        """Fixations per pixel, int64 [H, W]."""
        rows, columns = self.shape
        return np.bincount(self.pixels, minlength=rows * columns).reshape(self.shape)


FixationsLike: TypeAlias = Fixations | IntArray
"""Fixations, or their counts as int [H, W]."""


def as_fixations(value: FixationsLike) -> Fixations:
    """`value` as Fixations; TypeError for a density."""
    return value if isinstance(value, Fixations) else Fixations.from_counts(value)


def check_shape(name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """ValueError that calls the array `name` unless it has the expected shape."""
    if tuple(found) != tuple(expected):
        raise ValueError(f"{name}: expected shape {tuple(expected)}, got {tuple(found)}")


def nss(saliency: FloatArray, fixations: FixationsLike) -> float | None:
    """Normalised scanpath saliency: mean z-score of the map at the fixations; chance is 0.

    saliency [H, W] of any scale, fixations [H, W] -> float; None where undefined: no fixation,
    a map that is constant (population standard deviation up to 1e-8) or not finite.
    """
    points = as_fixations(fixations)
    check_shape("saliency", saliency.shape, points.shape)
    if not points.total or not np.isfinite(saliency).all():
        return None
    # Float64 here: the deviation of a constant float32 map is rounding of its mean, not 0.
    if saliency.std(dtype=np.float64) <= _NO_SPREAD:
        return None
    # In the map's own precision, as the published numbers of float32 maps are.
    scores = (saliency.ravel()[points.pixels] - saliency.mean()) / saliency.std()
    return float(scores.mean(dtype=np.float64))


def auc(positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """ROC AUC by ranks, a tie counting 1/2: positives [P], negatives [..., N] -> float64 [...].

    The share of pairs in which the positive is the larger: equal to sklearn's `roc_auc_score`.
    """
    pairs = positives.size * negatives.shape[-1]
    return np.asarray(_wins(positives, negatives).sum(axis=-1) / pairs, np.float64)


def _wins(positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """How many positives lie above each negative, ties as 1/2: float64, shaped as `negatives`."""
    ranked = np.sort(positives)
    above = positives.size - np.searchsorted(ranked, negatives, side="right")
    at_least = positives.size - np.searchsorted(ranked, negatives, side="left")
    return np.asarray(0.5 * (above + at_least), np.float64)


def draw_pixels(
    fixations: Fixations, size: tuple[int, ...], *, seed: int
) -> tuple[IntArray, IntArray]:
    """Draw pixels with replacement, each as likely as it was fixated.

    Returns the P distinct fixated pixels, int [P], and indices into them, int64 `size`. The draw
    is that of `RandomState(seed).choice(H * W, size, p=counts / total)`, number for number, but
    its cumulative sums are over the fixated pixels only: the others add 0.
    """
    counts = fixations.counts().ravel()
    distinct = np.flatnonzero(counts)
    cumulative = np.cumsum(counts[distinct] / fixations.total)
    cumulative /= cumulative[-1]
    uniform = np.random.RandomState(seed).random_sample(size)
    return distinct, _first_above(cumulative, uniform, counts[distinct])


def _first_above(cumulative: FloatArray, uniform: FloatArray, counts: IntArray) -> IntArray:
    """`np.searchsorted(cumulative, uniform, side="right")`, several times faster.

    `cumulative` is that of the whole numbers `counts`, but for rounding: so the place among them
    is known at once, and rounding can have moved it by one.
    """
    total = counts.sum()
    place = np.repeat(np.arange(counts.size), counts)
    index = place[np.minimum((uniform * total).astype(np.int64), total - 1)]
    index += cumulative[index] <= uniform
    index -= (index > 0) & (uniform < cumulative[index - 1])
    return np.asarray(index)


def shuffled_auc(
    saliency: FloatArray,
    fixations: FixationsLike,
    others: FixationsLike,
    *,
    splits: int = 100,
    seed: int = 42,
) -> float | None:
    """Shuffled AUC: can the map tell this frame's fixations from those of other frames?

    saliency [H, W], fixations and others [H, W] -> mean over `splits` draws of as many negatives
    as there are fixations, taken from `others`; chance is 0.5. None where undefined: no fixation
    here or in the others, a map that is not finite or whose extremes are close (rtol 1e-5).
    """
    points, background = as_fixations(fixations), as_fixations(others)
    check_shape("saliency", saliency.shape, points.shape)
    check_shape("others", background.shape, points.shape)
    low, high = float(saliency.min()), float(saliency.max())
    varies = bool(np.isfinite([low, high]).all() and not np.isclose(low, high))
    if not varies or not points.total or not background.total:
        return None
    values = np.asarray(saliency, np.float64).ravel()
    distinct, draws = draw_pixels(background, (splits, points.total), seed=seed)
    # Every split draws from the same few pixels, so each of those is ranked only once.
    wins = _wins(values[points.pixels], values[distinct])
    return float(wins[draws].mean() / points.total)
