"""Saliency by gradients, with the model passed in as a function of pixels in 0..1.

Sources: Simonyan et al. 2013, arXiv 1312.6034 (gradient); Shrikumar et al. 2016, arXiv 1605.01713
(gradient times input); Smilkov et al. 2017, arXiv 1706.03825 (SmoothGrad); Sundararajan et al.
2017, arXiv 1703.01365 (integrated gradients); Selvaraju et al. 2017, arXiv 1610.02391 (Grad-CAM).
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from fl_saliency.base import FloatArray, IntArray
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.saliency.probing import check_positive

__all__ = [
    "BATCH",
    "GradientFn",
    "grad_cam",
    "integrated_gradients",
    "join_channels",
    "plain_gradients",
    "smooth_gradients",
]

GradientFn: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]
"""pixels float32 [N, H, W, C] in 0..1, the observation int [N] each belongs to -> gradients.

The gradients are of one number for each, of its own target, by those pixels: [N, H, W, C].
"""

BATCH = 64
"""Backward passes at a time."""


def plain_gradients(
    gradient_fn: GradientFn, pixels: FloatArray, *, batch: int = BATCH
) -> FloatArray:
    """The gradient at each of pixels float32 [B, H, W, C]: float32 [B, H, W, C]."""
    check_positive("batch", batch)
    found = np.empty(pixels.shape, np.float32)
    for start in range(0, len(pixels), batch):
        rows = np.arange(start, min(start + batch, len(pixels)))
        found[rows] = gradient_fn(pixels[rows], rows)
    return found


def smooth_gradients(
    gradient_fn: GradientFn,
    pixels: FloatArray,
    *,
    rng: np.random.Generator,
    samples: int = 25,
    noise: float = 0.15,
    batch: int = BATCH,
) -> FloatArray:
    """SmoothGrad: the mean gradient over `samples` noisy copies, float32 [B, H, W, C].

    The noise is Gaussian; its standard deviation is `noise` times each observation's own range.
    All observations get the same `samples` draws.
    """
    check_positive("samples", samples)
    if not 0 < noise <= 1:
        raise InputError(f"noise {noise}: expected a part of the observation's range, up to 1")
    span = noise * np.ptp(pixels, axis=(1, 2, 3), keepdims=True)
    drawn = rng.standard_normal((samples, *pixels.shape[1:]), np.float32)

    def noisy(rows: IntArray, sample: IntArray) -> FloatArray:
        return np.asarray(pixels[rows] + span[rows] * drawn[sample])

    return _mean_gradients(gradient_fn, pixels, noisy, samples, batch)


def integrated_gradients(
    gradient_fn: GradientFn,
    pixels: FloatArray,
    *,
    baseline: FloatArray | float = 0.0,
    steps: int = 32,
    batch: int = BATCH,
) -> FloatArray:
    """Integrated gradients from `baseline` (black) to the pixels, float32 [B, H, W, C].

    The integral is a sum over the midpoints of `steps` equal parts. Up to its error, the
    attributions of an observation add up to f(pixels) - f(baseline) (completeness).
    """
    check_positive("steps", steps)
    start = np.broadcast_to(np.asarray(baseline, np.float32), pixels.shape)

    def between(rows: IntArray, step: IntArray) -> FloatArray:
        share = ((step + 0.5) / steps).astype(np.float32).reshape(-1, 1, 1, 1)
        return np.asarray(start[rows] + share * (pixels[rows] - start[rows]))

    mean = _mean_gradients(gradient_fn, pixels, between, steps, batch)
    return np.asarray(mean * (pixels - start))


def _mean_gradients(
    gradient_fn: GradientFn,
    pixels: FloatArray,
    variant: Callable[[IntArray, IntArray], FloatArray],
    count: int,
    batch: int,
) -> FloatArray:
    """The mean gradient over `count` variants of each observation."""
    check_positive("batch", batch)
    total = np.zeros(pixels.shape, np.float64)
    for rows, numbers in _pairs(len(pixels), count, batch):
        found = gradient_fn(variant(rows, numbers), rows)
        changes = np.flatnonzero(np.diff(rows, prepend=-1))
        total[rows[changes]] += np.add.reduceat(found, changes, axis=0)
    return np.asarray(total / count, np.float32)


def _pairs(frames: int, count: int, batch: int) -> Iterator[tuple[IntArray, IntArray]]:
    """(observation, variant) pairs, all of an observation's together, `batch` at a time."""
    for first in range(0, frames * count, batch):
        pair = np.arange(first, min(first + batch, frames * count))
        yield pair // count, pair % count


def join_channels(attributions: FloatArray, channels: str) -> FloatArray:
    """Signed attributions [B, H, W, C] -> magnitudes [B, H, W] over the frames of a stack.

    `mean` or `max` of the frames' magnitudes, or `together`: the magnitude of their sum.
    """
    if channels == "together":
        return np.asarray(np.abs(attributions.sum(axis=3)))
    if channels not in ("mean", "max"):
        raise unknown_choice("channels", channels, ("together", "mean", "max"))
    magnitudes = np.abs(attributions)
    return np.asarray(magnitudes.mean(axis=3) if channels == "mean" else magnitudes.max(axis=3))


def grad_cam(activations: FloatArray, gradients: FloatArray) -> FloatArray:
    """Grad-CAM of a layer's activations and gradients [B, h, w, C]: float32 [B, h, w] >= 0.

    Each channel is weighted by the mean of its gradient; what is negative in the sum becomes 0.
    """
    weights = gradients.mean(axis=(1, 2))
    return np.asarray(np.maximum(np.einsum("bhwc,bc->bhw", activations, weights), 0))
