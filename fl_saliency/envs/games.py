"""Atari game ids, their ROM names, and what the emulator says of each game."""

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache

import ale_py
from ale_py import roms

from fl_saliency.errors import InputError, unknown_choice

__all__ = ["GameInfo", "game_info", "game_of", "load_game", "playable_games", "title"]

# ale-py ships these ROMs for its two-player interface only; loading one ends the whole process.
_TWO_PLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})

_ID = re.compile(r"(?P<ale>ALE/)?(?P<title>\w+?)(?P<kind>NoFrameskip|Deterministic)?-v(?P<v>\d+)")
_LONGEST = 80
_OWN_SKIP = {"Deterministic": "4 (3 in Space Invaders)", None: "2 to 4, drawn at random,"}


@dataclass(frozen=True, kw_only=True)
class GameInfo:
    """What the emulator says of a game."""

    minimal_actions: tuple[str, ...]
    """Meanings of the minimal action set, in the emulator's order."""
    all_actions: tuple[str, ...]
    """Meanings of the full action set."""
    screen: tuple[int, int]
    """Height and width of a screen in pixels: most games have (210, 160)."""


@lru_cache(maxsize=1)
def playable_games() -> dict[str, str]:
    """ROM names of all games that can be played, by title: `{"MsPacman": "ms_pacman", ...}`."""
    names = sorted(set(roms.get_all_rom_ids()) - _TWO_PLAYER_ONLY)
    return {title(name): name for name in names}


def title(game: str) -> str:
    """The name of ROM `game` in env ids: `title("ms_pacman")` is "MsPacman"."""
    return game.title().replace("_", "")


def game_of(env_id: str) -> tuple[str, str]:
    """Split an env id into its ROM name and its kind, "v4" or "v5".

    Raises InputError for an unknown id, and for one of a known game that skips frames by itself
    or repeats actions: its line names the id to use.
    """
    if len(env_id) > _LONGEST:
        raise InputError(f"unknown env id {env_id[:_LONGEST]!r}... ({len(env_id)} characters)")
    match = _ID.fullmatch(env_id)
    games = playable_games()
    if match is None or match["title"] not in games:
        raise _unknown(env_id)
    game = games[match["title"]]
    if match["ale"] and not match["kind"] and match["v"] == "5":
        return game, "v5"
    if not match["ale"] and match["kind"] == "NoFrameskip" and match["v"] == "4":
        return game, "v4"
    raise InputError(_refusal(env_id, match))


def _unknown(env_id: str) -> InputError:
    forms = ("{}NoFrameskip-v4", "ALE/{}-v5")
    known = [form.format(name) for form in forms for name in playable_games()]
    if difflib.get_close_matches(env_id, known, n=1, cutoff=0.5):
        return unknown_choice("env id", env_id, known)
    expected = " or ".join(form.format("<Game>") for form in forms)
    return InputError(f"unknown env id {env_id!r}; expected {expected}, such as {known[0]!r}")


def _refusal(env_id: str, match: re.Match[str]) -> str:
    name = match["title"]
    use = f"use '{name}NoFrameskip-v4' or 'ALE/{name}-v5'"
    if match["ale"] or match["v"] not in ("0", "4"):
        return f"unknown env id {env_id!r}; {use}"
    if match["kind"] == "NoFrameskip":
        return f"env id {env_id!r} repeats actions at random (0.25), unlike version 4; {use}"
    skip = _OWN_SKIP[match["kind"]]
    return (
        f"env id {env_id!r} skips frames by itself: its own skip of {skip} would come on top of "
        f"the protocol's frame_skip (4 by default); {use}"
    )


def load_game(game: str) -> ale_py.ALEInterface:
    """An emulator with ROM `game` loaded; it repeats no actions and cuts no game short."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 0)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.setInt("max_num_frames_per_episode", 0)
    ale.loadROM(roms.get_rom_path(game))
    return ale


@lru_cache(maxsize=128)
def game_info(game: str) -> GameInfo:
    """What the emulator says of ROM `game`; loading it takes about 0.2 s, once a process."""
    ale = load_game(game)
    return GameInfo(
        minimal_actions=tuple(action.name for action in ale.getMinimalActionSet()),
        all_actions=tuple(action.name for action in ale.getLegalActionSet()),
        screen=tuple(ale.getScreenDims()),
    )
