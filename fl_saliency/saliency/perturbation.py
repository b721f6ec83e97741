"""Saliency by blurring: how much a network's output changes where its input is blurred.

Sources: Greydanus et al. 2018, "Visualizing and Understanding Atari Agents", arXiv 1711.00138,
equations 1 and 2; Puri et al. 2020, "Explain Your Move", arXiv 1912.12191, section 3 (SARFA). The
network is passed in as a function, so its policy, its value or one action's logit can be explained.
"""

import math
from collections.abc import Iterator
from typing import Literal, TypeAlias

import cv2
import numpy as np
from scipy.special import rel_entr, softmax

from fl_saliency.base import FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.saliency.probing import (
    BATCH,
    Change,
    Probe,
    ScoreFn,
    check_actions,
    check_observations,
    check_positive,
    probe,
    score_all,
    spread,
    windows,
)

__all__ = [
    "BLUR_SIGMA",
    "CHANNELS",
    "SIGMA",
    "STRIDE",
    "Channels",
    "perturbation_maps",
    "perturbation_scores",
    "sarfa_scores",
]

SIGMA = 5.0
BLUR_SIGMA = 3.0
STRIDE = 5

Channels: TypeAlias = Literal["together", "mean", "max"]
"""Whether the frames of a stack are blurred together, or each alone and the mean or max taken."""
CHANNELS: tuple[str, ...] = ("together", "mean", "max")


def perturbation_scores(
    score_fn: ScoreFn,
    obs: UInt8Array,
    *,
    actions: IntArray | None = None,
    sigma: float = SIGMA,
    blur_sigma: float = BLUR_SIGMA,
    stride: int = STRIDE,
    channels: Channels = "together",
    batch: int = BATCH,
) -> FloatArray:
    """How much the score changes with a blur around each point of a grid, float32 [B, h, w].

    obs uint8 [B, H, W, C]: stacks of frames. Cell (i, j) is 0.5 * ||f(obs) - f(perturbed)||^2, the
    perturbed observation being drawn towards its Gaussian blur (of `blur_sigma` pixels) by a mask
    exp(-d^2 / (2 sigma^2)), where d is a pixel's distance from pixel (i * stride, j * stride);
    h = ceil(H / stride), w = ceil(W / stride). All channels are perturbed alike, or one at a time.

    score_fn is an Agent's `scores` for its policy or `value` for its value. With `actions` int [B]
    only the score of that action counts.

    A perturbed observation is rounded to whole grey levels, as networks here take uint8. So a
    mask has an end (3.5 sigma), and where it changes nothing the score is 0 without a forward pass.
    Raises InputError for arguments out of range and for scores that are not finite.
    """
    _check_arguments(obs, sigma, blur_sigma, stride, channels, batch)
    original = score_all(score_fn, obs, batch=batch)
    if actions is not None:
        check_actions(actions, *original.shape)
    changes = np.zeros(_grid(obs, stride, channels), np.float32)
    for cells, scores in _probes(score_fn, obs, sigma, blur_sigma, stride, channels, batch):
        frames = cells[0]
        differences = scores - original[frames]
        if actions is not None:
            differences = differences[np.arange(frames.size), actions[frames], None]
        changes[cells] = 0.5 * np.square(differences).sum(axis=1)
    return _joined(changes, channels)


def sarfa_scores(
    score_fn: ScoreFn,
    obs: UInt8Array,
    *,
    actions: IntArray,
    sigma: float = SIGMA,
    blur_sigma: float = BLUR_SIGMA,
    stride: int = STRIDE,
    channels: Channels = "together",
    batch: int = BATCH,
) -> FloatArray:
    """Specific and relevant feature attribution of `actions` int [B], float32 [B, h, w] in 0..1.

    The perturbations of `perturbation_scores`; of each, with P the softmax over the actions and R
    that over all but the action a: how much P(a) falls (specificity, 0 if it rises), and
    1 / (1 + KL(R perturbed || R)) (relevance: nothing else was moved); a cell is their harmonic
    mean. `score_fn` gives logits or Q-values [N, actions], at least two.
    """
    _check_arguments(obs, sigma, blur_sigma, stride, channels, batch)
    original = score_all(score_fn, obs, batch=batch)
    if original.shape[1] < 2:
        raise InputError("score_fn: expected scores of at least 2 actions, got 1")
    check_actions(actions, *original.shape)
    found = np.zeros(_grid(obs, stride, channels), np.float32)
    for cells, scores in _probes(score_fn, obs, sigma, blur_sigma, stride, channels, batch):
        frames = cells[0]
        found[cells] = _sarfa(original[frames], scores, actions[frames])
    return _joined(found, channels)


def _sarfa(before: FloatArray, after: FloatArray, actions: IntArray) -> FloatArray:
    """scores [N, A] before and after, actions [N] -> [N] in 0..1."""
    rows = np.arange(len(actions))
    fall = softmax(before, axis=1)[rows, actions] - softmax(after, axis=1)[rows, actions]
    others = np.ones(before.shape, bool)
    others[rows, actions] = False
    rest_before, rest_after = (
        softmax(scores[others].reshape(len(rows), -1).astype(np.float64), axis=1)
        for scores in (before, after)
    )
    relevance = 1 / (1 + rel_entr(rest_after, rest_before).sum(axis=1))
    specific = np.maximum(fall, 0)
    return np.asarray(2 * specific * relevance / (specific + relevance), np.float32)


def perturbation_maps(scores: FloatArray, size: tuple[int, int], *, stride: int) -> FloatArray:
    """Spread scores [B, h, w] of `perturbation_scores` over the pixels: float32 [B, H, W].

    Bilinear between the centres of the masks, so a map has a cell's score at the pixel that cell
    stands for; beyond the last centres it is constant. `size` is (H, W), in pixels like `stride`.
    """
    check_positive("stride", stride)
    grid = tuple(len(range(0, length, stride)) for length in size)
    if scores.ndim != 3 or scores.shape[1:] != grid:
        raise InputError(
            f"scores: expected shape [B, {grid[0]}, {grid[1]}] for stride {stride} on {size} "
            f"pixels, got {list(scores.shape)}"
        )
    return spread(scores, size, stride=stride)


def _grid(obs: UInt8Array, stride: int, channels: Channels) -> tuple[int, ...]:
    rows, columns = (len(range(0, size, stride)) for size in obs.shape[1:3])
    return len(obs), rows, columns, 1 if channels == "together" else obs.shape[3]


def _joined(found: FloatArray, channels: Channels) -> FloatArray:
    """[B, h, w, parts of the stack] -> [B, h, w]."""
    return np.asarray(found.max(axis=3) if channels == "max" else found.mean(axis=3))


def _probes(
    score_fn: ScoreFn,
    obs: UInt8Array,
    sigma: float,
    blur_sigma: float,
    stride: int,
    channels: Channels,
    batch: int,
) -> Iterator[Probe]:
    changes = _blurs(obs, _mask(sigma, obs.shape[3]), blur_sigma, stride, channels)
    return probe(score_fn, obs, changes, batch=batch)


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


def _blurs(
    obs: UInt8Array, mask: FloatArray, blur_sigma: float, stride: int, channels: Channels
) -> Iterator[Change]:
    """The changes of all masks that change anything, frame by frame; cells (frame, i, j, part)."""
    rows, columns = (windows(size, stride, len(mask) // 2) for size in obs.shape[1:3])
    each = [slice(channel, channel + 1) for channel in range(obs.shape[3])]
    parts = [slice(None)] if channels == "together" else each
    for number, frame in enumerate(obs):
        levels = frame.astype(np.float32)
        added = _blur_changes(levels, blur_sigma)
        for i, (row, mask_row) in enumerate(rows):
            for j, (column, mask_column) in enumerate(columns):
                change = added[row, column] * mask[mask_row, mask_column]
                np.rint(change, out=change)
                for part, channel in enumerate(parts):
                    if change[..., channel].any():
                        window = levels[row, column].copy()
                        window[..., channel] += change[..., channel]
                        yield (number, i, j, part), (row, column), window


def _check_arguments(
    obs: UInt8Array, sigma: float, blur_sigma: float, stride: int, channels: str, batch: int
) -> None:
    check_observations(obs)
    for name, value in {"sigma": sigma, "blur_sigma": blur_sigma}.items():
        if not 0 < value <= max(obs.shape[1:3]):
            raise InputError(f"{name} {value}: expected pixels, above 0 and within the frame")
    check_positive("stride", stride)
    check_positive("batch", batch)
    if channels not in CHANNELS:
        raise unknown_choice("channels", channels, CHANNELS)
