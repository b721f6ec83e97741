"""A policy plays whole games in a vector env: the one stream that scores and videos are made of."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import Agent, BoolArray, EpisodeRecord, FloatArray, IntArray, UInt8Array
from fl_saliency.envs.vector import AtariVectorEnv

__all__ = ["BetweenSteps", "PlayStep", "play"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayStep:
    """One agent step of N envs: what the agent saw, where it looked and what it chose.

    Arrays of pictures are the env's own memory, valid until the stream is asked for more.
    """

    screens: UInt8Array | None
    """The screens behind the newest frames, RGB uint8 [N, H, W, 3]; None if the env makes none."""
    observations: UInt8Array
    """What the agent saw, uint8 [N, 84, 84, 4], newest frame last."""
    attention: FloatArray | None
    """Attention, float32 [N, h, w]; None for a network that has none."""
    actions: IntArray
    """What it chose, int64 [N]."""
    active: BoolArray
    """bool [N]: the envs that play a game that counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BetweenSteps:
    """Nothing is under way: the state of env and agent is that of the steps told so far."""

    finished: IntArray
    """Games that each env has finished, int64 [N]."""


def play(
    agent: Agent, env: AtariVectorEnv, games_per_env: int, *, finished: IntArray | None = None
) -> Iterator[PlayStep | EpisodeRecord | BetweenSteps]:
    """Play `games_per_env` whole games in each env.

    Yields a `PlayStep` before each step of the env, an `EpisodeRecord` for each game that the step
    ended, and `BetweenSteps`. The quota is fixed before the start, so that short games do not count
    more than long ones; an env that has filled it rests. Games go on where the envs are if
    `finished`, int [N], says how many of its games each has played.
    """
    remaining = np.full(env.num_envs, games_per_env)
    if finished is None:
        env.reset()
    else:
        remaining -= finished
    while (active := remaining > 0).any():
        chosen = agent.step(env.observations)
        yield PlayStep(
            screens=env.screens,
            observations=env.observations,
            attention=chosen.attention,
            actions=chosen.actions,
            active=active,
        )
        for episode in env.step(chosen.actions, active).episodes:
            # A cap of a few frames can end more than one game in a step, on hidden reset steps.
            if remaining[episode.env] > 0:
                remaining[episode.env] -= 1
                yield episode
        yield BetweenSteps(finished=games_per_env - remaining)
