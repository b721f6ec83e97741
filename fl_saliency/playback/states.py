"""States of play on disk: what methods, sanity checks and overlays are computed from, in order.

Arrays are memory-mapped, so that a long recording takes no memory.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from fl_saliency.base import Agent, FloatArray, IntArray, UInt8Array
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import FileFormatError, JobError

__all__ = ["Moment", "States", "moments_of_play", "reserve"]


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One state in which an agent acts."""

    observation: UInt8Array
    """uint8 [84, 84, 4], newest frame last."""
    screen: UInt8Array
    """The screen behind the newest frame, RGB uint8 [H, W, 3]."""
    action: int
    """What the agent chose."""
    score: float
    """Raw return of the game so far; NaN where it is not known."""
    game: int
    """Number of the game, from 0; a recorded trial is one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class States:
    """T moments as arrays over files in one folder."""

    observations: UInt8Array
    """uint8 [T, 84, 84, 4]."""
    screens: UInt8Array
    """RGB uint8 [T, H, W, 3]."""
    actions: IntArray
    """int64 [T]."""
    scores: FloatArray
    """float64 [T], NaN where not known."""
    games: IntArray
    """int64 [T]."""

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def num_games(self) -> int:
        """Of how many games they are."""
        return int(np.unique(self.games).size)

    @classmethod
    def record(cls, folder: Path, moments: Iterable[Moment], count: int) -> Self:
        """Write up to `count` of the `moments` into `folder`, which must be there.

        Raises JobError if there is none at all or the disk is full.
        """
        drawn = itertools.islice(moments, count)
        first = next(drawn, None)
        if first is None:
            raise JobError(f"{folder}: there is no state to record")
        try:
            arrays = _allocate(folder, first, count)
            written = 0
            for row, moment in enumerate(itertools.chain([first], drawn)):
                if row % _RESERVED == 0:
                    for array in arrays.values():
                        reserve(array, row, min(row + _RESERVED, count))
                for name, array in arrays.items():
                    array[row] = getattr(moment, _SINGULAR[name])
                written = row + 1
        except OSError as error:
            raise JobError(f"{folder}: states cannot be kept there ({error.strerror})") from error
        for array in arrays.values():
            array.flush()
        (folder / _COUNT).write_text(f"{written}\n", encoding="ascii")
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """What `record` wrote; raises FileFormatError if it was not finished."""
        try:
            count = int((folder / _COUNT).read_text(encoding="ascii"))
            arrays = {
                name: np.load(folder / f"{name}.npy", mmap_mode="r")[:count] for name in _SINGULAR
            }
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{folder}: not a finished recording of states") from error
        return cls(**arrays)

    def batches(self, size: int) -> Iterator[slice]:
        """Slices of `size` states, in order, the last one perhaps smaller."""
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    def take(self, rows: Sequence[int]) -> "States":
        """Some of the states, in memory."""
        chosen = list(rows)
        return States(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


_RESERVED = 64
"""States that disk space is taken for at a time."""
_COUNT = "count"
_SINGULAR = {
    "observations": "observation",
    "screens": "screen",
    "actions": "action",
    "scores": "score",
    "games": "game",
}


def reserve(array: "np.memmap[Any, Any]", start: int, stop: int) -> None:
    """Take disk space for rows `start` to `stop` of an array over a sparse file.

    OSError if there is none left; without this, writing to the array would end the process.
    """
    row = array[0].nbytes
    with Path(str(array.filename)).open("r+b") as file:
        os.posix_fallocate(file.fileno(), array.offset + start * row, (stop - start) * row)


def _allocate(folder: Path, first: Moment, count: int) -> dict[str, "np.memmap[Any, Any]"]:
    """Arrays over sparse files: what is not written takes no space."""
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "observations": (np.uint8, first.observation.shape),
        "screens": (np.uint8, first.screen.shape),
        "actions": (np.int64, ()),
        "scores": (np.float64, ()),
        "games": (np.int64, ()),
    }
    return {
        name: np.lib.format.open_memmap(
            folder / f"{name}.npy", mode="w+", dtype=dtype, shape=(count, *shape)
        )
        for name, (dtype, shape) in shapes.items()
    }


def moments_of_play(agent: Agent, env: AtariVectorEnv) -> Iterator[Moment]:
    """Play the one game of `env` (made with screens) after the other, without end."""
    if env.num_envs != 1 or env.screens is None:
        raise ValueError(f"{env.num_envs} envs: expected one, with screens")
    env.reset()
    score, game = 0.0, 0
    while True:
        action = agent.step(env.observations).actions
        yield Moment(
            observation=env.observations[0],
            screen=env.screens[0],
            action=int(action[0]),
            score=score,
            game=game,
        )
        step = env.step(action)
        score += float(step.raw_rewards[0])
        if step.episodes:
            score, game = 0.0, game + len(step.episodes)
