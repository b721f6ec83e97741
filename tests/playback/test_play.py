"""Playback: fixed quotas, the order of events, and what the pictures show."""

from dataclasses import replace
from typing import Any

import numpy as np

from fl_saliency.base import EpisodeRecord, PolicyStep
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.playback.play import BetweenSteps, PlayStep, play


class NoopAgent:
    """Always action 0; attention counts its calls."""

    num_actions = 4
    geometry = None
    calls = 0

    def step(self, obs: np.ndarray) -> PolicyStep:
        self.calls += 1
        zeros = np.zeros(len(obs), np.float32)
        attention = np.full((len(obs), 7, 7), self.calls, np.float32)
        return PolicyStep(
            actions=np.zeros(len(obs), np.int64), neglogp=zeros, values=zeros, attention=attention
        )


class StubEnv:
    """Env 0 ends games of 5 steps with return 0, env 1 games of 100 steps with return 1."""

    num_envs, screens = 2, None
    lengths = (5, 100)

    def __init__(self) -> None:
        self.observations = np.zeros((2, 84, 84, 4), np.uint8)
        self.steps, self.games = [0, 0], [0, 0]
        self.stepped: list[list[bool]] = []

    def reset(self) -> None:
        self.steps = [0, 0]

    def step(self, actions: np.ndarray, active: np.ndarray) -> Any:
        self.stepped.append(active.tolist())
        episodes = []
        for env in np.flatnonzero(active):
            self.steps[env] += 1
            if self.steps[env] == self.lengths[env]:
                episodes.append(self._record(int(env)))
        return type("Step", (), {"episodes": tuple(episodes)})

    def _record(self, env: int) -> EpisodeRecord:
        self.steps[env] = 0
        self.games[env] += 1
        return EpisodeRecord(
            env=env,
            episode=self.games[env] - 1,
            seed=0,
            reward=float(env),
            length=self.lengths[env],
            frames=4 * self.lengths[env],
            end="game_over",
            time=0.0,
        )


def test_short_games_do_not_count_more_than_long_ones() -> None:
    env = StubEnv()
    events = list(play(NoopAgent(), env, 10))  # type: ignore[arg-type]
    games = [event for event in events if isinstance(event, EpisodeRecord)]
    assert len(games) == 20
    assert np.mean([game.reward for game in games]) == 0.5
    assert env.stepped[49] == [True, True]
    assert env.stepped[50] == [False, True]
    assert len(env.stepped) == 1000


def test_a_step_comes_before_the_games_it_ends() -> None:
    events = list(play(NoopAgent(), StubEnv(), 1))  # type: ignore[arg-type]
    assert isinstance(events[0], PlayStep)
    first_game = next(i for i, event in enumerate(events) if isinstance(event, EpisodeRecord))
    kinds = [type(event) for event in events[:first_game]]
    assert kinds == [PlayStep, BetweenSteps] * 4 + [PlayStep]
    assert isinstance(events[-1], BetweenSteps)
    assert events[-1].finished.tolist() == [1, 1]


def test_the_first_picture_is_the_one_after_the_reset_and_each_is_what_the_agent_saw() -> None:
    protocol = resolve_protocol("BreakoutNoFrameskip-v4")
    with AtariVectorEnv(protocol, 1, 3, workers=0, screens=True) as fresh:
        first = fresh.reset().copy()
        screen = fresh.screens.copy()  # type: ignore[union-attr]
    with AtariVectorEnv(protocol, 1, 3, workers=0, screens=True, max_episode_frames=200) as env:
        events = play(NoopAgent(), env, 1)
        step = next(events)
        assert isinstance(step, PlayStep)
        np.testing.assert_array_equal(step.observations, first)
        np.testing.assert_array_equal(step.screens, screen)
        newest = step.observations[..., -1].copy()
        between, later = next(events), next(events)
        assert isinstance(between, BetweenSteps)
        assert isinstance(later, PlayStep)
        np.testing.assert_array_equal(later.observations[..., -2], newest)
        games = [event for event in events if isinstance(event, EpisodeRecord)]
    assert [(game.end, game.frames) for game in games] == [("truncated", 200)]


def test_games_go_on_where_they_were() -> None:
    protocol = resolve_protocol("BreakoutNoFrameskip-v4")

    def make() -> AtariVectorEnv:
        return AtariVectorEnv(protocol, 2, 3, workers=0, max_episode_frames=300)

    with make() as env:
        whole = [event for event in play(NoopAgent(), env, 2) if isinstance(event, EpisodeRecord)]
    with make() as env:
        events = iter(play(NoopAgent(), env, 2))
        begun = [next(events) for _ in range(231)]
        while not isinstance(begun[-1], BetweenSteps):
            begun.append(next(events))
        states = env.get_states()
    with make() as env:
        env.set_states(states)
        rest = play(NoopAgent(), env, 2, finished=begun[-1].finished)
        games = [event for event in (*begun, *rest) if isinstance(event, EpisodeRecord)]
    assert [replace(game, time=0.0) for game in games] == [
        replace(game, time=0.0) for game in whole
    ]
    assert len(whole) == 4


def test_a_cap_of_a_few_frames_does_not_break_the_quota() -> None:
    protocol = resolve_protocol("BreakoutNoFrameskip-v4")
    for cap in (1, 4, 5, 8, 9):
        with AtariVectorEnv(protocol, 2, 3, workers=0, max_episode_frames=cap) as env:
            events = list(play(NoopAgent(), env, 2))
        games = [event for event in events if isinstance(event, EpisodeRecord)]
        assert sorted(game.env for game in games) == [0, 0, 1, 1]
