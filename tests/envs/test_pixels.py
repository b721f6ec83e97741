"""Pooling by palette against pooling in RGB, for games of both consoles and all screen heights."""

import ale_py
import cv2
import numpy as np
import pytest

from fl_saliency.envs.games import load_game
from fl_saliency.envs.pixels import FramePooler


def warp(grey, size):
    return cv2.resize(grey, (size, size), interpolation=cv2.INTER_AREA)


@pytest.mark.parametrize(
    ("game", "max_pool", "size"),
    [
        ("ms_pacman", "rgb", 84),
        ("ms_pacman", "grey", 84),
        ("ms_pacman", "rgb", 42),
        ("ms_pacman", "rgb", 168),  # wider than the screen
        ("air_raid", "rgb", 84),  # PAL, 250 rows
        ("air_raid", "grey", 84),
        ("carnival", "rgb", 84),  # 214 rows
        ("riverraid", "rgb", 84),  # scrolls
    ],
)
def test_pooled_frames_equal_pooling_the_emulators_own_images(game, max_pool, size):
    ale = load_game(game)
    ale.reset_game()
    screen = np.zeros((*ale.getScreenDims(), 3), np.uint8)
    pooler = FramePooler(ale, game, max_pool=max_pool, size=size, skip=4, screen=screen)
    actions = ale.getMinimalActionSet()
    rng = np.random.default_rng(0)
    for _ in range(60):
        pair = []
        for shown in pooler.plan[-2:]:
            ale.act(actions[rng.integers(len(actions))])
            pooler.take(shown)
            pair.append((ale.getScreenRGB(), ale.getScreenGrayscale()))
        out = pooler.frame()
        rgb = np.maximum(pair[0][0], pair[1][0])
        grey = np.maximum(pair[0][1], pair[1][1])
        if max_pool == "rgb":
            grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
        np.testing.assert_array_equal(out, warp(grey, size))
        np.testing.assert_array_equal(screen, rgb)


def test_take_tells_whether_the_screen_changed():
    ale = load_game("breakout")
    ale.reset_game()
    pooler = FramePooler(ale, "breakout", max_pool="rgb", size=84, skip=4, screen=None)
    last = pooler.plan[-1]
    assert not pooler.take(last)
    for _ in range(60):  # FIRE launches the ball, which appears after a while
        ale.act(ale_py.Action.FIRE)
    assert pooler.take(last)
    assert not pooler.take(last)


def test_grey_pooling_equals_ale_pys_own_vector_env():
    env = ale_py.AtariVectorEnv(
        "ms_pacman", num_envs=1, noop_max=0, use_fire_reset=False, frameskip=4, maxpool=True
    )
    theirs, _ = env.reset(seed=0)
    ale = load_game("ms_pacman")
    ale.reset_game()
    pooler = FramePooler(ale, "ms_pacman", max_pool="grey", size=84, skip=4, screen=None)
    actions = ale.getMinimalActionSet()
    for i in range(120):
        theirs, *_ = env.step(np.array([i % 9]))
        for shown in pooler.plan:
            ale.act(actions[i % 9])
            if shown is not None:
                pooler.take(shown)
        np.testing.assert_array_equal(theirs[0, -1], pooler.frame())
    env.close()
