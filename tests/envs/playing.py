"""Small helpers that tests of the envs share."""

import itertools
from dataclasses import dataclass, field

import numpy as np

from fl_saliency.envs.emulator import AtariGame
from fl_saliency.envs.games import game_info
from fl_saliency.envs.protocol import Protocol
from fl_saliency.seeding import derive_seed


@dataclass
class Played:
    """What a run of steps gave."""

    observations: list = field(default_factory=list)
    screens: list = field(default_factory=list)
    rewards: list = field(default_factory=list)
    dones: list = field(default_factory=list)
    games: list = field(default_factory=list)


def make_game(protocol: Protocol, *, screen=False, seed=1, env=0, **options):
    """An `AtariGame` with its own buffers: (game, observation, screen or None)."""
    observation = np.zeros(protocol.observation_shape, np.uint8)
    shown = None
    if screen:
        shown = np.zeros((*game_info(protocol.game).screen, 3), np.uint8)
    game = AtariGame(protocol, env=env, seed=seed, observation=observation, screen=shown, **options)
    return game, observation, shown


def play(game, observation, actions, screen=None) -> Played:
    """Reset, then play `actions`; entry 0 of observations and screens is the reset's."""
    played = Played()
    game.reset()
    played.observations.append(observation.copy())
    played.screens.append(None if screen is None else screen.copy())
    for action in actions:
        reward, done = game.step(int(action))
        played.observations.append(observation.copy())
        played.screens.append(None if screen is None else screen.copy())
        played.rewards.append(reward)
        played.dones.append(done)
        played.games += [(g.reward, g.length, g.end) for g in game.collect()]
    return played


def noop_draws(seed, env, noop_max=30):
    """The documented rule: game j's no-ops are its generator's first draw."""
    for episode in itertools.count():
        rng = np.random.default_rng(derive_seed("env", seed, env, episode))
        yield int(rng.integers(1, noop_max + 1))
