"""Saliency by occlusion: how much an output falls when a box of the input is painted over.

Source: Zeiler and Fergus 2014, "Visualizing and Understanding Convolutional Networks", section 4.
"""

from collections.abc import Iterator

import numpy as np

from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.errors import InputError
from fl_saliency.saliency.probing import (
    BATCH,
    Change,
    ScoreFn,
    check_observations,
    check_positive,
    probe,
    score_all,
    windows,
)

__all__ = ["occlusion_differences"]


def occlusion_differences(
    score_fn: ScoreFn,
    obs: UInt8Array,
    *,
    size: int = 9,
    stride: int = 5,
    fill: int | None = None,
    batch: int = BATCH,
) -> FloatArray:
    """Scores of obs minus those with a box painted over, float32 [B, h, w, K].

    obs uint8 [B, H, W, C]. The box of cell (i, j) has `size` (odd) pixels a side, the middle one
    at (i * stride, j * stride), and gets the grey level `fill`, or the median of each channel.
    `score_fn` gives K numbers; boxes that change nothing are 0. Raises InputError for arguments
    out of range and for scores that are not finite.
    """
    check_observations(obs)
    check_positive("stride", stride)
    check_positive("batch", batch)
    if size < 1 or size % 2 == 0 or size > max(obs.shape[1:3]):
        raise InputError(f"size {size}: expected an odd number of pixels within the frame")
    if fill is not None and not 0 <= fill <= 255:
        raise InputError(f"fill {fill}: expected a grey level, 0 to 255")
    original = score_all(score_fn, obs, batch=batch)
    grid = [len(range(0, length, stride)) for length in obs.shape[1:3]]
    differences = np.zeros((len(obs), *grid, original.shape[1]), np.float32)
    boxes = _boxes(obs, size // 2, stride, fill)
    for cells, scores in probe(score_fn, obs, boxes, batch=batch):
        differences[cells] = original[cells[0]] - scores
    return differences


def _boxes(obs: UInt8Array, reach: int, stride: int, fill: int | None) -> Iterator[Change]:
    rows, columns = (windows(length, stride, reach) for length in obs.shape[1:3])
    for number, frame in enumerate(obs):
        paint = np.median(frame, axis=(0, 1)).astype(np.uint8)
        if fill is not None:
            paint[:] = fill
        for i, (row, _) in enumerate(rows):
            for j, (column, _) in enumerate(columns):
                under = frame[row, column]
                if (under != paint).any():
                    yield (number, i, j), (row, column), np.broadcast_to(paint, under.shape)
