"""A serial stack of gymnasium wrappers with OpenAI Baselines' rules, to judge our env by.

Written for clarity and independence of `fl_saliency.envs`: one wrapper a rule, innermost first,
every frame as RGB, the emulator loaded again for every game. Where a game ends on a hidden step
Baselines goes wrong; two marked lines mend that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import ale_py
import cv2
import gymnasium as gym
import numpy as np

gym.register_envs(ale_py)


def base_env(game_title, *, full_action_space=False):
    """The bare game: skip 1, no sticky actions, no limit."""
    return gym.make(
        f"ALE/{game_title}-v5",
        frameskip=1,
        repeat_action_probability=0.0,
        max_num_frames_per_episode=0,
        full_action_space=full_action_space,
        disable_env_checker=True,
    )


class FreshGame(gym.Wrapper):
    """Loads the game anew at each reset, so that nothing is left of the one before."""

    def reset(self, **kwargs):
        return self.env.reset(seed=0)


class StepLimit(gym.Wrapper):
    """Truncates after `limit` steps."""

    def __init__(self, env, limit):
        super().__init__(env)
        self._limit, self._count = limit, 0

    def reset(self, **kwargs):
        self._count = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        obs, reward, over, cut, info = self.env.step(action)
        self._count += 1
        return obs, reward, over, cut or self._count >= self._limit, info


class NoopStart(gym.Wrapper):
    """Begins a game with as many no-ops as `draws` says next."""

    def __init__(self, env, draws: Iterator[int]):
        super().__init__(env)
        self._draws = draws

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        for _ in range(next(self._draws)):
            obs, _, over, cut, info = self.env.step(0)
            if over or cut:
                obs, info = self.env.reset(**kwargs)
        return obs, info


class SkipMax(gym.Wrapper):
    """Repeats an action; observes the maximum of the last two frames."""

    def __init__(self, env, skip=4):
        super().__init__(env)
        self._skip = skip
        self._pair = np.zeros((2, *env.observation_space.shape), np.uint8)

    def step(self, action):
        total = 0.0
        for i in range(self._skip):
            obs, reward, over, cut, info = self.env.step(action)
            if i == self._skip - 2:
                self._pair[0] = obs
            if i == self._skip - 1:
                self._pair[1] = obs
            total += reward
            if over or cut:
                break
        return self._pair.max(axis=0), total, over, cut, info


class Monitor(gym.Wrapper):
    """Notes raw return and length of whole games; refuses steps between games."""

    def __init__(self, env):
        super().__init__(env)
        self.games = []
        self._rewards = None

    def reset(self, **kwargs):
        self._rewards = []
        return self.env.reset(**kwargs)

    def step(self, action):
        if self._rewards is None:
            raise RuntimeError("step between games")
        obs, reward, over, cut, info = self.env.step(action)
        self._rewards.append(reward)
        if over or cut:
            end = "game_over" if over else "truncated"
            self.games.append((sum(self._rewards), len(self._rewards), end))
            self._rewards = None
        return obs, reward, over, cut, info


class EpisodicLife(gym.Wrapper):
    """A lost life looks like an end, but the game goes on with a hidden no-op."""

    def __init__(self, env):
        super().__init__(env)
        self._lives, self._real_end = 0, True
        self.new_game = True

    def step(self, action):
        obs, reward, over, cut, info = self.env.step(action)
        self._real_end = over or cut
        lives = self.unwrapped.ale.lives()
        if 0 < lives < self._lives:
            over = True
        self._lives = lives
        return obs, reward, over, cut, info

    def reset(self, **kwargs):
        self.new_game = self._real_end
        if not self._real_end:
            obs, _, over, cut, info = self.env.step(0)
            # Mended: Baselines overlooks a game that ends on this step, and crashes on the next.
            self.new_game = over or cut
        if self.new_game:
            obs, info = self.env.reset(**kwargs)
        self._lives = self.unwrapped.ale.lives()
        return obs, info


class FireStart(gym.Wrapper):
    """Presses FIRE, then action 2, after a reset."""

    def reset(self, **kwargs):
        self.env.reset(**kwargs)
        for action in (1, 2):
            obs, _, over, cut, info = self.env.step(action)
            if over or cut:
                first, _ = self.env.reset(**kwargs)
                # Mended: Baselines shows the last of the old game as the first of the new one.
                # Within a game it does so too, and that is kept.
                if not isinstance(self.env, EpisodicLife) or self.env.new_game:
                    obs = first
        return obs, info


def warp(rgb, size=84):
    """RGB [H, W, 3] to grey [size, size]."""
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    return cv2.resize(grey, (size, size), interpolation=cv2.INTER_AREA)


@dataclass
class ReferenceEnv:
    """The whole stack of one env: autoreset, sign of rewards, frame stack.

    `draws` are the numbers of no-ops of its games; `max_steps` limits a game in agent steps.
    """

    game_title: str
    draws: Iterator[int] | None
    max_steps: int | None = None
    full_action_set: bool = False
    fire_reset: bool = True
    episodic_life: bool = True
    screen: np.ndarray = field(init=False)

    def __post_init__(self):
        env = FreshGame(base_env(self.game_title, full_action_space=self.full_action_set))
        self.meanings = env.unwrapped.get_action_meanings()
        env = StepLimit(env, 400_000)
        if self.draws is not None:
            env = NoopStart(env, self.draws)
        env = SkipMax(env)
        if self.max_steps is not None:
            env = StepLimit(env, self.max_steps)
        env = self.monitor = Monitor(env)
        if self.episodic_life:
            env = EpisodicLife(env)
        if self.fire_reset and self.meanings[1] == "FIRE" and len(self.meanings) >= 3:
            env = FireStart(env)
        self.env = env
        self.observation = np.zeros((84, 84, 4), np.uint8)

    def reset(self):
        self.screen, _ = self.env.reset()
        return self._push(clear=True)

    def step(self, action):
        """Observation, raw reward, done."""
        self.screen, reward, over, cut, _ = self.env.step(action)
        done = over or cut
        if done:
            self.screen, _ = self.env.reset()
        return self._push(clear=done), reward, done

    def _push(self, *, clear):
        self.observation = np.zeros_like(self.observation) if clear else self.observation
        newest = warp(self.screen)[..., None]
        self.observation = np.concatenate([self.observation[..., 1:], newest], axis=-1)
        return self.observation
