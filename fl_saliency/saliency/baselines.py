"""Maps that know nothing of the network: what any method must be better than."""

import numpy as np

from fl_saliency.base import FloatArray, UInt8Array

__all__ = ["centre_map", "frame_difference_maps"]

CENTRE_SIGMA = 0.25
"""Width of the centre map, in parts of the frame's side."""


def centre_map(size: tuple[int, int], *, sigma: float = CENTRE_SIGMA) -> FloatArray:
    """A Gaussian around the middle of a frame of `size` (H, W), peak 1: float32 [H, W]."""
    rows, columns = (
        np.exp(-((np.arange(length) - (length - 1) / 2) ** 2) / (2 * (sigma * length) ** 2))
        for length in size
    )
    return np.outer(rows, columns).astype(np.float32)


def frame_difference_maps(obs: UInt8Array) -> FloatArray:
    """How much each pixel of the newest frame differs from the one before, in grey levels.

    obs uint8 [B, H, W, C], newest frame last, C at least 2 -> float32 [B, H, W].
    """
    newest = obs[..., -2:].astype(np.float32)
    return np.asarray(np.abs(newest[..., 1] - newest[..., 0]))
