"""One Atari game with every rule of OpenAI Baselines' wrappers, on ale-py's emulator interface.

From the game outwards: frame limit, no-op start, frame skip with max-pooling, monitor, episodic
life, fire reset, grey area-resized frames, stack (baselines.common.atari_wrappers, 2018).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import ale_py
import cv2
import numpy as np

from fl_saliency.base import UInt8Array
from fl_saliency.envs.games import load_game
from fl_saliency.envs.pixels import FramePooler
from fl_saliency.envs.protocol import Protocol
from fl_saliency.seeding import derive_seed

__all__ = ["RAM_SIZE", "AtariGame", "FinishedGame", "GameState", "NoopDraw", "draw_noops"]

RAM_SIZE = 128
"""Bytes of the console's memory."""

NoopDraw = Callable[[np.random.Generator, int], int]
"""Draws the number of no-op frames of a game from its generator and `noop_max`."""


def draw_noops(rng: np.random.Generator, noop_max: int) -> int:
    """Uniform from 1 to `noop_max`."""
    return int(rng.integers(1, noop_max + 1))


@dataclass(frozen=True, slots=True)
class FinishedGame:
    """What an `EpisodeRecord` says of a game, without the time."""

    env: int
    episode: int
    seed: int
    reward: float
    length: int
    frames: int
    end: str


@dataclass(frozen=True, slots=True)
class GameState:
    """A moment of a game, as what was done in it."""

    episode: int
    """How many games the env had finished before."""
    hidden: int
    """Hidden opening actions that the game began with."""
    actions: UInt8Array
    """The actions since, uint8 [n]."""


class AtariGame:
    """One env: plays game after game, writes observations into a buffer that it is given.

    A game is a function of its seed and the actions in it, whatever was played before.
    """

    def __init__(
        self,
        protocol: Protocol,
        *,
        env: int,
        seed: int,
        observation: UInt8Array,
        screen: UInt8Array | None = None,
        max_episode_frames: int | None = None,
        noops: NoopDraw = draw_noops,
    ) -> None:
        """Load the game; `reset()` starts it.

        `observation`, uint8 [size, size, stack], C-contiguous, receives the observations, newest
        frame last; `screen`, uint8 [H, W, 3], the pooled RGB screens. `max_episode_frames` cuts
        games that many emulator frames after their no-op start.
        """
        self._protocol = protocol
        self._env = env
        self._seed = seed
        self._observation = observation
        self._max_episode_frames = max_episode_frames
        self._draw_noops = noops
        self._ale = load_game(protocol.game)
        full = self._ale.getLegalActionSet()
        self._actions = full if protocol.full_action_set else self._ale.getMinimalActionSet()
        # The emulator's own no-op: two games' minimal sets have none.
        self._noop = full[0]
        self._is_sticky = protocol.repeat_action_probability > 0
        self._opening = _opening(self._actions) if protocol.fire_reset else []
        self._ale.reset_game()
        self._power_on = self._ale.cloneState(include_rng=True)
        self._pooler = FramePooler(
            self._ale,
            protocol.game,
            max_pool=protocol.max_pool,
            size=protocol.size,
            skip=protocol.frame_skip,
            screen=screen,
        )
        self._first_screen = self._pooler.indices()
        frame = (protocol.size, protocol.size)
        self._stack = [np.zeros(frame, np.uint8) for _ in range(protocol.stack)]
        self._finished: list[FinishedGame] = []

    def reset(self) -> None:
        """Drop the game being played and start this env over, with its first game."""
        self._start(episode=0, hidden=len(self._opening))

    def step(self, action: int) -> tuple[float, bool]:
        """Play action number `action`; return the raw reward and whether an episode ended.

        After an end, hidden steps have led to the first observation of the next life or game.
        """
        self._history.append(action)
        reward, done = self._life_step(self._actions[action])
        if done:
            self._next_life(hidden=len(self._opening))
            self._open(len(self._opening))
        self._observe(clear=done)
        return reward, done

    def get_state(self) -> GameState:
        """What `set_state` needs to come back to this moment of this game."""
        return GameState(
            episode=self._episode,
            hidden=self._hidden,
            actions=np.frombuffer(bytes(self._history), np.uint8),
        )

    def set_state(self, state: GameState) -> None:
        """Play the game of `state`, got from an env with the same arguments, up to that moment.

        The emulator's own snapshots are not used for this: in some games (Qbert, Tetris) one that
        is taken in play goes on differently.
        """
        self._start(episode=state.episode, hidden=state.hidden)
        for action in state.actions.tolist():
            self.step(action)

    @property
    def lives(self) -> int:
        """Lives left in the game being played, as the emulator counts them."""
        return self._lives

    def get_ram(self) -> UInt8Array:
        """A copy of the console's memory, uint8 [128]."""
        ram: UInt8Array = np.array(self._ale.getRAM())
        return ram

    def set_ram(self, values: Mapping[int, int]) -> None:
        """Set bytes (0 to 127) to values (0 to 255), or raise ValueError and set none.

        Screen and observation follow with the next step. `get_state` knows nothing of it.
        """
        wrong = [(i, v) for i, v in values.items() if not (0 <= i < RAM_SIZE and 0 <= v < 256)]
        if wrong:
            raise ValueError(f"memory {wrong}: expected bytes 0 to 127 and values 0 to 255")
        for index, value in values.items():
            self._ale.setRAM(index, value)

    def collect(self) -> list[FinishedGame]:
        """The games that ended since the last call."""
        finished, self._finished = self._finished, []
        return finished

    # The wrappers, innermost first -------------------------------------------------------------

    def _start(self, *, episode: int, hidden: int) -> None:
        self._episode = episode
        self._finished.clear()
        self._new_game(hidden)
        self._open(hidden)
        self._observe(clear=True)

    def _new_game(self, hidden: int) -> None:
        seed = derive_seed("env", self._seed, self._env, self._episode)
        rng = np.random.default_rng(seed)
        played = self._noop_start(rng)
        limit = self._protocol.max_frames - played
        if self._max_episode_frames is not None:
            limit = min(limit, self._max_episode_frames)
        self._game_seed, self._rng, self._limit = seed, rng, limit
        self._return, self._length, self._frames, self._still = 0.0, 0, 0, 0
        self._last_action = self._noop
        self._over = False
        self._lives = self._ale.lives()
        self._hidden, self._history = hidden, bytearray()

    def _noop_start(self, rng: np.random.Generator) -> int:
        """Start the emulator's game and take its screen; return the no-op frames since."""
        self._switch_on()
        played = 0
        if self._protocol.noop_max:
            for _ in range(self._draw_noops(rng, self._protocol.noop_max)):
                self._ale.act(self._noop)
                played += 1
                if self._ale.game_over():
                    self._switch_on()
                    played = 0
        if played:
            self._pooler.take_both()
        else:  # a snapshot has no picture
            self._pooler.show(self._first_screen)
        return played

    def _switch_on(self) -> None:
        """The emulator as after loading the game, whatever was played before.

        A reset keeps the console's memory, from which some games (BeamRider, Tennis) go on. A
        snapshot lacks the half-drawn frame, which a reset empties. Together they are exact; to load
        the game again is too, but takes ten times as long.
        """
        self._ale.reset_game()
        self._ale.restoreState(self._power_on)

    def _skip(self, action: ale_py.Action, *, take: bool = True) -> float:
        """One agent step of the running game; sets `_over` and records the game if it ended."""
        ale, end = self._ale, ""
        reward, moved = 0.0, not take
        for screen in self._pooler.plan:
            reward += ale.act(self._sticky(action) if self._is_sticky else action)
            self._frames += 1
            if ale.game_over():
                end = "game_over"
            elif self._frames >= self._limit:
                end = "truncated"
            if take and screen is not None:
                moved |= self._pooler.take(screen)
            if end:
                break
        self._return += reward
        self._length += 1
        self._still = 0 if moved or reward else self._still + len(self._pooler.plan)
        if not end and self._still >= self._protocol.stall_frames:
            end = "stalled"
        if end:
            self._finish(end)
        return reward

    def _sticky(self, action: ale_py.Action) -> ale_py.Action:
        """The emulator's own rule, drawn here: it takes a new seed only with loading the game."""
        if self._rng.random() >= self._protocol.repeat_action_probability:
            self._last_action = action
        return self._last_action

    def _finish(self, end: str) -> None:
        game = FinishedGame(
            env=self._env,
            episode=self._episode,
            seed=self._game_seed,
            reward=self._return,
            length=self._length,
            frames=self._frames,
            end=end,
        )
        self._finished.append(game)
        self._episode += 1
        self._over = True

    def _life_step(self, action: ale_py.Action) -> tuple[float, bool]:
        """One agent step; the flag says that the game ended, or a life with some left."""
        reward = self._skip(action)
        before, self._lives = self._lives, self._ale.lives()
        # Some games stay at 0 lives for a few frames before they are over.
        lost = self._protocol.episodic_life and 0 < self._lives < before
        return reward, self._over or lost

    def _next_life(self, *, hidden: int, take: bool = True) -> None:
        """A new game if the last one ended; else a hidden no-op leads on to the next life.

        `hidden` is the number of hidden opening actions that are to follow.
        """
        if not self._over:
            self._skip(self._noop, take=take)
            self._lives = self._ale.lives()
        if self._over:  # before, or on the hidden no-op, after which Baselines crashes
            self._new_game(hidden)

    def _open(self, hidden: int) -> None:
        """Play the last `hidden` opening actions."""
        for left in range(hidden - 1, -1, -1):
            if self._life_step(self._opening[-1 - left])[1]:
                # Baselines shows the screen of the last one, whatever follows in the same game.
                self._next_life(hidden=left, take=left > 0)

    def _observe(self, *, clear: bool) -> None:
        """Push the pooled frame onto the stack, which is empty after an end."""
        if clear:
            for frame in self._stack:
                frame.fill(0)
        newest = self._stack.pop(0)
        newest[:] = self._pooler.frame()
        self._stack.append(newest)
        cv2.merge(self._stack, self._observation)


def _opening(actions: list[ale_py.Action]) -> list[ale_py.Action]:
    """FIRE and action 2 where Baselines presses them: action 1 is FIRE, and there are others."""
    return actions[1:3] if len(actions) >= 3 and actions[1] == ale_py.Action.FIRE else []
