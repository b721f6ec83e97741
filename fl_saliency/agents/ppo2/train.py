"""The PPO2 training loop (OpenAI Baselines' `ppo2.learn`) as a generator of updates."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.agents.ppo2.config import PPO2Config, count_updates
from fl_saliency.agents.ppo2.learner import PPO2Learner
from fl_saliency.agents.ppo2.runner import Rollout, RolloutRunner, explained_variance
from fl_saliency.agents.ppo2.state import TrainerState
from fl_saliency.base import EpisodeRecord
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import FileFormatError, JobError
from fl_saliency.networks.policy import build_policy, get_arrays, named_variables, set_arrays
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
        self._env = env
        self._runner = RolloutRunner(env, self.agent, config)
        self._random = {"policy": self.agent.rng, "minibatches": stream("minibatches", seed)}
        self._recent: deque[EpisodeRecord] = deque(maxlen=RETURN_WINDOW)
        self._began = time.perf_counter()
        self._state: TrainerState | None = None

    @property
    def state(self) -> TrainerState:
        """The run after its last finished update, whatever it is doing now."""
        if self._state is None:
            raise RuntimeError("the run has not begun: start() or restore() it")
        return self._state

    def start(self) -> None:
        """Begin with update 1: every env with its first game."""
        self._env.reset()
        self._began = time.perf_counter()
        self._state = self._present(update=0)

    def restore(self, state: TrainerState) -> None:
        """Go on after `state`, bit for bit as the run would have that it was taken from.

        The trainer must have been made with the same arguments. Raises FileFormatError, and
        changes nothing, if the state is of another network or number of envs.
        """
        self._check(state)
        set_arrays(self.model, state.weights)
        self.learner.set_optimizer_arrays(state.adam_m, state.adam_v, state.adam_powers)
        for name, rng in self._random.items():
            rng.bit_generator.state = state.random[name]
        self._recent.clear()
        self._recent.extend(state.recent)
        self._env.set_states(state.games)
        self._began = time.perf_counter() - state.seconds
        self._state = state

    def _check(self, state: TrainerState) -> None:
        expected = {item.name: item.shape for item in named_variables(self.model)}
        for group in (state.weights, state.adam_m, state.adam_v):
            found = {name: array.shape for name, array in group.items()}
            if wrong := sorted(set(expected.items()) ^ set(found.items())):
                raise FileFormatError(f"checkpoint of another network: variable {wrong[0][0]!r}")
        if len(state.games) != self._env.num_envs or state.adam_powers.shape != (2,):
            raise FileFormatError(
                f"checkpoint of {len(state.games)} envs, expected {self._env.num_envs}"
            )
        for name in self._random:
            try:
                np.random.default_rng().bit_generator.state = state.random[name]
            except (KeyError, TypeError, ValueError) as error:
                raise FileFormatError(f"checkpoint without random stream {name!r}") from error
        if not 0 <= state.update <= self.num_updates:
            raise FileFormatError(
                f"checkpoint of update {state.update}, the run has {self.num_updates}"
            )

    def _present(self, *, update: int) -> TrainerState:
        adam = self.learner.adam
        first, second = self.learner.optimizer_arrays()
        return TrainerState(
            update=update,
            weights=get_arrays(self.model),
            adam_m=first,
            adam_v=second,
            adam_powers=np.array([adam.beta1_power, adam.beta2_power], np.float32),
            games=self._env.get_states(),
            random={name: rng.bit_generator.state for name, rng in self._random.items()},
            recent=tuple(self._recent),
            seconds=time.perf_counter() - self._began,
        )

    def learning_rate(self, update: int) -> float:
        """Baselines anneals once per update: lr * (1 - (u - 1) / num_updates), never 0."""
        if self.config.lr_schedule == "constant":
            return self.config.learning_rate
        return self.config.learning_rate * (1.0 - (update - 1.0) / self.num_updates)

    def updates(self) -> Iterator[Update]:
        """Run the updates that are left; the caller logs, records and stops.

        Raises DivergedError if a loss or a weight is no longer finite; `state` stays as before.
        """
        for index in range(self.state.update + 1, self.num_updates + 1):
            started = time.perf_counter()
            rollout = self._runner.collect()
            losses = self.learner.update(
                rollout.batch, self.learning_rate(index), self._random["minibatches"]
            )
            if wrong := [name for name, loss in losses.items() if not np.isfinite(loss)]:
                raise DivergedError(f"{' and '.join(wrong)} not finite at update {index}")
            self._recent.extend(rollout.episodes)
            state = self._present(update=index)
            if not state.is_finite():
                raise DivergedError(f"weights not finite at update {index}")
            self._state = state
            yield self._update(rollout, losses, time.perf_counter() - started)

    def _update(self, rollout: Rollout, losses: dict[str, np.float32], seconds: float) -> Update:
        index = self.state.update
        return Update(
            index=index,
            timesteps=index * self.config.batch_size,
            episodes=rollout.episodes,
            row={
                "serial_timesteps": index * self.config.num_steps,
                "nupdates": index,
                "total_timesteps": index * self.config.batch_size,
                "fps": int(self.config.batch_size / seconds),
                "explained_variance": explained_variance(rollout.batch),
                "eprewmean": self._mean("reward"),
                "eplenmean": self._mean("length"),
                "time_elapsed": self.state.seconds,
                **losses,
            },
        )

    def _mean(self, name: str) -> float:
        values = [getattr(episode, name) for episode in self._recent]
        return float(np.mean(values)) if values else float("nan")
