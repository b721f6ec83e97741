"""The vector env: the same results however it is run, and clean ends."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from fl_saliency.envs import AtariVectorEnv, resolve_protocol
from fl_saliency.errors import InputError, JobError

BREAKOUT = resolve_protocol("BreakoutNoFrameskip-v4")
SHORT = 160  # frames; games end often
ENVS, STEPS, SEED = 3, 60, 3  # an odd number, shared by two workers


def actions():
    return np.random.default_rng(0).integers(4, size=(STEPS, ENVS))


def without_time(episodes):
    return [(e.env, e.episode, e.seed, e.reward, e.length, e.frames, e.end) for e in episodes]


def rollout(env):
    """Everything that a whole run gives, as one comparable list."""
    seen = [env.reset().copy()]
    for row in actions():
        step = env.step(row)
        seen += [step.observations.copy(), env.screens.copy(), step.rewards, step.raw_rewards]
        seen += [step.dones, without_time(step.episodes)]
    return seen


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        if isinstance(a, list):
            assert a == b
        else:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def make(workers, num_envs=ENVS):
    return AtariVectorEnv(
        BREAKOUT, num_envs, SEED, workers=workers, screens=True, max_episode_frames=SHORT
    )


@pytest.fixture(scope="module")
def local():
    with make(0) as env:
        yield env


@pytest.fixture(scope="module")
def expected(local):
    return rollout(local)


@pytest.fixture(scope="module")
def two_workers():
    with make(2) as env:
        yield env


def test_shapes_and_types(local):
    env = local
    env.reset()
    step = env.step([0] * ENVS)
    assert (env.num_envs, env.num_actions, env.protocol) == (ENVS, 4, BREAKOUT)
    assert env.observations.shape == (ENVS, 84, 84, 4)
    assert env.observations.dtype == np.uint8
    assert env.observations.flags.c_contiguous
    assert env.screens.shape == (ENVS, 210, 160, 3)
    assert step.rewards.dtype == step.raw_rewards.dtype == np.float32
    assert step.dones.dtype == np.bool_
    assert np.shares_memory(step.observations, env.observations)


def test_workers_do_not_change_results(expected, two_workers):
    assert_same(expected, rollout(two_workers))
    with make(1) as env:
        assert_same(expected, rollout(env))


def test_a_full_reset_replays_exactly(expected, two_workers):
    two_workers.reset()
    for row in actions()[:17]:
        two_workers.step(row)
    assert_same(expected, rollout(two_workers))


def test_stepping_by_halves_is_stepping_the_whole(expected, two_workers):
    halves = slice(0, ENVS // 2), slice(ENVS // 2, ENVS)
    env = two_workers
    seen = [env.reset().copy()]
    plan = actions()
    env.step_async(plan[0][halves[0]], halves[0])
    for i in range(STEPS):
        steps = []
        env.step_async(plan[i][halves[1]], halves[1])
        steps.append(env.step_wait(halves[0]))
        first, shown = steps[0].observations.copy(), env.screens[halves[0]].copy()
        if i + 1 < STEPS:
            env.step_async(plan[i + 1][halves[0]], halves[0])
        steps.append(env.step_wait(halves[1]))
        seen.append(np.concatenate([first, steps[1].observations]))
        seen.append(np.concatenate([shown, env.screens[halves[1]]]))
        names = ("rewards", "raw_rewards", "dones")
        seen += [np.concatenate([getattr(step, name) for step in steps]) for name in names]
        seen.append(without_time(steps[0].episodes + steps[1].episodes))
    assert_same(expected, seen)


def test_seeds_and_envs_play_different_games(expected):
    observations = expected[1::6]
    assert any((step[0] != step[1]).any() for step in observations)
    episodes = [e for item in expected if isinstance(item, list) for e in item]
    seeds = [(e[0], e[2]) for e in episodes]
    assert len({seed for _, seed in seeds}) == len(seeds)


def test_an_inactive_env_is_left_untouched(local):
    env = local
    env.reset()
    plan = actions()[:30]
    before = env.observations[1].copy()
    for row in plan:
        step = env.step(row, active=np.array([True, False, True]))
        assert not step.dones[1]
        assert not step.rewards[1]
    np.testing.assert_array_equal(env.observations[1], before)
    late = [env.step(row).observations[1].copy() for row in plan]
    env.reset()
    early = [env.step(row).observations[1].copy() for row in plan]
    np.testing.assert_array_equal(early, late)


@pytest.mark.timeout(60)
def test_a_masked_reset_restarts_only_those_envs(two_workers):
    env = two_workers
    fresh = env.reset().copy()
    for row in actions()[:9]:
        env.step(row)
    running = env.observations.copy()
    again = env.reset(np.array([True, False, False]))
    np.testing.assert_array_equal(again[0], fresh[0])
    np.testing.assert_array_equal(again[1:], running[1:])
    step = None
    while step is None or not step.episodes:
        step = env.step([0] * ENVS)
    # The running games kept their counts, the restarted one began at nothing.
    assert [e.env for e in step.episodes] == [1, 2]
    assert {e.frames for e in step.episodes} == {SHORT}


def test_rewards_are_signs_and_scores_are_raw():
    protocol = resolve_protocol("MsPacmanNoFrameskip-v4")
    raw = resolve_protocol("MsPacmanNoFrameskip-v4", clip_rewards=False)
    for chosen in (protocol, raw):
        with AtariVectorEnv(chosen, 1, 0, workers=0, max_episode_frames=600) as env:
            env.reset()
            total, seen, episodes = 0.0, set(), ()
            while not episodes:
                step = env.step([2])
                total += float(step.raw_rewards[0])
                seen.add(float(step.rewards[0]))
                episodes = step.episodes
        assert episodes[0].reward == total > 1
        assert (seen == {0.0, 1.0}) is chosen.clip_rewards


def test_screens_of_other_heights_and_none_without_being_asked():
    protocol = resolve_protocol("KlaxNoFrameskip-v4")
    with AtariVectorEnv(protocol, 1, 0, workers=0, screens=True) as env:
        env.reset()
        assert env.screens.shape == (1, 250, 160, 3)
    with AtariVectorEnv(protocol, 1, 0, workers=0) as env:
        assert env.screens is None


def test_other_stacks_and_sizes():
    for stack, size in ((1, 84), (3, 42)):
        protocol = resolve_protocol("PongNoFrameskip-v4", stack=stack, size=size)
        with AtariVectorEnv(protocol, 2, 0, workers=0) as env:
            env.reset()
            for _ in range(5):
                env.step([0, 1])
            assert env.observations.shape == (2, size, size, stack)
            assert env.observations.any(axis=(1, 2)).all()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"num_envs": 0}, "number of envs 0"),
        ({"workers": -1}, "workers -1"),
        ({"max_episode_frames": 0}, "frames of an episode 0"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_wrong_arguments_are_refused(options, word):
    settings = {"num_envs": 1, "seed": 0, "workers": 0, **options}
    with pytest.raises(InputError, match=word):
        AtariVectorEnv(BREAKOUT, **settings)


def test_wrong_actions_masks_and_waits_are_refused(local):
    env = local
    env.reset()
    for wrong in ([0] * (ENVS + 1), [0.0] * ENVS, [4] * ENVS, [-1] * ENVS):
        with pytest.raises(ValueError, match="actions"):
            env.step(wrong)
    with pytest.raises(ValueError, match="active"):
        env.step([0] * ENVS, active=np.ones(ENVS + 1, bool))
    with pytest.raises(ValueError, match="step_wait"):
        env.step_wait()
    with pytest.raises(ValueError, match="rising"):
        env.step_async([0, 0], slice(1, None, -1))
    env.step_async([0, 0], slice(0, 2))
    with pytest.raises(ValueError, match="step_wait"):
        env.step_wait(slice(1, 3))
    for overlapping in (lambda: env.step_async([0], slice(1, 2)), env.reset):
        with pytest.raises(ValueError, match="step_wait"):
            overlapping()
    env.step_wait(slice(0, 2))


def test_a_step_before_the_first_reset_is_refused():
    with make(0, num_envs=1) as env:
        with pytest.raises(ValueError, match="reset"):
            env.step([0])
        with pytest.raises(ValueError, match="reset"):
            env.reset(np.array([True]))
        env.reset()
        env.step([0])


def children():
    return [
        p for p in psutil.Process().children(recursive=True) if "spawn_main" in str(p.cmdline())
    ]


@pytest.mark.timeout(60)
def test_a_killed_worker_is_an_error_within_seconds_and_leaves_no_orphans():
    others = {p.pid for p in children()}
    env = make(2, num_envs=2)
    env.reset()
    workers = [p for p in children() if p.pid not in others]
    assert len(workers) == 2
    workers[1].kill()
    started = time.monotonic()
    with pytest.raises(JobError, match=r"env worker [01] died"):
        env.step([0, 0])
    env.close()
    assert time.monotonic() - started < 10
    psutil.wait_procs(workers, timeout=10)
    assert not any(p.is_running() for p in workers)
    with pytest.raises(ValueError, match="closed"):
        env.step([0, 0])


@pytest.mark.timeout(60)
def test_a_raising_worker_is_an_error_with_its_traceback():
    with make(1, num_envs=1) as env:
        env.reset()
        env._buffers.actions[:] = 77
        env._submit("step", range(1), None)
        with pytest.raises(JobError, match="env worker 0 failed: IndexError") as caught:
            env.step_wait()
        assert "Traceback" in "".join(caught.value.__notes__)
        assert "\n" not in str(caught.value)


PARENT = """
import sys, time
from fl_saliency.envs import AtariVectorEnv, resolve_protocol
if __name__ == "__main__":
    env = AtariVectorEnv(resolve_protocol("BreakoutNoFrameskip-v4"), 2, 0, workers=2)
    env.reset()
    print("ready", flush=True)
    while True:
        env.step([0, 0])
"""


@pytest.mark.timeout(60)
def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout.readline() == "ready\n"
        workers = psutil.Process(parent.pid).children(recursive=True)
        assert len(workers) >= 2
        parent.send_signal(signal.SIGKILL)
        gone, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive
    assert len(gone) == len(workers)
