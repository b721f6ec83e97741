"""Memory of a game: read, written, and what follows from it."""

import numpy as np
import pytest

from fl_saliency.envs.emulator import RAM_SIZE
from fl_saliency.envs.protocol import resolve_protocol
from tests.envs.playing import make_game

BREAKOUT = resolve_protocol("BreakoutNoFrameskip-v4")
NOOP = 0
BALL_X = 99


def ball_x(screen: np.ndarray) -> int:
    """Left edge of the ball, which is red, below the bricks and above the paddle."""
    red = (screen[95:188, 8:152] == (200, 72, 72)).all(axis=-1)
    return int(np.argwhere(red)[:, 1].min()) + 8


def test_memory_is_a_copy_of_128_bytes():
    game, *_ = make_game(BREAKOUT)
    game.reset()
    ram = game.get_ram()
    assert ram.shape == (RAM_SIZE,)
    assert ram.dtype == np.uint8
    ram[:] = 0
    assert game.get_ram().any()


def test_a_changed_byte_shows_with_the_next_step_and_not_before():
    screens = []
    for change in (0, -40):
        game, observation, screen = make_game(BREAKOUT, screen=True)
        game.reset()
        for _ in range(8):
            game.step(NOOP)
        before = observation.copy(), screen.copy()
        game.set_ram({BALL_X: int(game.get_ram()[BALL_X]) + change})
        np.testing.assert_array_equal(observation, before[0])
        np.testing.assert_array_equal(screen, before[1])
        game.step(NOOP)
        screens.append(screen.copy())
    assert ball_x(screens[1]) - ball_x(screens[0]) == -40


@pytest.mark.parametrize(("byte", "value"), [(128, 0), (-1, 0), (0, 256), (0, -1)])
def test_what_is_no_byte_is_refused_and_nothing_is_set(byte, value):
    game, *_ = make_game(BREAKOUT)
    game.reset()
    before = game.get_ram()
    with pytest.raises(ValueError, match="expected bytes 0 to 127 and values 0 to 255"):
        game.set_ram({3: 7, byte: value})
    np.testing.assert_array_equal(game.get_ram(), before)


def test_the_next_game_of_an_env_knows_nothing_of_changed_memory():
    screens = []
    for change in (False, True):
        game, _, screen = make_game(BREAKOUT, screen=True, max_episode_frames=80)
        game.reset()
        if change:
            game.set_ram({BALL_X: 100})
        while not game.collect():
            game.step(NOOP)
        screens.append(screen.copy())
    np.testing.assert_array_equal(*screens)


def test_lives_are_the_emulators():
    game, *_ = make_game(BREAKOUT)
    game.reset()
    assert game.lives == 5
    while not game.step(NOOP)[1]:
        pass
    assert game.lives == 4


def test_breakouts_ball_and_paddle_are_where_their_bytes_say():
    game, _, screen = make_game(
        resolve_protocol("BreakoutNoFrameskip-v4", frame_skip=1), screen=True
    )
    game.reset()
    seen = 0
    for _ in range(60):
        ram = game.get_ram().astype(int)
        red = (screen == (200, 72, 72)).all(axis=-1)
        ball = np.argwhere(red[95:188, 8:152])
        if len(ball):
            seen += 1
            y, x = ball.min(axis=0)
            assert (x + 8, y + 95) == (ram[BALL_X] - 49, ram[101] + 9)
            assert red[190, 8:152].argmax() + 8 == ram[72] - 47
        game.step(NOOP)
    assert seen > 20
