"""Saliency by blurring: how much a network's output changes where its input is blurred.

Source: Greydanus et al. 2018, "Visualizing and Understanding Atari Agents", arXiv 1711.00138,
equations 1 and 2. The network is passed in as a function, so its policy, its value or one action's
logit can be explained.
"""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import cv2
import numpy as np

from fl_saliency.base import FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError

__all__ = ["BATCH", "BLUR_SIGMA", "SIGMA", "STRIDE", "perturbation_maps", "perturbation_scores"]

ScoreFn: TypeAlias = Callable[[UInt8Array], FloatArray]
"""Observations uint8 [N, H, W, C] -> scores [N, K] or [N], any N; each row by itself."""

_Change: TypeAlias = tuple[tuple[int, int, int], tuple[slice, slice], FloatArray]
"""A cell (frame, i, j), the window (rows, columns) its mask changes, and the new grey levels."""

SIGMA = 5.0
BLUR_SIGMA = 3.0
STRIDE = 5
BATCH = 256
"""Forward passes at a time: twice as many are 5 % faster for the Nature network on 2 cores."""


def perturbation_scores(
    score_fn: ScoreFn,
    obs: UInt8Array,
    *,
    actions: IntArray | None = None,
    sigma: float = SIGMA,
    blur_sigma: float = BLUR_SIGMA,
    stride: int = STRIDE,
    batch: int = BATCH,
) -> FloatArray:
    """How much the score changes with a blur around each point of a grid, float32 [B, h, w].

    obs uint8 [B, H, W, C]: stacks of frames, of which all channels are perturbed alike. Cell
    (i, j) is 0.5 * ||f(obs) - f(perturbed)||^2, the perturbed observation being drawn towards its
    Gaussian blur (of `blur_sigma` pixels) by a mask exp(-d^2 / (2 sigma^2)), where d is a pixel's
    distance from pixel (i * stride, j * stride); h = ceil(H / stride), w = ceil(W / stride).

    score_fn is an Agent's `scores` for its policy or `value` for its value. With `actions` int [B]
    only the score of that action counts. score_fn must take any number of observations, up to
    `batch` of them, and copy those it keeps: their memory is used again.

    A perturbed observation is rounded to whole grey levels, as networks here take uint8. So a
    mask has an end (3.5 sigma), and where it changes nothing the score is 0 without a forward pass.
    Raises InputError for arguments out of range and for scores that are not finite.
    """
    _check_arguments(obs, sigma=sigma, blur_sigma=blur_sigma, stride=stride, batch=batch)
    parts = range(0, len(obs), batch)
    original = np.concatenate([_scores(score_fn, obs[part : part + batch]) for part in parts])
    _check_actions(actions, original.shape)
    grid = (len(obs), *(len(range(0, size, stride)) for size in obs.shape[1:3]))
    changes = np.zeros(grid, np.float32)
    kernel = _mask(sigma, obs.shape[3])
    perturbed = _perturbed(obs, kernel, blur_sigma, stride)
    for images, cells in _batches(perturbed, obs, batch):
        frames = cells[0]
        differences = _scores(score_fn, images) - original[frames]
        if actions is not None:
            differences = differences[np.arange(frames.size), actions[frames], None]
        changes[cells] = 0.5 * np.square(differences).sum(axis=1)
    return changes


def perturbation_maps(scores: FloatArray, size: tuple[int, int], *, stride: int) -> FloatArray:
    """Spread scores [B, h, w] of `perturbation_scores` over the pixels: float32 [B, H, W].

    Bilinear between the centres of the masks, so a map has a cell's score at the pixel that cell
    stands for; beyond the last centres it is constant. `size` is (H, W), in pixels like `stride`.
    """
    _check_positive("stride", stride)
    grid = tuple(len(range(0, length, stride)) for length in size)
    if scores.ndim != 3 or scores.shape[1:] != grid:
        raise InputError(
            f"scores: expected shape [B, {grid[0]}, {grid[1]}] for stride {stride} on {size} "
            f"pixels, got {list(scores.shape)}"
        )
    rows, columns = (_interpolation(length, stride) for length in size)
    return np.asarray(rows @ scores.astype(np.float32) @ columns.T)


def _interpolation(length: int, stride: int) -> FloatArray:
    """Weights float32 [length, cells] of linear interpolation between every `stride`-th pixel."""
    cells = np.arange(len(range(0, length, stride)))
    place = np.minimum(np.arange(length) / stride, cells[-1])
    return np.asarray(np.maximum(0, 1 - np.abs(place[:, None] - cells)), np.float32)


def _mask(sigma: float, channels: int) -> FloatArray:
    """The mask around its centre, float32 [2 reach + 1, 2 reach + 1, channels], peak 1.

    Beyond its reach it is below 1 / 510, and what it adds (at most 255 / 510) rounds to 0.
    """
    reach = math.ceil(sigma * math.sqrt(2 * math.log(510)))
    profile = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    # A whole copy a channel: NumPy then multiplies rows of a window, not a few channels at a time.
    return np.repeat(np.outer(profile, profile)[..., None].astype(np.float32), channels, axis=-1)


def _blur_changes(levels: FloatArray, blur_sigma: float) -> FloatArray:
    """What blurring adds to a frame's grey `levels`, both float32 [H, W, C]."""
    # Four sigma to each side and mirrored with the edge pixel: what SciPy's gaussian_filter does.
    blurred = cv2.GaussianBlur(levels, (0, 0), blur_sigma, borderType=cv2.BORDER_REFLECT)
    return np.asarray(blurred.reshape(levels.shape) - levels)


def _perturbed(
    obs: UInt8Array, mask: FloatArray, blur_sigma: float, stride: int
) -> Iterator[_Change]:
    """The changes of all masks that change anything, frame by frame."""
    height, width = obs.shape[1:3]
    rows, columns = _windows(height, stride, len(mask)), _windows(width, stride, len(mask))
    for number, frame in enumerate(obs):
        levels = frame.astype(np.float32)
        added = _blur_changes(levels, blur_sigma)
        for i, (row, mask_row) in enumerate(rows):
            for j, (column, mask_column) in enumerate(columns):
                window = added[row, column] * mask[mask_row, mask_column]
                np.rint(window, out=window)
                if window.any():
                    window += levels[row, column]
                    yield (number, i, j), (row, column), window


def _windows(length: int, stride: int, size: int) -> list[tuple[slice, slice]]:
    """For each centre along one axis: the pixels under a mask of `size`, and the mask's part."""
    reach = size // 2
    found = []
    for centre in range(0, length, stride):
        first, end = max(0, centre - reach), min(length, centre + reach + 1)
        offset = reach - centre
        found.append((slice(first, end), slice(first + offset, end + offset)))
    return found


def _batches(
    perturbed: Iterator[_Change], obs: UInt8Array, batch: int
) -> Iterator[tuple[UInt8Array, tuple[IntArray, ...]]]:
    """Up to `batch` perturbed observations [N, H, W, C], a view used again, and their cells."""
    images = np.empty((batch, *obs.shape[1:]), np.uint8)
    cells: list[tuple[int, int, int]] = []
    for cell, (row, column), window in perturbed:
        image = images[len(cells)]
        image[:] = obs[cell[0]]
        image[row, column] = window
        cells.append(cell)
        if len(cells) == batch:
            yield images, tuple(np.array(cells).T)
            cells = []
    if cells:
        yield images[: len(cells)], tuple(np.array(cells).T)


def _scores(score_fn: ScoreFn, obs: UInt8Array) -> FloatArray:
    """The scores of `obs` as float32 [N, K], checked, and not in memory that will be used again."""
    found = np.array(score_fn(obs), np.float32)
    if found.ndim not in (1, 2) or len(found) != len(obs):
        raise InputError(
            f"score_fn: expected scores [{len(obs)}, K] or [{len(obs)}], got {list(found.shape)}"
        )
    if not np.isfinite(found).all():
        raise InputError(f"score_fn: expected finite scores, got {found[~np.isfinite(found)][0]}")
    return found.reshape(len(obs), -1)


def _check_arguments(
    obs: UInt8Array, *, sigma: float, blur_sigma: float, stride: int, batch: int
) -> None:
    if obs.dtype != np.uint8 or obs.ndim != 4 or not obs.size:
        raise InputError(
            f"obs: expected uint8 [B, H, W, C], none of them 0, got {obs.dtype} {list(obs.shape)}"
        )
    for name, value in {"sigma": sigma, "blur_sigma": blur_sigma}.items():
        if not 0 < value <= max(obs.shape[1:3]):
            raise InputError(f"{name} {value}: expected pixels, above 0 and within the frame")
    _check_positive("stride", stride)
    _check_positive("batch", batch)


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{name} {value}: expected 1 or more")


def _check_actions(actions: IntArray | None, shape: tuple[int, ...]) -> None:
    if actions is None:
        return
    if actions.shape != shape[:1] or actions.dtype.kind not in "iu":
        raise InputError(
            f"actions: expected int [{shape[0]}], got {actions.dtype} {list(actions.shape)}"
        )
    for action in actions[(actions < 0) | (actions >= shape[1])]:
        raise InputError(f"actions: expected 0 to {shape[1] - 1}, got {action}")
