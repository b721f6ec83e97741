"""Means over states with percentile bootstrap intervals (Efron and Tibshirani 1993, chapter 13)."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fl_saliency.base import FloatArray
from fl_saliency.seeding import stream

__all__ = ["RESAMPLES", "Interval", "band", "interval", "ratio_interval"]

RESAMPLES = 1000
_PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean over states and its 95 % interval; None where there are too few states for it."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    """States that count."""
    undefined: int
    """States that do not, since the figure is undefined there."""

    def __str__(self) -> str:
        if self.mean is None:
            return "undefined"
        if self.low is None or self.high is None:
            return f"{self.mean:.3g}"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


@lru_cache(maxsize=8)
def _weights(states: int, seed: int) -> FloatArray:
    """How much of each resample each state is, float64 [RESAMPLES, states]; rows add up to 1."""
    shares = np.full(states, 1 / states)
    return stream("metrics", seed).multinomial(states, shares, size=RESAMPLES) / states


def interval(values: FloatArray, *, seed: int) -> Interval:
    """The mean of `values` [S], NaN where undefined, and its interval."""
    finite = np.asarray(values, np.float64)[np.isfinite(values)]
    counts = {"n": finite.size, "undefined": values.size - finite.size}
    if not finite.size:
        return Interval(mean=None, low=None, high=None, **counts)
    mean = float(finite.mean())
    if finite.size == 1:
        return Interval(mean=mean, low=None, high=None, **counts)
    low, high = np.percentile(_weights(finite.size, seed) @ finite, _PERCENTILES)
    # Rounding must not put the mean of equal values outside its interval.
    return Interval(mean=mean, low=min(float(low), mean), high=max(float(high), mean), **counts)


def ratio_interval(above: FloatArray, below: FloatArray, *, seed: int) -> Interval:
    """The ratio of the means of two paired rows of finite values [S] >= 0; None over a mean of 0.

    The interval's upper end is None if some resample has nothing below.
    """
    counts = {"n": above.size, "undefined": 0}
    if not below.size or below.mean() == 0:
        return Interval(mean=None, low=None, high=None, **counts)
    mean = float(above.mean() / below.mean())
    if below.size == 1:
        return Interval(mean=mean, low=None, high=None, **counts)
    weights = _weights(above.size, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num((weights @ above) / (weights @ below), nan=np.inf, posinf=np.inf)
    low, high = np.percentile(ratios, _PERCENTILES, method="nearest")
    bounds = [float(bound) if np.isfinite(bound) else None for bound in (low, high)]
    return Interval(mean=mean, low=bounds[0], high=bounds[1], **counts)


def band(curves: FloatArray, *, seed: int) -> tuple[FloatArray, FloatArray]:
    """The pointwise interval of the mean of `curves` [S, K], all finite: two rows [K]."""
    if len(curves) == 1:
        return curves[0], curves[0]
    low, high = np.percentile(_weights(len(curves), seed) @ curves, _PERCENTILES, axis=0)
    return low, high
