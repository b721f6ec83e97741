"""The protocol: ids, fields, comparison."""

import subprocess
import sys

import pytest

from fl_saliency.envs import Protocol, mismatches, resolve_protocol
from fl_saliency.envs.games import playable_games
from fl_saliency.errors import InputError


def test_noframeskip_v4_is_baselines():
    protocol = resolve_protocol("MsPacmanNoFrameskip-v4")
    assert protocol.as_dict() == {
        "env_id": "MsPacmanNoFrameskip-v4",
        "game": "ms_pacman",
        "frame_skip": 4,
        "max_pool": "rgb",
        "noop_max": 30,
        "fire_reset": True,
        "episodic_life": True,
        "clip_rewards": True,
        "repeat_action_probability": 0.0,
        "full_action_set": False,
        "max_frames": 400_000,
        "stall_frames": 18_000,
        "stack": 4,
        "size": 84,
    }
    assert protocol.num_actions == 9
    assert protocol.observation_shape == (84, 84, 4)


def test_v5_has_its_own_defaults():
    v4, v5 = resolve_protocol("BreakoutNoFrameskip-v4"), resolve_protocol("ALE/Breakout-v5")
    assert mismatches(v4, v5) == [
        "noop_max: trained with 30, used with 0",
        "repeat_action_probability: trained with 0.0, used with 0.25",
        "max_frames: trained with 400000, used with 108000",
    ]


def test_every_playable_game_has_both_ids():
    for name, game in playable_games().items():
        assert resolve_protocol(f"{name}NoFrameskip-v4").game == game
        assert resolve_protocol(f"ALE/{name}-v5").game == game


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("BreakoutNoFrameskip-v5", ["use 'BreakoutNoFrameskip-v4' or 'ALE/Breakout-v5'"]),
        ("BrekoutNoFrameskip-v4", ["did you mean 'BreakoutNoFrameskip-v4'"]),
        ("ALE/Brekout-v5", ["did you mean 'ALE/Breakout-v5'"]),
        ("Breakout-v4", ["2 to 4", "frame_skip", "'BreakoutNoFrameskip-v4'"]),
        ("BreakoutDeterministic-v4", ["skip of 4", "frame_skip", "'BreakoutNoFrameskip-v4'"]),
        ("BreakoutNoFrameskip-v0", ["0.25", "'BreakoutNoFrameskip-v4'"]),
        ("breakout", ["unknown env id", "did you mean"]),
        ("CombatNoFrameskip-v4", ["unknown env id"]),
        ("", ["unknown env id ''", "<Game>NoFrameskip-v4", "ALE/<Game>-v5"]),
    ],
)
def test_other_ids_are_refused_in_one_line_that_names_the_right_one(env_id, words):
    with pytest.raises(InputError) as caught:
        resolve_protocol(env_id)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("frame_skip", 0),
        ("frame_skip", -4),
        ("frame_skip", 4.0),
        ("frame_skip", True),
        ("frame_skip", "4"),
        ("max_pool", "RGB"),
        ("noop_max", -1),
        ("fire_reset", 1),
        ("episodic_life", None),
        ("clip_rewards", "yes"),
        ("repeat_action_probability", 1.0),
        ("repeat_action_probability", -0.1),
        ("repeat_action_probability", float("nan")),
        ("full_action_set", 0),
        ("max_frames", 30),
        ("stall_frames", 0),
        ("stack", 0),
        ("size", 0),
        ("size", None),
    ],
)
def test_a_wrong_field_is_refused_by_name(field, value):
    with pytest.raises(InputError, match=field):
        resolve_protocol("BreakoutNoFrameskip-v4", **{field: value})


def test_an_unknown_field_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'frame_skip'"):
        resolve_protocol("BreakoutNoFrameskip-v4", frameskip=4)


def test_dict_round_trip_and_its_errors():
    protocol = resolve_protocol("ALE/Pong-v5", repeat_action_probability=0)
    assert Protocol.from_dict(protocol.as_dict()) == protocol
    values = protocol.as_dict()
    del values["game"]
    with pytest.raises(InputError, match="game is missing"):
        Protocol.from_dict(values)
    with pytest.raises(InputError, match="unknown game 'breakut'; did you mean 'breakout'"):
        Protocol.from_dict({"env_id": "x", "game": "breakut"})
    with pytest.raises(InputError, match="unknown protocol field"):
        Protocol.from_dict({**protocol.as_dict(), "colour": 1})


def test_mismatches_name_both_values_and_ignore_the_spelling_of_the_id():
    v4 = resolve_protocol("PongNoFrameskip-v4")
    v5 = resolve_protocol(
        "ALE/Pong-v5", repeat_action_probability=0.0, noop_max=30, max_frames=400_000
    )
    assert mismatches(v4, v5) == []
    full = resolve_protocol("PongNoFrameskip-v4", full_action_set=True)
    assert mismatches(v4, full) == ["full_action_set: trained with False, used with True"]
    other = resolve_protocol("BreakoutNoFrameskip-v4")
    assert mismatches(v4, other) == ["game: trained with 'pong', used with 'breakout'"]


def test_full_action_set_has_18_actions():
    protocol = resolve_protocol("PongNoFrameskip-v4", full_action_set=True)
    assert protocol.num_actions == 18
    assert protocol.action_meanings[:3] == ("NOOP", "FIRE", "UP")


def test_summary_is_one_line_that_states_skip_sticky_and_cap():
    text = resolve_protocol("ALE/Pong-v5").summary()
    assert "\n" not in text
    for word in ("ALE/Pong-v5", "skip 4", "sticky 0.25", "6 actions", "108000", "84x84"):
        assert word in text


def test_importing_envs_imports_no_tensorflow():
    code = "import sys, fl_saliency.envs; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
