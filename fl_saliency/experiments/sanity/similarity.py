"""How alike two saliency maps are, by the measures that Adebayo et al. 2018 (arXiv 1810.03292) use.

Spearman's rank correlation; SSIM (Wang et al. 2004, doi:10.1109/TIP.2003.819861); and Pearson's
correlation of HOG features (Dalal and Triggs 2005, doi:10.1109/CVPR.2005.177).
"""

from collections.abc import Callable, Mapping

import cv2
import numpy as np
from scipy.stats import rankdata

from fl_saliency.base import FloatArray

__all__ = [
    "SIMILARITIES",
    "hog_features",
    "hog_similarity",
    "similarities",
    "spearman",
    "spearman_nonzero",
    "ssim",
]

_WINDOW, _SIGMA = (11, 11), 1.5
_C1, _C2 = 0.01**2, 0.03**2
"""Wang et al.'s constants, (K1 L)^2 and (K2 L)^2, for maps in 0..1 (L = 1)."""

_BATCH = 64
"""Maps compared at a time, so that memory does not grow with their number."""
CELL = 7
"""Side of a HOG cell, in pixels: 12 x 12 of them."""
BINS = 9
"""Orientations from 0 to 180 degrees."""


def spearman(maps: FloatArray, others: FloatArray) -> FloatArray:
    """Rank correlation of maps [S, H, W] with `others`, [S]; NaN where one is constant."""
    return _pearson(_ranks(maps), _ranks(others))


def spearman_nonzero(maps: FloatArray, others: FloatArray) -> FloatArray:
    """`spearman` on the pixels alone at which one of two maps [H, W] is not 0.

    Methods that multiply by the input are 0 on black pixels whatever the network, which on a black
    game makes any two maps alike (Sundararajan and Taly 2018, arXiv 1806.04205).
    """
    found = np.full(len(maps), np.nan)
    for state, (one, other) in enumerate(zip(maps, others, strict=True)):
        where = (one != 0) | (other != 0)
        if where.any():
            found[state] = _pearson(_ranks(one[where][None]), _ranks(other[where][None]))[0]
    return found


def _ranks(maps: FloatArray) -> FloatArray:
    return np.asarray(rankdata(maps.reshape(len(maps), -1), axis=1))


def _pearson(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Pearson's r of rows [S, N] with `others`, [S]; NaN where one is constant."""
    first, second = (
        np.asarray(part, np.float64) - part.mean(axis=1, keepdims=True, dtype=np.float64)
        for part in (rows, others)
    )
    scale = np.sqrt(np.square(first).sum(axis=1) * np.square(second).sum(axis=1))
    defined = (np.ptp(rows, axis=1) > 0) & (np.ptp(others, axis=1) > 0) & (scale > 0)
    r = np.full(len(rows), np.nan)
    np.divide((first * second).sum(axis=1), scale, out=r, where=defined)
    return np.asarray(np.clip(r, -1, 1))


def ssim(maps: FloatArray, others: FloatArray) -> FloatArray:
    """Mean structural similarity of maps [S, H, W] with `others`, [S], at most 1.

    Each map is stretched to 0..1 first; the window is Wang et al.'s, a Gaussian of 1.5 pixels
    (11 x 11), mirrored at the borders. NaN where a map is constant.
    """
    pairs = zip(_stretched(maps), _stretched(others), strict=True)
    return np.array([_ssim(first, second) for first, second in pairs])


def _stretched(maps: FloatArray) -> FloatArray:
    """Each map [H, W] to 0..1; NaN all over for a constant one."""
    low = maps.min(axis=(1, 2), keepdims=True).astype(np.float64)
    span = maps.max(axis=(1, 2), keepdims=True) - low
    return np.asarray((maps - low) / np.where(span > 0, span, np.nan))


def _ssim(x: FloatArray, y: FloatArray) -> float:
    if np.isnan(x).any() or np.isnan(y).any():
        return float("nan")
    moments = np.stack([x, y, x * x, y * y, x * y], axis=-1)
    local = cv2.GaussianBlur(moments, _WINDOW, _SIGMA, borderType=cv2.BORDER_REFLECT)
    mx, my, mxx, myy, mxy = np.moveaxis(np.asarray(local), -1, 0)
    likeness = (2 * mx * my + _C1) * (2 * (mxy - mx * my) + _C2)
    return float((likeness / ((mx**2 + my**2 + _C1) * (mxx - mx**2 + myy - my**2 + _C2))).mean())


def hog_similarity(maps: FloatArray, others: FloatArray) -> FloatArray:
    """Pearson's r of the HOG features of maps [S, H, W] and `others`, [S]; NaN if one has none."""
    return _pearson(hog_features(maps), hog_features(others))


def hog_features(maps: FloatArray) -> FloatArray:
    """Histograms of oriented gradients of maps [S, H, W], each stretched to 0..1: [S, F].

    A histogram of 9 unsigned orientations for each cell of 7 x 7 pixels, a gradient's magnitude
    shared linearly by the two nearest; scaled to length 1 in each block of 2 x 2 cells. All 0 for
    a constant map.
    """
    down, right = np.gradient(np.nan_to_num(_stretched(maps)), axis=(1, 2))
    place = np.arctan2(down, right) * (BINS / np.pi)
    magnitude = np.hypot(down, right)
    votes = [magnitude * np.maximum(0, 1 - _distance(place, bin_)) for bin_ in range(BINS)]
    cells = np.stack([_cell_sums(vote) for vote in votes], axis=-1)
    blocks = np.concatenate(
        [cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:]], axis=-1
    )
    length = np.sqrt(np.square(blocks).sum(axis=-1, keepdims=True) + 1e-10)
    return np.asarray((blocks / length).reshape(len(maps), -1))


def _distance(place: FloatArray, bin_: int) -> FloatArray:
    """How far orientations are from a bin, in bins, the short way round."""
    return np.asarray(np.abs((place - bin_ + BINS / 2) % BINS - BINS / 2))


def _cell_sums(pixels: FloatArray) -> FloatArray:
    count, height, width = pixels.shape
    rows, columns = height // CELL, width // CELL
    whole = pixels[:, : rows * CELL, : columns * CELL]
    return np.asarray(whole.reshape(count, rows, CELL, columns, CELL).sum(axis=(2, 4)))


SIMILARITIES: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "spearman": spearman,
    "spearman_nonzero": spearman_nonzero,
    "ssim": ssim,
    "hog": hog_similarity,
}


def similarities(maps: FloatArray, others: FloatArray) -> dict[str, FloatArray]:
    """All of them, each [S], for maps and `others` [S, H, W]."""
    parts = [slice(start, start + _BATCH) for start in range(0, len(maps), _BATCH)]
    return {
        name: np.concatenate([measure(maps[part], others[part]) for part in parts])
        for name, measure in SIMILARITIES.items()
    }
