import pytest

from fl_saliency.atari_head.games import GAMES, canonical_game, find_game, split_highscore
from fl_saliency.errors import InputError


@pytest.mark.parametrize(
    ("text", "game"),
    [
        ("Breakout", "breakout"),
        ("breakout", "breakout"),
        ("MsPacman", "ms_pacman"),
        ("Mspacman", "ms_pacman"),
        ("ms_pacman", "ms_pacman"),
        ("ms pacman", "ms_pacman"),
        ("ms_pacman_highscore", "ms_pacman"),
        ("MsPacmanNoFrameskip-v4", "ms_pacman"),
        ("ALE/MsPacman-v5", "ms_pacman"),
        ("BreakoutDeterministic-v4", "breakout"),
        ("Breakout-v0", "breakout"),
        ("Breakout-ram-v4", "breakout"),
        ("NameThisGame", "name_this_game"),
        ("MontezumaRevengeNoFrameskip-v4", "montezuma_revenge"),
        ("RiverRaid", "riverraid"),
    ],
)
def test_every_spelling_names_its_game(text, game):
    assert canonical_game(text) == game


@pytest.mark.parametrize("game", GAMES)
def test_every_game_is_itself_and_its_env_id(game):
    assert canonical_game(game) == game
    assert canonical_game(f"ALE/{game.title().replace('_', '')}-v5") == game


def test_an_unknown_game_is_told_the_nearest():
    with pytest.raises(InputError, match=r"unknown Atari-HEAD game 'Breakot'; .*'breakout'"):
        canonical_game("Breakot")
    with pytest.raises(InputError, match="unknown Atari-HEAD game 'ALE/BeamRider-v5'"):
        canonical_game("ALE/BeamRider-v5")


@pytest.mark.parametrize("text", ["", "-v4", "ALE/", "NoFrameskip-v4", "_highscore"])
def test_what_holds_no_name_is_no_game(text):
    assert find_game(text) is None


def test_highscore_is_told_from_the_name():
    assert split_highscore(" ms_pacman_highscore ") == ("ms_pacman", True)
    assert split_highscore("ms_pacman") == ("ms_pacman", False)
