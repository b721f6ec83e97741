"""Generalised advantage estimation (Schulman et al. 2016), as Baselines' PPO2 runner does it."""

import numpy as np

from fl_saliency.base import BoolArray, FloatArray

__all__ = ["gae_returns", "time_major_to_flat"]


def gae_returns(
    rewards: FloatArray,
    values: FloatArray,
    dones: BoolArray,
    *,
    gamma: float,
    lam: float,
) -> FloatArray:
    """Returns (advantage + value), float32 [T, N].

    rewards float32 [T, N]; values float32 [T + 1, N], the last row bootstraps; dones bool [T, N]:
    whether the step at t ended an episode (a lost life counts).
    """
    steps, envs = rewards.shape
    advantages = np.zeros((steps, envs), np.float32)
    carried = np.zeros(envs, np.float32)
    alive = 1.0 - dones.astype(np.float32)
    for t in reversed(range(steps)):
        delta = rewards[t] + gamma * values[t + 1] * alive[t] - values[t]
        carried = delta + gamma * lam * alive[t] * carried
        advantages[t] = carried
    return advantages + values[:-1]


def time_major_to_flat(array: np.ndarray) -> np.ndarray:
    """[T, N, ...] -> [N * T, ...], env-major: the order of Baselines' flat batches."""
    steps, envs = array.shape[:2]
    return array.swapaxes(0, 1).reshape(steps * envs, *array.shape[2:])
