"""Rules of one game that the golden rollouts do not reach."""

import json
from pathlib import Path

import ale_py
import numpy as np
import pytest
from ale_py import roms

from fl_saliency.envs import resolve_protocol
from fl_saliency.envs.emulator import GameState
from tests.envs.playing import make_game, play

BREAKOUT = resolve_protocol("BreakoutNoFrameskip-v4")
DEFECT = json.loads((Path(__file__).parents[1] / "golden/timelimit_defect.json").read_text())
NOOP, FIRE = 0, 1


def ends(game, actions):
    """[step, [(length, end), ...]] of the steps with a done, and all games, in order."""
    game.reset()
    found = []
    for i, action in enumerate(actions):
        _, done = game.step(action)
        games = [(g.length, g.end) for g in game.collect()]
        if done or games:
            found.append((i, games))
        assert done or not games
    return found


@pytest.mark.parametrize(
    "case",
    [
        "limit == step that loses the life",
        "limit hits FireReset step(2)",
        "limit one agent step later",
    ],
)
def test_a_limit_ends_games_where_the_original_ends_them(case):
    golden = DEFECT[case]
    game, *_ = make_game(BREAKOUT, max_episode_frames=4 * golden["max_eplen"])
    dones = golden["dones(i, monitor steps used, done, episode info)"]
    found = ends(game, [FIRE] * 120)
    assert [i for i, _ in found][: len(dones)] == [done[0] for done in dones]
    lengths = [length for _, games in found for length, _ in games]
    assert lengths[:4] == golden["monitor_episode_lengths"]


@pytest.mark.parametrize("agent_steps", [26, 27, 28])
def test_a_limit_on_a_hidden_step_loses_no_game_and_starts_the_next(agent_steps):
    # The life is lost on step 25; 26 is the hidden no-op, 27 FIRE, 28 action 2.
    game, observation, _ = make_game(BREAKOUT, max_episode_frames=4 * agent_steps)
    found = ends(game, [FIRE] * 120)
    games = [item for _, items in found for item in items]
    assert len(games) >= 4
    assert set(games) == {(agent_steps, "truncated")}
    assert observation[..., -1].any()


def test_a_limit_shorter_than_the_opening_ends_a_game_each_hidden_step():
    game, *_ = make_game(BREAKOUT, max_episode_frames=4)
    game.reset()
    assert [g.length for g in game.collect()] == [1, 1]
    _, done = game.step(NOOP)
    assert done
    assert [(g.episode, g.length, g.frames) for g in game.collect()] == [
        (2, 1, 4),
        (3, 1, 4),
        (4, 1, 4),
    ]


def test_a_limit_within_a_skip_cuts_at_the_exact_frame():
    game, *_ = make_game(BREAKOUT, max_episode_frames=42)
    game.reset()
    steps = 0
    while not game.step(NOOP)[1]:
        steps += 1
    (record,) = game.collect()
    assert (record.frames, record.length, record.end) == (42, 11, "truncated")


def test_the_protocol_limit_counts_no_op_frames():
    protocol = resolve_protocol("BreakoutNoFrameskip-v4", max_frames=100)
    game, *_ = make_game(protocol, noops=lambda rng, noop_max: 17)
    game.reset()
    while not game.step(NOOP)[1]:
        pass
    assert game.collect()[0].frames == 83


def test_holding_no_op_ends_as_stalled():
    protocol = resolve_protocol("BreakoutNoFrameskip-v4", fire_reset=False, stall_frames=600)
    game, *_ = make_game(protocol)
    game.reset()
    steps = 0
    while not game.step(NOOP)[1]:
        steps += 1
    (record,) = game.collect()
    assert (record.end, record.reward, record.length) == ("stalled", 0.0, steps + 1)
    # The screen comes to rest soon after the start.
    assert 600 <= record.frames < 700


def test_a_game_counts_as_stalled_before_a_console_goes_into_its_attract_mode():
    assert BREAKOUT.stall_frames < 65_536


def test_a_reward_or_a_moving_screen_is_no_stall():
    protocol = resolve_protocol("PongNoFrameskip-v4", stall_frames=40)
    game, observation, _ = make_game(protocol)
    played = play(game, observation, [NOOP] * 150)
    assert not played.games


def test_an_episode_is_the_game_and_its_length_counts_every_step_of_all_lives():
    game, *_ = make_game(BREAKOUT)
    game.reset()
    lives, steps, reward = 0, 0, 0.0
    while True:
        raw, done = game.step(FIRE)
        steps, lives, reward = steps + 1, lives + done, reward + raw
        games = game.collect()
        if games:
            break
    assert lives == 5
    # Hidden: FIRE and 2 at the start, no-op, FIRE and 2 after each of four lost lives.
    assert [(g.length, g.end, g.episode) for g in games] == [(steps + 2 + 4 * 3, "game_over", 0)]
    assert games[0].frames <= 4 * games[0].length


def test_without_episodic_life_only_the_game_ends():
    protocol = resolve_protocol("BreakoutNoFrameskip-v4", episodic_life=False)
    game, observation, _ = make_game(protocol)
    played = play(game, observation, [FIRE] * 200)
    assert sum(played.dones) == len(played.games) > 0


def test_the_stack_is_cleared_at_a_lost_life():
    game, observation, _ = make_game(BREAKOUT)
    game.reset()
    while not game.step(FIRE)[1]:
        assert observation[..., -1].any()
    assert not observation[..., :-1].any()
    assert observation[..., -1].any()


@pytest.mark.parametrize(
    ("title", "noop_max"), [("Breakout", 30), ("BeamRider", 30), ("Qbert", 30), ("Berzerk", 0)]
)
def test_reset_in_play_starts_the_same_game_as_a_new_env(title, noop_max):
    # BeamRider and Berzerk go on from the console's memory after an emulator's reset; Qbert's
    # snapshots are not whole.
    protocol = resolve_protocol(f"{title}NoFrameskip-v4", noop_max=noop_max)
    actions = np.random.default_rng(0).integers(protocol.num_actions, size=50)
    game, observation, screen = make_game(protocol, screen=True)
    first = play(game, observation, actions, screen)
    again = play(game, observation, actions, screen)
    np.testing.assert_array_equal(first.observations, again.observations)
    np.testing.assert_array_equal(first.screens, again.screens)


def test_seeds_give_each_game_its_own_no_ops():
    drawn = []

    def draw(rng, noop_max):
        drawn.append(int(rng.integers(1, noop_max + 1)))
        return drawn[-1]

    for env in (0, 1):
        game, *_ = make_game(BREAKOUT, env=env, max_episode_frames=40, noops=draw)
        game.reset()
        for _ in range(30):
            game.step(NOOP)
    assert min(drawn) >= 1
    assert max(drawn) <= 30
    assert len(set(drawn)) > 3


class EmulatorsDraws:
    """The draws of an emulator with this seed: two a frame, of which the second is not used."""

    def __init__(self, seed):
        self._rng = np.random.RandomState(seed)

    def random(self):
        used, _ = self._rng.randint(0, 2**32, size=2, dtype=np.uint32)
        return used / 2**32


def test_sticky_actions_follow_the_emulators_own_rule():
    protocol = resolve_protocol(
        "ALE/Breakout-v5", frame_skip=1, fire_reset=False, episodic_life=False
    )
    game, _, screen = make_game(protocol, screen=True)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 5)
    ale.setFloat("repeat_action_probability", protocol.repeat_action_probability)
    ale.loadROM(roms.get_rom_path("breakout"))
    ale.reset_game()
    game.reset()
    game._rng = EmulatorsDraws(5)
    actions = ale.getMinimalActionSet()
    for number in np.random.default_rng(0).integers(1, 4, size=300).tolist():
        ale.act(actions[number])
        game.step(number)
        np.testing.assert_array_equal(screen, ale.getScreenRGB())


def test_sticky_games_differ_by_seed_and_repeat_with_it():
    protocol = resolve_protocol("ALE/Breakout-v5")
    actions = np.random.default_rng(0).integers(4, size=40)
    game, observation, _ = make_game(protocol, seed=1)
    first, again = (play(game, observation, actions).observations for _ in range(2))
    np.testing.assert_array_equal(first, again)
    game, observation, _ = make_game(protocol, seed=2)
    other = play(game, observation, actions).observations
    assert (np.array(first) != np.array(other)).any()


def test_frame_skip_counts_emulator_frames():
    for skip in (1, 2, 5):
        protocol = resolve_protocol("PongNoFrameskip-v4", frame_skip=skip, fire_reset=False)
        game, *_ = make_game(protocol, max_episode_frames=20 * skip)
        game.reset()
        while not game.step(NOOP)[1]:
            pass
        (record,) = game.collect()
        assert (record.frames, record.length) == (20 * skip, 20)


def test_ghosts_that_are_drawn_in_turns_are_both_on_the_pooled_frame():
    # Pac-Man draws one ghost a frame; by the 40th step two are about.
    protocol = resolve_protocol("PacmanNoFrameskip-v4")
    game, _, screen = make_game(protocol, screen=True)
    game.reset()
    for _ in range(40):
        game.step(NOOP)
    pooled = len(np.unique(screen.reshape(-1, 3), axis=0))
    bare = len(np.unique(game._ale.getScreenRGB().reshape(-1, 3), axis=0))
    assert pooled == bare + 1


@pytest.mark.parametrize("title", ["Breakout", "Qbert"])
def test_a_game_is_restored_from_what_was_done_in_it(title):
    # Limits that end games on hidden steps too, so that the next begins with a shorter opening.
    protocol = resolve_protocol(f"{title}NoFrameskip-v4")
    actions = np.random.default_rng(3).integers(protocol.num_actions, size=127)
    game, observation, _ = make_game(protocol, max_episode_frames=27 * 4)
    play(game, observation, actions[:97])
    state = game.get_state()
    assert 0 < state.actions.size < 28
    going_on = [(game.step(int(a)), observation.copy()) for a in actions[97:]]

    other, seen, _ = make_game(protocol, max_episode_frames=27 * 4)
    other.set_state(GameState(state.episode, state.hidden, state.actions.copy()))
    for action, (result, wanted) in zip(actions[97:], going_on, strict=True):
        assert other.step(int(action)) == result
        np.testing.assert_array_equal(seen, wanted)
    assert other.collect() == game.collect()


def test_games_without_a_no_op_in_their_minimal_set_can_be_played():
    protocol = resolve_protocol("VideoCheckersNoFrameskip-v4")
    assert "NOOP" not in protocol.action_meanings
    game, observation, screen = make_game(protocol, screen=True)
    played = play(game, observation, [0, 1, 2, 3] * 3, screen)
    assert not played.games
    assert screen.any()
