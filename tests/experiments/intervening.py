"""An agent without a network, and a game to change, for tests of interventions."""

from typing import Any

import numpy as np

from fl_saliency.base import FloatArray, PolicyStep, UInt8Array
from fl_saliency.envs.protocol import resolve_protocol

__all__ = ["BREAKOUT", "SEED", "PixelAgent"]

BREAKOUT = resolve_protocol("BreakoutNoFrameskip-v4")
SEED = 1000


class PixelAgent:
    """Scores and values are sums of pixels with random weights; actions are sampled."""

    geometry = None
    num_actions = 4

    def __init__(self, seed: int = SEED) -> None:
        self.rng = np.random.default_rng(seed)
        self._weights = np.random.default_rng(0).normal(size=(12 * 12 * 4, 5)).astype(np.float32)

    def scores(self, obs: UInt8Array) -> FloatArray:
        return self._sums(obs)[:, :4]

    def value(self, obs: UInt8Array) -> FloatArray:
        return self._sums(obs)[:, 4]

    def step(self, obs: UInt8Array) -> PolicyStep:
        scores = self.scores(obs)
        noise = -np.log(-np.log(self.rng.random(scores.shape)))
        zeros = np.zeros(len(obs), np.float32)
        actions = (scores + noise).argmax(axis=1)
        return PolicyStep(actions=actions, neglogp=zeros, values=self.value(obs), attention=None)

    def _sums(self, obs: UInt8Array) -> Any:
        squares = obs.reshape(len(obs), 12, 7, 12, 7, 4).mean(axis=(2, 4), dtype=np.float32)
        return (squares.reshape(len(obs), -1) / 255) @ self._weights
