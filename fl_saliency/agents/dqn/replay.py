"""Replay memory: every frame once, as uint8; stacks are put together when they are drawn.

Source: Mnih et al. 2015, doi:10.1038/nature14236, methods. A frame takes 84 * 84 bytes, so 100,000
transitions take 0.7 GB, where stacks on both sides of each would take 5.6 GB.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import BoolArray, FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError

__all__ = ["Batch", "ReplayMemory"]

STACK = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """B transitions, in no order."""

    observations: UInt8Array
    """uint8 [B, H, W, 4], newest frame last."""
    actions: IntArray
    """int64 [B]."""
    rewards: FloatArray
    """float32 [B]."""
    next_observations: UInt8Array
    """uint8 [B, H, W, 4]; of no meaning where an episode has ended."""
    dones: BoolArray
    """bool [B]: the episode ended with this step, so nothing is to come."""


class ReplayMemory:
    """The last `capacity` steps of N envs that step together, the oldest overwritten first.

    A step is the newest frame of what an env's agent saw, its action, and what that gave. A stack
    is made of frames of its own episode alone: before the first there are zeros, as the envs have.
    """

    def __init__(self, capacity: int, num_envs: int, *, frame: tuple[int, int] = (84, 84)) -> None:
        """Room for `capacity` steps in all: capacity // num_envs of each env, at least 6."""
        self._length = capacity // num_envs
        if num_envs < 1 or self._length < STACK + 2:
            raise InputError(
                f"replay capacity {capacity}: expected at least {STACK + 2} steps of each of "
                f"{num_envs} envs"
            )
        shape = (self._length, num_envs)
        self._frames = np.zeros((*shape, *frame), np.uint8)
        self._actions = np.zeros(shape, np.int64)
        self._rewards = np.zeros(shape, np.float32)
        self._dones = np.zeros(shape, np.bool_)
        self._ages = np.zeros(shape, np.int64)
        """How many steps of its episode came before each."""
        self._added = 0

    def __len__(self) -> int:
        """Steps that it holds, of all envs."""
        return min(self._added, self._length) * self._frames.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory that it takes, in bytes, filled or not."""
        return sum(array.nbytes for array in self._arrays().values())

    def add(
        self, newest: UInt8Array, actions: IntArray, rewards: FloatArray, dones: BoolArray
    ) -> None:
        """Keep one step of all envs.

        newest uint8 [N, H, W]: the newest frames that actions [N] answered; rewards [N] and dones
        [N]: what they gave. After a done, an env's next step begins an episode.
        """
        row, before = self._added % self._length, (self._added - 1) % self._length
        if self._added:
            age = np.where(self._dones[before], 0, self._ages[before] + 1)
        else:
            age = np.zeros(self._frames.shape[1], np.int64)
        self._frames[row] = newest
        self._actions[row] = actions
        self._rewards[row] = rewards
        self._dones[row] = dones
        self._ages[row] = age
        self._added += 1

    @property
    def can_sample(self) -> bool:
        """Whether there is a step whose next one is known."""
        return self._added > 1

    def sample(self, rng: np.random.Generator, size: int) -> Batch:
        """Draw `size` steps, each with the same chance, with replacement.

        The newest step of each env is left out, as what came after it is not known yet, and so are
        the oldest ones, whose stacks have lost a frame.
        """
        if not self.can_sample:
            raise ValueError("the replay memory has no step whose next one is known")
        held = min(self._added, self._length)
        # Once steps are overwritten, the oldest stacks are incomplete, whatever their age.
        lost = STACK - 1 if self._added > self._length else 0
        steps = self._added - held + lost + rng.integers(held - lost - 1, size=size)
        envs = rng.integers(self._frames.shape[1], size=size)
        rows = steps % self._length
        return Batch(
            observations=self._stacks(steps, envs),
            actions=self._actions[rows, envs],
            rewards=self._rewards[rows, envs],
            next_observations=self._stacks(steps + 1, envs),
            dones=self._dones[rows, envs],
        )

    def _stacks(self, steps: IntArray, envs: IntArray) -> UInt8Array:
        """The stacks at `steps` [B] of `envs` [B], uint8 [B, H, W, 4]."""
        ages = self._ages[steps % self._length, envs]
        stacks = np.zeros((len(steps), *self._frames.shape[2:], STACK), np.uint8)
        for back in range(STACK):
            known = ages >= back  # no frame of another episode
            stacks[known, ..., STACK - 1 - back] = self._frames[
                (steps[known] - back) % self._length, envs[known]
            ]
        return stacks

    def state(self) -> dict[str, np.ndarray]:
        """All that `restore` needs: the steps held, and how many were ever added."""
        held = min(self._added, self._length)
        arrays = {name: array[:held] for name, array in self._arrays().items()}
        return {**arrays, "added": np.array(self._added), "length": np.array(self._length)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over what `state` gave; ValueError unless it is of a memory of the same size."""
        length, envs = int(state["length"]), state["actions"].shape[1]
        if (length, envs) != self._actions.shape:
            raise ValueError(f"replay of {length} x {envs}: expected {self._actions.shape}")
        for name, array in self._arrays().items():
            array[: len(state[name])] = state[name]
        self._added = int(state["added"])

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "frames": self._frames,
            "actions": self._actions,
            "rewards": self._rewards,
            "dones": self._dones,
            "ages": self._ages,
        }
