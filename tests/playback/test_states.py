"""States on disk: what was played comes back, what was cut short is no recording."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import FileFormatError, JobError
from fl_saliency.networks.policy import build_policy
from fl_saliency.playback.play import PlayStep, play
from fl_saliency.playback.states import Moment, States, moments_of_play

PROTOCOL = resolve_protocol("BreakoutNoFrameskip-v4")


def moments(count: int) -> Iterator[Moment]:
    for number in range(count):
        yield Moment(
            observation=np.full((84, 84, 4), number, np.uint8),
            screen=np.full((210, 160, 3), number, np.uint8),
            action=number % 4,
            score=float(number),
            game=number // 3,
        )


def test_recorded_moments_come_back(tmp_path: Path) -> None:
    States.record(tmp_path, moments(9), 5)
    found = States.open(tmp_path)
    assert len(found) == 5
    assert found.observations[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 4]
    assert found.screens.shape == (5, 210, 160, 3)
    assert found.actions.tolist() == [0, 1, 2, 3, 0]
    assert found.games.tolist() == [0, 0, 0, 1, 1]
    assert [(b.start, b.stop) for b in found.batches(2)] == [(0, 2), (2, 4), (4, 5)]


def test_a_recording_may_be_shorter_than_asked_for(tmp_path: Path) -> None:
    assert len(States.record(tmp_path, moments(3), 10)) == 3
    assert len(States.open(tmp_path)) == 3


def test_no_moment_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="no state"):
        States.record(tmp_path, moments(0), 10)


def test_an_unfinished_recording_is_none(tmp_path: Path) -> None:
    def broken() -> Iterator[Moment]:
        yield from moments(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        States.record(tmp_path, broken(), 5)
    with pytest.raises(FileFormatError, match="not a finished recording"):
        States.open(tmp_path)


def test_states_that_are_taken_are_held_in_memory(tmp_path: Path) -> None:
    taken = States.record(tmp_path, moments(9), 9).take([0, 4, 8])
    assert taken.scores.tolist() == [0, 4, 8]
    assert taken.screens[:, 0, 0, 0].tolist() == [0, 4, 8]
    assert not isinstance(taken.observations, np.memmap)


def test_games_are_those_that_states_are_of(tmp_path: Path) -> None:
    states = States.record(tmp_path, moments(12), 12)
    assert states.num_games == 4
    assert states.take([4, 10]).num_games == 2


def test_play_is_that_of_an_evaluation(tmp_path: Path) -> None:
    model = build_policy("cnn_daqn", PROTOCOL.num_actions, seed=0)
    with AtariVectorEnv(PROTOCOL, 1, 3, workers=0, screens=True) as env:
        agent = PolicyAgent(model, np.random.default_rng(1))
        steps = [
            (step.observations[0].copy(), int(step.actions[0]))
            for step in play(agent, env, 1)
            if isinstance(step, PlayStep)
        ]
    with AtariVectorEnv(PROTOCOL, 1, 3, workers=0, screens=True) as env:
        agent = PolicyAgent(model, np.random.default_rng(1))
        states = States.record(tmp_path, moments_of_play(agent, env), len(steps) + 2)
    count = len(steps)
    assert np.array_equal(states.observations[:count], [obs for obs, _ in steps])
    assert states.actions[:count].tolist() == [action for _, action in steps]
    # The game after it begins anew, with nothing scored.
    assert states.games[-2:].tolist() == [1, 1]
    assert states.games[:count].max() == 0
    assert states.scores[count] == 0
    assert (np.diff(states.scores[:count]) >= 0).all()


def test_an_env_without_screens_is_refused() -> None:
    with AtariVectorEnv(PROTOCOL, 1, 3, workers=0) as env:
        agent = PolicyAgent(build_policy("cnn_daqn", 4, seed=0), np.random.default_rng(1))
        with pytest.raises(ValueError, match="expected one, with screens"):
            next(moments_of_play(agent, env))
