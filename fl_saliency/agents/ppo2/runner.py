"""Rollouts: the policy plays `num_steps` timesteps in every environment."""

from dataclasses import dataclass

import numpy as np

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.agents.ppo2.config import PPO2Config
from fl_saliency.agents.ppo2.gae import gae_returns, time_major_to_flat
from fl_saliency.agents.ppo2.losses import Batch
from fl_saliency.base import BoolArray, EpisodeRecord
from fl_saliency.envs.vector import AtariVectorEnv

__all__ = ["Rollout", "RolloutRunner", "explained_variance"]


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One update's data: a flat env-major batch and the games that ended meanwhile."""

    batch: Batch
    episodes: list[EpisodeRecord]


class RolloutRunner:
    """Steps the envs under the policy, filling buffers that are allocated once."""

    def __init__(self, env: AtariVectorEnv, agent: PolicyAgent, config: PPO2Config) -> None:
        self.env, self.agent, self.config = env, agent, config
        steps, envs = config.num_steps, config.num_envs
        self._obs = np.zeros((envs, steps, 84, 84, 4), np.uint8)
        self._actions = np.zeros((steps, envs), np.int64)
        self._rewards = np.zeros((steps, envs), np.float32)
        self._dones = np.zeros((steps, envs), np.bool_)
        self._neglogp = np.zeros((steps, envs), np.float32)
        self._values = np.zeros((steps + 1, envs), np.float32)

    @property
    def dones(self) -> BoolArray:
        """Where the last rollout ended an episode, bool [T, N]: a view."""
        return self._dones

    def collect(self) -> Rollout:
        """Play one rollout on from where the last one stopped."""
        episodes: list[EpisodeRecord] = []
        for t in range(self.config.num_steps):
            self._obs[:, t] = self.env.observations
            actions, self._neglogp[t], self._values[t], _ = self.agent.act(self.env.observations)
            result = self.env.step(actions)
            self._actions[t] = actions
            self._rewards[t], self._dones[t] = result.rewards, result.dones
            episodes.extend(result.episodes)
        self._values[-1] = self.agent.value(self.env.observations)
        return Rollout(batch=self._batch(), episodes=episodes)

    def _batch(self) -> Batch:
        returns = gae_returns(
            self._rewards,
            self._values,
            self._dones,
            gamma=self.config.gamma,
            lam=self.config.gae_lambda,
        )
        return Batch(
            obs=self._obs.reshape(-1, *self._obs.shape[2:]),
            actions=time_major_to_flat(self._actions),
            returns=time_major_to_flat(returns),
            values=time_major_to_flat(self._values[:-1]),
            neglogp=time_major_to_flat(self._neglogp),
        )


def explained_variance(batch: Batch) -> float:
    """1 - Var(return - value) / Var(return); NaN where the returns do not vary."""
    variance = float(np.var(batch.returns))
    return (
        float("nan")
        if variance == 0
        else 1 - float(np.var(batch.returns - batch.values)) / variance
    )
