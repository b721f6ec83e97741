"""Metrics between distributions: KL(blurred fixations || map), as the benchmark's paper has it.

The direction is in the name: gaze is the truth P, the map the model Q. KL is not symmetric.
"""

import cv2
import numpy as np
from scipy.special import rel_entr

from fl_saliency.base import FloatArray
from fl_saliency.metrics.fixation import Fixations, FixationsLike

__all__ = ["blur_fixations", "kl_blurred_fixations_to_map"]

_ZERO = 1e-8
"""Map values up to this are zero to KL: log(P / Q) would say more of rounding than of the map."""


def blur_fixations(fixations: FixationsLike, *, sigma: float) -> FloatArray:
    """Fixations [H, W] -> density float64 [H, W] that sums to 1; zeros if there is no fixation.

    A Gaussian of `sigma` pixels, cut at four sigma, mirrored at the border without the edge pixel.
    """
    points = fixations if isinstance(fixations, Fixations) else Fixations.from_counts(fixations)
    counts = points.counts().astype(np.float64)
    blurred = np.asarray(
        cv2.GaussianBlur(counts, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101), np.float64
    )
    return blurred / blurred.sum() if points.total else blurred


def kl_blurred_fixations_to_map(
    fixations: FixationsLike, saliency: FloatArray, *, sigma: float
) -> float | None:
    """KL(P || Q) in nats: P the blurred fixations, Q the map, each summing to 1; lower is better.

    fixations [H, W], saliency [H, W] >= 0 of any scale, sigma in pixels -> float >= 0; None where
    undefined: no fixation, a map that is not finite or is 0 (up to 1e-8) at a pixel where P is not.
    A negative map raises ValueError.
    """
    gaze = blur_fixations(fixations, sigma=sigma)
    if saliency.shape != gaze.shape:
        raise ValueError(f"saliency: expected shape {gaze.shape}, got {saliency.shape}")
    model = np.asarray(saliency, np.float64)
    if not gaze.any() or not np.isfinite(model).all():
        return None
    if model.min() < 0:
        raise ValueError(f"saliency: expected a map >= 0, got a minimum of {model.min()}")
    if (model[gaze > 0] <= _ZERO).any():
        return None
    # Rounding can leave -1e-17 where P and Q are the same.
    return max(0.0, float(rel_entr(gaze, model / model.sum()).sum()))
