"""A vector of Atari envs with Baselines' rules, played by several processes in shared memory."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fl_saliency.base import BoolArray, Closing, EpisodeRecord, FloatArray, IntArray, UInt8Array
from fl_saliency.envs.emulator import GameState
from fl_saliency.envs.games import game_info
from fl_saliency.envs.protocol import Protocol
from fl_saliency.envs.worker import EnvGroup, GroupSpec, Order, WorkerProcess, allocate
from fl_saliency.errors import InputError
from fl_saliency.seeding import check_seed

__all__ = ["AtariVectorEnv", "VectorStep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorStep:
    """What one step of n envs gave."""

    observations: UInt8Array
    """uint8 [n, size, size, stack]: a view that the next step overwrites."""
    rewards: FloatArray
    """What the learner sees (the sign, if the protocol says so), float32 [n]."""
    raw_rewards: FloatArray
    """The emulator's own rewards, float32 [n]."""
    dones: BoolArray
    """bool [n]: a game ended, or a life where the protocol counts lives."""
    episodes: tuple[EpisodeRecord, ...]
    """The whole games that ended, in order of envs."""


class AtariVectorEnv(Closing):
    """N games of one protocol; each env has its own seeds, so results depend on nothing else.

    Game j of env i is seeded with `derive_seed("env", seed, i, j)`. After the end of a game or
    life the observation is already the first of the next. Use it as a context manager, or call
    `close()`.
    """

    def __init__(
        self,
        protocol: Protocol,
        num_envs: int,
        seed: int,
        *,
        workers: int | None = None,
        screens: bool = False,
        max_episode_frames: int | None = None,
    ) -> None:
        """Make the envs; `reset()` starts them.

        `workers` processes play beside this one, which takes a share of the envs as long as there
        are more envs than workers (default: one less than there are cores). `screens` asks for RGB
        screens. `max_episode_frames` cuts games that many emulator frames after their no-op start.
        """
        _check_arguments(num_envs, workers, max_episode_frames)
        self.protocol = protocol
        self.num_envs = num_envs
        self.num_actions = protocol.num_actions
        self._started = time.monotonic()
        spec = GroupSpec(
            protocol=protocol,
            num_envs=num_envs,
            envs=tuple(range(num_envs)),
            seed=check_seed("seed", seed),
            max_episode_frames=max_episode_frames,
            screens=game_info(protocol.game).screen if screens else None,
            memory={},
        )
        allocate(spec)
        self._buffers = spec.buffers()
        self._playing = False
        self._pending: deque[range] = deque()
        count = min(num_envs, _cores()) - 1 if workers is None else min(num_envs, workers)
        self._groups: list[EnvGroup | WorkerProcess] = []
        try:
            self._start(spec, count)
        except BaseException:
            self.close()
            raise

    def _start(self, spec: GroupSpec, workers: int) -> None:
        # Neighbours go to different groups, so that any slice of the envs keeps all busy.
        shares = [
            replace(spec, envs=tuple(range(index, self.num_envs, workers + 1)))
            for index in range(workers + 1)
        ]
        # To wake another process takes long on some machines: this one had better play than wait.
        # It takes the last share, the smallest, which is nothing if all envs have their process.
        self._groups.append(EnvGroup(shares.pop()))
        for index, share in enumerate(shares):
            self._groups.append(WorkerProcess(share, index))
        for group in self._groups[1:]:
            group.result()

    @property
    def observations(self) -> UInt8Array:
        """The present observations, uint8 [N, size, size, stack], newest frame last."""
        return self._buffers.observations

    @property
    def screens(self) -> UInt8Array | None:
        """The screens that the newest frames were made of, uint8 [N, H, W, 3], if asked for."""
        return self._buffers.screens

    def reset(self, active: BoolArray | None = None) -> UInt8Array:
        """Start the `active` envs over (default: all), with their first games; the others stay.

        Games being played are dropped without a record. Returns the observations of all envs.
        """
        self._submit("reset", range(self.num_envs), active)
        self._collect()
        self._playing = True
        return self.observations

    def step(self, actions: npt.ArrayLike, active: BoolArray | None = None) -> VectorStep:
        """Play `actions` int [N]; envs that are not in `active` bool [N] are left untouched.

        Raises ValueError for wrong actions and JobError if a worker fails.
        """
        self._step_async(actions, range(self.num_envs), active)
        return self.step_wait()

    def get_states(self) -> tuple[GameState, ...]:
        """Where each env is in its game, for `set_states`."""
        self._submit("save", range(self.num_envs), None)
        self._pending.popleft()
        return tuple(state for _, state in sorted(self._answers(), key=lambda pair: pair[0]))

    def set_states(self, states: Sequence[GameState]) -> UInt8Array:
        """Play the games of `states` (one per env) up to where they were; returns observations.

        The envs must have been made with the same protocol, seed and frame limits. Exact in every
        game, at the price of playing the open games again, at about 1000 steps/s a process.
        """
        if len(states) != self.num_envs:
            raise ValueError(f"{len(states)} states: expected {self.num_envs}, one per env")
        self._submit("load", range(self.num_envs), None, states=tuple(states))
        self._collect()
        self._playing = True
        return self.observations

    def step_async(self, actions: npt.ArrayLike, envs: slice = slice(None)) -> None:
        """Begin to play `actions` int [n] in the n envs of `envs`; `step_wait(envs)` ends it.

        Steps of other envs may begin meanwhile.
        """
        chosen = range(self.num_envs)[envs]
        if chosen.step < 0:
            raise ValueError(f"step_async({envs}): expected a rising slice")
        self._step_async(actions, chosen, None)

    def step_wait(self, envs: slice = slice(None)) -> VectorStep:
        """Wait for the oldest step begun, which must be that of `envs`; its arrays are [n]."""
        chosen = range(self.num_envs)[envs]
        if not self._pending or self._pending[0] != chosen:
            raise ValueError(f"step_wait({envs}): the oldest step begun is not of these envs")
        episodes = self._collect()
        raw = self._buffers.rewards[envs].copy()
        return VectorStep(
            observations=self.observations[envs],
            rewards=np.sign(raw) if self.protocol.clip_rewards else raw,
            raw_rewards=raw,
            dones=self._buffers.dones[envs].copy(),
            episodes=episodes,
        )

    def _step_async(self, actions: npt.ArrayLike, envs: range, active: BoolArray | None) -> None:
        given = np.asarray(actions)
        if given.shape != (len(envs),) or given.dtype.kind not in "iu":
            found = f"{given.dtype} {given.shape}"
            raise ValueError(f"actions {found}: expected integers ({len(envs)},)")
        listed = given.tolist()  # of a few numbers, a list is searched faster
        if listed and not (min(listed) >= 0 and max(listed) < self.num_actions):
            raise ValueError(f"actions {given}: expected 0 to {self.num_actions - 1}")
        self._submit("step", envs, active, given)

    def _submit(
        self,
        command: str,
        envs: range,
        active: BoolArray | None,
        actions: IntArray | None = None,
        states: tuple[GameState, ...] = (),
    ) -> None:
        if not self._groups:
            raise ValueError(f"{command}: the envs are closed")
        if not self._playing and (command in ("step", "save") or active is not None):
            raise ValueError(f"{command}: the envs have not begun; reset() all first")
        if any(set(envs) & set(pending) for pending in self._pending):
            raise ValueError(f"{command}: a step of these envs has begun; step_wait() first")
        where = slice(envs.start, envs.stop, envs.step)
        if active is not None:
            self._buffers.active[where] = _checked_mask(active, len(envs))
            self._buffers.rewards[where] = 0.0
            self._buffers.dones[where] = False
        if actions is not None:
            self._buffers.actions[where] = actions
        order = Order(command, envs, active is not None, states)
        for group in self._groups:
            group.submit(order)
        self._pending.append(envs)

    def _collect(self) -> tuple[EpisodeRecord, ...]:
        self._pending.popleft()
        ended = self._answers()
        if not ended:
            return ()
        now = time.monotonic() - self._started
        ended.sort(key=lambda game: (game.env, game.episode))
        return tuple(EpisodeRecord(**asdict(game), time=now) for game in ended)

    def _answers(self) -> list[Any]:
        return [item for group in self._groups for item in group.result()]

    def close(self) -> None:
        """End the workers; the buffers stay readable."""
        for group in self._groups:
            group.close()
        self._groups.clear()


def _checked_mask(active: BoolArray, envs: int) -> BoolArray:
    mask = np.asarray(active)
    if mask.shape != (envs,) or mask.dtype != np.bool_:
        raise ValueError(f"active {mask.dtype} {mask.shape}: expected bool ({envs},)")
    return mask


def _cores() -> int:
    from joblib import cpu_count  # knows of affinity and container limits; workers need it not

    return int(cpu_count())


def _check_arguments(num_envs: int, workers: int | None, max_episode_frames: int | None) -> None:
    if num_envs < 1:
        raise InputError(f"number of envs {num_envs}: expected 1 or more")
    if workers is not None and workers < 0:
        raise InputError(f"number of env workers {workers}: expected 0 or more")
    if max_episode_frames is not None and max_episode_frames < 1:
        raise InputError(f"frames of an episode {max_episode_frames}: expected 1 or more")
