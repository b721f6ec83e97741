"""Our env equals the serial wrapper stack, observation by observation, in every game."""

import numpy as np
import pytest

from fl_saliency.envs import AtariVectorEnv, resolve_protocol
from fl_saliency.envs.games import playable_games
from tests.envs.playing import noop_draws
from tests.envs.reference_wrappers import ReferenceEnv

# Every screen height, both consoles, with and without FIRE, with and without lives, a game that
# keeps memory over a reset, and one without a no-op among its actions.
BROAD = [
    "Breakout",
    "MsPacman",
    "BeamRider",
    "Carnival",
    "JourneyEscape",
    "Klax",
    "Qbert",
    "Tennis",
    "VideoCheckers",
]
SEED = 5


def assert_equal_to_the_stack(title, *, steps, max_steps):
    # The stack's no-ops are action 0; where that is no NOOP, the full action set is played.
    minimal = resolve_protocol(f"{title}NoFrameskip-v4").action_meanings
    full = minimal[0] != "NOOP"
    protocol = resolve_protocol(f"{title}NoFrameskip-v4", full_action_set=full)
    stack = ReferenceEnv(title, noop_draws(SEED, 0), max_steps, full)
    assert tuple(stack.meanings) == protocol.action_meanings
    actions = np.random.default_rng(1).integers(protocol.num_actions, size=steps)
    limit = 4 * max_steps
    with AtariVectorEnv(
        protocol, 1, SEED, workers=0, screens=True, max_episode_frames=limit
    ) as env:
        np.testing.assert_array_equal(env.reset()[0], stack.reset())
        games = []
        for action in actions:
            step = env.step([action])
            observation, reward, done = stack.step(int(action))
            np.testing.assert_array_equal(step.observations[0], observation)
            np.testing.assert_array_equal(env.screens[0], stack.screen)
            assert step.rewards[0] == np.sign(reward)
            assert step.raw_rewards[0] == reward
            assert step.dones[0] == done
            games += [(e.reward, e.length, e.end) for e in step.episodes]
    assert games == stack.monitor.games
    return games


@pytest.mark.parametrize("title", BROAD)
def test_env_equals_the_wrapper_stack(title):
    assert assert_equal_to_the_stack(title, steps=60, max_steps=50)


@pytest.mark.slow
@pytest.mark.parametrize("title", list(playable_games()))
def test_env_equals_the_wrapper_stack_in_all_games(title):
    assert assert_equal_to_the_stack(title, steps=300, max_steps=130)
