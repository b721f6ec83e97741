"""Instruments of the workers: clocks in methods, the machine's best matrix product, a bare env."""

import time
from typing import Any

import ale_py
import numpy as np

__all__ = ["BareEnv", "Clock", "best_product"]


class Clock:
    """Adds up the time spent in one method of an object."""

    def __init__(self, owner: Any, name: str) -> None:
        self.seconds = 0.0
        self._call = getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return self._call(*arguments, **options)
        finally:
            self.seconds += time.perf_counter() - started


def best_product(dtype: str, seconds: float) -> float:
    """FLOP/s of the best of many 2048 x 2048 matrix products."""
    import tensorflow as tf

    a, b = (tf.cast(tf.random.normal((2048, 2048)), dtype) for _ in range(2))
    product = tf.function(tf.matmul)
    product(a, b)
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < seconds:
        started = time.perf_counter()
        product(a, b).numpy()
        best = min(best, time.perf_counter() - started)
    return 2 * 2048**3 / best


class BareEnv:
    """ale-py's own vector env in C++; lost lives are told, as in training."""

    def __init__(self, game: str, envs: int, threads: int) -> None:
        self._env = ale_py.AtariVectorEnv(
            game, num_envs=envs, num_threads=threads, life_loss_info=True
        )
        self._env.reset(seed=0)
        self._actions = int(self._env.single_action_space.n)
        self._rng = np.random.default_rng(0)
        self._envs = envs

    def steps_per_s(self, count: int) -> float:
        """Of `count` steps of every env with random actions, drawn beforehand."""
        actions = self._rng.integers(self._actions, size=(count, self._envs))
        started = time.perf_counter()
        for row in actions:
            self._env.step(row)
        return count * self._envs / (time.perf_counter() - started)
