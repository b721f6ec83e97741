"""An agent whose outputs are known functions of the pixels."""

from collections.abc import Mapping

import numpy as np

from fl_saliency.base import (
    AttentionGeometry,
    Derivatives,
    FloatArray,
    IntArray,
    PolicyStep,
    UInt8Array,
)

__all__ = ["RegionAgent"]


class RegionAgent:
    """Action a's logit is the mean brightness of region a of the newest frame, times 20.

    Region 0 lies around (20, 20), region 1 around (60, 60); actions 2 and 3 never change.
    """

    name = "regions"
    num_actions = 4
    geometry: AttentionGeometry | None = None
    layers: Mapping[str, tuple[int, ...]] = {"pi": (4,), "vf": (1,)}
    feature_layer: str | None = None
    pooling = None
    regions = (np.s_[12:28, 12:28], np.s_[52:68, 52:68])

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def scores(self, obs: UInt8Array) -> FloatArray:
        logits = np.zeros((len(obs), 4), np.float32)
        for action, (rows, columns) in enumerate(self.regions):
            logits[:, action] = obs[:, rows, columns, -1].mean(axis=(1, 2)) * (20 / 255)
        return logits

    def value(self, obs: UInt8Array) -> FloatArray:
        return self.scores(obs)[:, 1]

    def step(self, obs: UInt8Array) -> PolicyStep:
        raise NotImplementedError

    def attention(self, obs: UInt8Array) -> FloatArray:
        raise NotImplementedError

    def activations(self, obs: UInt8Array, layer: str) -> FloatArray:
        return {"pi": self.scores(obs), "vf": self.value(obs)[:, None]}[layer]

    def layer_geometry(self, layer: str) -> AttentionGeometry | None:
        return None

    def derivatives(
        self, pixels: FloatArray, output: str, index: IntArray, *, by: str | None = None
    ) -> Derivatives:
        chosen = np.ones(len(pixels), int) if output in ("value", "vf") else index
        gradients = np.zeros(pixels.shape, np.float32)
        for row, action in enumerate(chosen):
            if action < 2:
                area = self.regions[action]
                gradients[(row, *area, -1)] = 20 / 255 / gradients[(row, *area, -1)].size
        values = (gradients * pixels).sum(axis=(1, 2, 3))
        return Derivatives(values=values, points=pixels, gradients=gradients)
