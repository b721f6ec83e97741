"""The PPO2 training loop (OpenAI Baselines' `ppo2.learn`) as a generator of updates."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.agents.ppo2.config import PPO2Config, count_updates
from fl_saliency.agents.ppo2.learner import PPO2Learner
from fl_saliency.agents.ppo2.runner import RolloutRunner, explained_variance
from fl_saliency.base import EpisodeRecord
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import JobError
from fl_saliency.networks.policy import build_policy
from fl_saliency.seeding import stream

__all__ = ["DivergedError", "PPO2Trainer", "Update"]

RETURN_WINDOW = 100
"""Baselines averages the returns and lengths of the last 100 games."""


class DivergedError(JobError):
    """A loss is no longer finite: the weights are worth nothing."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one update did."""

    index: int
    """1 for the first."""
    timesteps: int
    """Timesteps played so far by all envs."""
    episodes: list[EpisodeRecord]
    """Games that ended during its rollout."""
    row: dict[str, Any]
    """Baselines' log row; losses are float32, whose digits Baselines' log shows."""


@dataclass
class _Statistics:
    """Running figures of the log row."""

    start: float = field(default_factory=time.perf_counter)
    recent: deque[EpisodeRecord] = field(default_factory=lambda: deque(maxlen=RETURN_WINDOW))

    def mean(self, name: str) -> float:
        values = [getattr(episode, name) for episode in self.recent]
        return float(np.mean(values)) if values else float("nan")


class PPO2Trainer:
    """Trains `network` in `env`; everything random follows from `seed`."""

    def __init__(
        self,
        network: str,
        env: AtariVectorEnv,
        config: PPO2Config,
        *,
        num_timesteps: int,
        seed: int,
        precision: str = "float32",
    ) -> None:
        self.num_updates = count_updates(num_timesteps, config.batch_size)
        self.config = config
        self.model = build_policy(network, env.num_actions, seed=seed, precision=precision)
        self.agent = PolicyAgent(self.model, stream("policy", seed))
        self.learner = PPO2Learner(self.model, config)
        self._runner = RolloutRunner(env, self.agent, config)
        self._shuffle = stream("minibatches", seed)
        self.finished_updates = 0

    def learning_rate(self, update: int) -> float:
        """Baselines anneals once per update: lr * (1 - (u - 1) / num_updates), never 0."""
        if self.config.lr_schedule == "constant":
            return self.config.learning_rate
        return self.config.learning_rate * (1.0 - (update - 1.0) / self.num_updates)

    def updates(self) -> Iterator[Update]:
        """Run every update; the caller logs, records and stops."""
        statistics = _Statistics()
        for index in range(1, self.num_updates + 1):
            started = time.perf_counter()
            rollout = self._runner.collect()
            losses = self.learner.update(rollout.batch, self.learning_rate(index), self._shuffle)
            if wrong := [name for name, loss in losses.items() if not np.isfinite(loss)]:
                raise DivergedError(f"{' and '.join(wrong)} not finite at update {index}")
            statistics.recent.extend(rollout.episodes)
            self.finished_updates = index
            now = time.perf_counter()
            yield Update(
                index=index,
                timesteps=index * self.config.batch_size,
                episodes=rollout.episodes,
                row={
                    "serial_timesteps": index * self.config.num_steps,
                    "nupdates": index,
                    "total_timesteps": index * self.config.batch_size,
                    "fps": int(self.config.batch_size / (now - started)),
                    "explained_variance": explained_variance(rollout.batch),
                    "eprewmean": statistics.mean("reward"),
                    "eplenmean": statistics.mean("length"),
                    "time_elapsed": now - statistics.start,
                    **losses,
                },
            )
