"""Replay memory: stacks are the envs' own, none crosses an episode, memory is bounded."""

import numpy as np
import psutil
import pytest

from fl_saliency.agents.dqn.replay import ReplayMemory
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import InputError


def numbered(memory: ReplayMemory, steps: int, envs: int, ends: set[int] = frozenset()) -> None:
    """Steps whose frames hold 100 * env + their number; episodes end at `ends`."""
    for step in range(steps):
        values = 100 * np.arange(envs) + step
        frames = np.broadcast_to(values.astype(np.uint8)[:, None, None], (envs, 2, 2))
        dones = np.full(envs, step in ends)
        memory.add(frames, np.arange(envs), values.astype(np.float32), dones)


def test_a_drawn_step_is_followed_by_its_next() -> None:
    memory = ReplayMemory(40, 2, frame=(2, 2))
    numbered(memory, 15, 2)
    batch = memory.sample(np.random.default_rng(0), 500)
    newest = batch.observations[:, 0, 0, -1].astype(int)
    assert np.array_equal(batch.next_observations[:, 0, 0, -1], newest + 1)
    assert np.array_equal(batch.rewards, newest)
    assert np.array_equal(batch.actions, newest // 100)
    assert set(newest) == {*range(14), *range(100, 114)}  # all but the newest of each env
    older = batch.observations[:, 0, 0, -2].astype(int)
    assert np.array_equal(older, np.where(newest % 100 > 0, newest - 1, 0))


def test_a_stack_never_crosses_an_episode() -> None:
    memory = ReplayMemory(100, 1, frame=(2, 2))
    numbered(memory, 30, 1, ends={9, 19})
    batch = memory.sample(np.random.default_rng(0), 500)
    for stack, reward in zip(batch.observations[:, 0, 0], batch.rewards.astype(int), strict=True):
        first = reward // 10 * 10
        expected = [max(0, n) if n >= first else 0 for n in range(reward - 3, reward + 1)]
        assert stack.tolist() == expected
    assert set(batch.rewards[batch.dones]) == {9, 19}


def test_the_oldest_are_overwritten_and_incomplete_stacks_are_not_drawn() -> None:
    memory = ReplayMemory(10, 1, frame=(2, 2))
    numbered(memory, 37, 1)
    assert len(memory) == 10
    batch = memory.sample(np.random.default_rng(0), 500)
    assert set(batch.rewards.astype(int)) == set(range(30, 36))  # of 27 to 36
    newest = batch.observations[:, 0, 0, -1].astype(int)
    for back in range(4):
        assert np.array_equal(batch.observations[:, 0, 0, -1 - back], newest - back)


def test_stacks_are_those_of_real_games() -> None:
    protocol = resolve_protocol("BreakoutNoFrameskip-v4")
    rng = np.random.default_rng(0)
    memory, seen = ReplayMemory(400, 2), {}
    with AtariVectorEnv(protocol, 2, 0, workers=0) as env:
        env.reset()
        for step in range(150):
            actions = rng.integers(4, size=2)
            before = env.observations.copy()
            found = env.step(actions)
            tags = 2.0 * step + np.arange(2)  # rewards that tell the steps apart
            after = found.observations.copy()
            seen |= {tag: (before[place], after[place]) for place, tag in enumerate(tags)}
            memory.add(before[..., -1], actions, tags, found.dones)
    batch = memory.sample(rng, 300)
    assert batch.dones.any()
    for index, tag in enumerate(batch.rewards):
        observation, following = seen[float(tag)]
        assert np.array_equal(batch.observations[index], observation)
        assert np.array_equal(batch.next_observations[index], following)


def test_a_hundred_thousand_transitions_take_less_than_800_megabytes() -> None:
    before = psutil.Process().memory_info().rss
    memory = ReplayMemory(100_000, 8)
    memory._frames[:] = 1  # pages count once they are written to
    assert memory.nbytes < 0.8e9
    assert psutil.Process().memory_info().rss - before < 0.8e9


def test_a_restored_memory_draws_the_same() -> None:
    memory = ReplayMemory(30, 2, frame=(2, 2))
    numbered(memory, 40, 2, ends={17})
    copy = ReplayMemory(30, 2, frame=(2, 2))
    copy.restore(memory.state())
    for each in (memory, copy):
        numbered(each, 5, 2)
    one, other = (each.sample(np.random.default_rng(3), 50) for each in (memory, copy))
    assert np.array_equal(one.observations, other.observations)
    assert np.array_equal(one.rewards, other.rewards)


def test_a_memory_of_another_size_is_not_taken_over() -> None:
    memory = ReplayMemory(30, 2, frame=(2, 2))
    numbered(memory, 40, 2)
    with pytest.raises(ValueError, match="replay of 15 x 2"):
        ReplayMemory(60, 2, frame=(2, 2)).restore(memory.state())


@pytest.mark.parametrize(("capacity", "envs"), [(11, 2), (0, 1), (5, 1)])
def test_too_little_room_is_an_error(capacity: int, envs: int) -> None:
    with pytest.raises(InputError, match=f"replay capacity {capacity}: expected at least 6 steps"):
        ReplayMemory(capacity, envs)


def test_drawing_from_an_empty_memory_is_an_error() -> None:
    with pytest.raises(ValueError, match="no step whose next one is known"):
        ReplayMemory(30, 2).sample(np.random.default_rng(0), 1)
