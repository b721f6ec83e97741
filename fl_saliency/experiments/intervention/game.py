"""One game that keeps the screens behind the agent's observation, so that they can be edited."""

from collections import deque
from collections.abc import Iterable

import cv2
import numpy as np

from fl_saliency.base import UInt8Array
from fl_saliency.envs.emulator import AtariGame
from fl_saliency.envs.games import game_info
from fl_saliency.envs.protocol import Protocol
from fl_saliency.errors import InputError
from fl_saliency.experiments.intervention.edits import Edits

__all__ = ["WatchedGame", "check_pooling", "frame_of"]


class WatchedGame:
    """The first game of an evaluation with one env; a second one begins where it has ended.

    It is a function of its seed and the actions, so a game that is played again is the same one.
    """

    def __init__(self, protocol: Protocol, seed: int) -> None:
        self._protocol = protocol
        self._observation = np.zeros(protocol.observation_shape, np.uint8)
        self._screen = np.zeros((*game_info(protocol.game).screen, 3), np.uint8)
        self._screens: deque[UInt8Array] = deque(maxlen=protocol.stack)
        self._game = AtariGame(
            protocol, env=0, seed=seed, observation=self._observation, screen=self._screen
        )
        self._game.reset()
        self._screens.append(self._screen.copy())

    def view(self) -> tuple[UInt8Array, UInt8Array]:
        """What the agent sees, uint8 [size, size, stack], newest frame last, and the newest screen.

        The screen is the pooled one behind the newest frame, RGB uint8 [H, W, 3]. Both are copies.
        """
        return self._observation.copy(), self._screen.copy()

    @property
    def lives(self) -> int:
        """Lives left."""
        return self._game.lives

    def replay(self, actions: Iterable[int]) -> None:
        """Play `actions`."""
        for action in actions:
            self.step(action)

    def step(self, action: int) -> tuple[float, str | None]:
        """Play one action; returns the raw reward, and how the game or a life ended.

        `game_over`, `truncated` or `stalled` for the game, `life_lost` for a life where the
        protocol counts lives, else None. After an end the screen is the next game's or life's.
        """
        reward, done = self._game.step(action)
        if done:
            self._screens.clear()
        self._screens.append(self._screen.copy())
        ended = [game.end for game in self._game.collect()]
        return reward, ended[0] if ended else "life_lost" if done else None

    def change_memory(self, edits: Edits) -> dict[int, tuple[int, int]]:
        """Carry out the changes of memory; byte -> (before, after). InputError: see `RamEdit`."""
        ram = self._game.get_ram()
        new = edits.new_bytes(ram)
        self._game.set_ram(new)
        return {byte: (int(ram[byte]), value) for byte, value in new.items()}

    def edited(self, edits: Edits) -> tuple[UInt8Array, UInt8Array]:
        """`view()`, were all screens in the stack painted over.

        Screens are painted, then made grey and resized, just as the emulator's own are.
        """
        painted = [edits.paint(screen) for screen in self._screens]
        observation = np.zeros_like(self._observation)
        for place, screen in enumerate(reversed(painted), start=1):
            observation[..., -place] = frame_of(screen, self._protocol.size)
        return observation, painted[-1]


def frame_of(screen: UInt8Array, size: int) -> UInt8Array:
    """The frame of a pooled screen, RGB uint8 [H, W, 3] -> uint8 [size, size]."""
    grey = cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, (size, size), interpolation=cv2.INTER_AREA), np.uint8)


def check_pooling(protocol: Protocol) -> None:
    """Raise InputError if frames cannot be made of pooled screens in colour."""
    if protocol.max_pool != "rgb":
        raise InputError(
            f"--mask and --move need screens that are pooled in rgb; the model's protocol pools "
            f"them in {protocol.max_pool}. --ram works"
        )
