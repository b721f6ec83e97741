"""The games of Atari-HEAD and the spellings they go by (Zhang et al. 2020, AAAI 34)."""

import re
from collections.abc import Iterable

from fl_saliency.errors import unknown_choice

__all__ = ["GAMES", "canonical_game", "find_game", "split_highscore"]

GAMES = (
    "alien",
    "asterix",
    "bank_heist",
    "berzerk",
    "breakout",
    "centipede",
    "demon_attack",
    "enduro",
    "freeway",
    "frostbite",
    "hero",
    "montezuma_revenge",
    "ms_pacman",
    "name_this_game",
    "phoenix",
    "riverraid",
    "road_runner",
    "seaquest",
    "space_invaders",
    "venture",
)
"""As record 3451402 writes them."""

_ENV_ID = re.compile(r"(?:.*/)?(.+?)(?:-ram)?(?:Deterministic|NoFrameskip)?(?:-v\d+)?")


def _key(text: str) -> str:
    """What all spellings of one name share: MsPacman, Mspacman, ms_pacman -> mspacman."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def split_highscore(name: str) -> tuple[str, bool]:
    """("ms_pacman_highscore") -> ("ms_pacman", True): the best player's trials go by that name."""
    base = re.sub(r"[ _-]?highscore$", "", name.strip(), flags=re.IGNORECASE)
    return base, base != name.strip()


def find_game(text: str, known: Iterable[str] = GAMES) -> str | None:
    """The name in `known` that `text` spells: a game's name, or an env id's game part."""
    base = split_highscore(text)[0]
    match = _ENV_ID.fullmatch(base)
    keys = {_key(name): name for name in known}
    return keys.get(_key(base)) or (keys.get(_key(match[1])) if match else None)


def canonical_game(text: str, known: Iterable[str] = GAMES) -> str:
    """`find_game`, but an unknown game raises InputError that names the nearest one.

    >>> canonical_game("MsPacmanNoFrameskip-v4"), canonical_game("ALE/Breakout-v5")
    ('ms_pacman', 'breakout')
    """
    names = list(known)
    game = find_game(text, names)
    if game is None:
        raise unknown_choice("Atari-HEAD game", text, names)
    return game
