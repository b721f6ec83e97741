"""Open games as arrays and plain state, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fl_saliency.envs.emulator import GameState

__all__ = ["games_from_arrays", "games_to_arrays"]


def games_to_arrays(
    games: Sequence[GameState],
) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, int]]]:
    """The actions of each env's open game by array name, and the rest of each state."""
    arrays: dict[str, npt.NDArray[Any]] = {
        _name(env): game.actions for env, game in enumerate(games)
    }
    return arrays, [{"episode": game.episode, "hidden": game.hidden} for game in games]


def games_from_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], rest: Sequence[Mapping[str, int]], num_actions: int
) -> list[GameState]:
    """What `games_to_arrays` took apart; ValueError, KeyError or TypeError for anything else."""
    return [_game(arrays[_name(env)], game, num_actions) for env, game in enumerate(rest)]


def _name(env: int) -> str:
    return f"games/{env}/actions"


def _game(actions: npt.NDArray[Any], rest: Mapping[str, int], num_actions: int) -> GameState:
    episode, hidden = rest["episode"], rest["hidden"]
    if not (type(episode) is int and type(hidden) is int and episode >= 0 and 0 <= hidden <= 2):
        raise ValueError(f"game {rest}: not the state of a game")
    if actions.dtype != np.uint8 or actions.ndim != 1 or (actions >= num_actions).any():
        raise ValueError("actions of a game: expected action numbers, uint8 [n]")
    return GameState(episode=episode, hidden=hidden, actions=actions)
