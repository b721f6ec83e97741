"""The original's own rollouts (tests/golden/env_rollout.json) against both of our stacks."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.envs import resolve_protocol
from tests.envs.playing import make_game
from tests.envs.reference_wrappers import ReferenceEnv, warp

GOLDEN = Path(__file__).parents[1] / "golden"
ROLLOUTS = json.loads((GOLDEN / "env_rollout.json").read_text())
ARRAYS = np.load(GOLDEN / "env_rollout.npz")
BREAKOUT = ["breakout", "breakout_maxeplen100"]


def digest(observation):
    return hashlib.sha256(np.ascontiguousarray(observation).tobytes()).hexdigest()[:16]


def ours(golden):
    draws, limit = iter(golden["noop_draws_in_order"]), golden["max_episode_steps"]
    game, observation, _ = make_game(
        resolve_protocol(golden["env"]),
        max_episode_frames=limit and 4 * limit,
        noops=lambda rng, noop_max: next(draws),
    )
    game.reset()
    yield observation, None, None, []
    for step in golden["steps"][1:]:
        reward, done = game.step(step["a"])
        yield observation, reward, done, [(g.reward, g.length) for g in game.collect()]


def reference(golden):
    title = golden["env"].removesuffix("NoFrameskip-v4")
    env = ReferenceEnv(title, iter(golden["noop_draws_in_order"]), golden["max_episode_steps"])
    yield env.reset(), None, None, []
    for step in golden["steps"][1:]:
        observation, reward, done = env.step(step["a"])
        games = [(g[0], g[1]) for g in env.monitor.games]
        env.monitor.games.clear()
        yield observation, reward, done, games


def games_of(step):
    return [(step["episode"]["r"], step["episode"]["l"])] if "episode" in step else []


@pytest.mark.parametrize("play", [ours, reference])
@pytest.mark.parametrize("name", BREAKOUT)
def test_breakout_equals_the_original_bit_for_bit(name, play):
    golden = ROLLOUTS[name]
    steps = golden["steps"]
    for step, (observation, reward, done, games) in zip(steps, play(golden), strict=True):
        assert digest(observation) == step["obs"], step["i"]
        if reward is not None:
            assert np.sign(reward) == step["r"], step["i"]
            assert done == step["done"], step["i"]
            assert games == games_of(step), step["i"]
    assert sum(step.get("done", False) for step in steps) == golden["n_done"]


def test_golden_stacks_have_the_newest_frame_last():
    golden = ROLLOUTS["breakout"]
    steps = golden["steps"][:52]
    for step, (observation, *_) in zip(steps, ours(golden), strict=False):
        if step["i"] in (0, 50):
            wanted = ARRAYS[f"breakout/stack_after_step{step['i']}"]
            np.testing.assert_array_equal(observation, wanted)


def test_seaquest_is_cut_where_the_original_cuts_it():
    # Its pixels differ between emulator releases; lengths under a limit do not.
    golden = ROLLOUTS["seaquest_maxeplen50"]
    played = [(done, games) for _, _, done, games in ours(golden)]
    wanted = [step["i"] for step in golden["steps"] if step.get("done")]
    assert [i - 1 for i, (done, _) in enumerate(played) if done] == wanted
    assert [games for _, games in played if games] == [[(0.0, 50)]] * 3


def test_warp_equals_the_original():
    golden = ROLLOUTS["warp"]
    image = np.random.RandomState(61).randint(0, 256, (210, 160, 3)).astype(np.uint8)
    np.testing.assert_array_equal(warp(image), ARRAYS["warp/random61_84x84"])
    assert warp(image).sum() == golden["out_sum"]
