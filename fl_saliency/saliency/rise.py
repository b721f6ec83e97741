"""Saliency by random masks (RISE): which half of the picture keeps an output up?

Source: Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models",
arXiv 1806.07421, equations 5 and 6.
"""

import numpy as np

from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.errors import InputError
from fl_saliency.saliency.probing import (
    BATCH,
    ScoreFn,
    check_observations,
    check_positive,
    score_all,
)

__all__ = ["random_masks", "rise_maps"]


def rise_maps(
    score_fn: ScoreFn, obs: UInt8Array, masks: FloatArray, *, batch: int = BATCH
) -> FloatArray:
    """How the score of each of obs uint8 [B, H, W, C] goes with each pixel's being shown.

    masks float32 [M, H, W] in 0..1, at least two: an observation is multiplied by each of them.
    `score_fn` gives one number an observation. A pixel of the result, float32 [B, H, W], is
    mean((score - its mean) * mask) / var(mask): the paper's weighted sum of masks, less the part
    that is equal everywhere (logits, unlike probabilities, may be below 0), in units of the score.
    """
    check_observations(obs)
    check_positive("batch", batch)
    if masks.ndim != 3 or masks.shape[1:] != obs.shape[1:3] or len(masks) < 2:
        height, width = obs.shape[1:3]
        raise InputError(
            f"masks: expected shape [M, {height}, {width}], M at least 2, got {list(masks.shape)}"
        )
    flat = masks.reshape(len(masks), -1)
    variance = max(float(flat.var()), float(np.finfo(np.float32).tiny))
    maps = np.empty(obs.shape[:3], np.float32)
    for frame, image in enumerate(obs):
        scores = np.concatenate(
            [
                score_all(score_fn, _masked(image, masks[start : start + batch]), batch=batch)
                for start in range(0, len(masks), batch)
            ]
        )
        if scores.shape[1] != 1:
            raise InputError(f"score_fn: expected one number each, got {scores.shape[1]}")
        weights = (scores[:, 0] - scores.mean()) / (len(masks) * variance)
        maps[frame] = (weights @ flat).reshape(obs.shape[1:3])
    return maps


def _masked(image: UInt8Array, masks: FloatArray) -> UInt8Array:
    return np.rint(image * masks[..., None]).astype(np.uint8)


def random_masks(
    rng: np.random.Generator,
    count: int,
    size: tuple[int, int],
    *,
    cells: int = 8,
    share: float = 0.5,
) -> FloatArray:
    """Smooth random masks float32 [count, H, W] in 0..1.

    Each is a grid of cells x cells, which are 1 with probability `share` and else 0, enlarged
    bilinearly and shifted by up to a cell.
    """
    if count < 2 or cells < 1 or not 0 < share < 1:
        raise InputError(
            f"count {count}, cells {cells}, share {share}: expected at least 2, at least 1, and a "
            "number between 0 and 1"
        )
    grids = (rng.random((count, cells + 1, cells + 1)) < share).astype(np.float32)
    rows, columns = (_enlargements(rng, count, length, cells) for length in size)
    return np.asarray(rows @ grids @ columns.transpose(0, 2, 1), np.float32)


def _enlargements(rng: np.random.Generator, count: int, length: int, cells: int) -> FloatArray:
    """Interpolation weights of one axis, each with its own shift: [count, length, cells + 1]."""
    place = np.arange(length) * (cells / length)
    shifted = place + rng.random((count, 1))
    distance = np.abs(shifted[..., None] - np.arange(cells + 1))
    weights = np.maximum(0, 1 - distance)
    # Beyond the last centre: as the last one.
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True), np.float32)
