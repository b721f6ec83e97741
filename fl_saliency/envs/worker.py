"""Groups of Atari envs, in this process or in one of their own, over memory that all see."""

import contextlib
import multiprocessing
import os
import signal
import struct
import traceback
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import cv2
import numpy as np

from fl_saliency.base import BoolArray, FloatArray, IntArray, UInt8Array
from fl_saliency.envs.emulator import AtariGame, FinishedGame, GameState
from fl_saliency.envs.protocol import Protocol
from fl_saliency.errors import JobError

__all__ = ["Buffers", "EnvGroup", "GroupSpec", "Order", "WorkerProcess", "allocate"]

# Never forked: TensorFlow's threads do not live through a fork, and what they hold stays held.
_SPAWN = multiprocessing.get_context("spawn")
_COMMANDS = ("step", "reset", "save", "load")
_ORDER = struct.Struct("B?iii")
# The first byte of an answer: nothing to tell; an answer follows; a traceback follows.
_DONE, _TOLD, _FAILED = b".", b"+", b"!"
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)


class Order(NamedTuple):
    """What a group of envs is to do."""

    command: str
    """`step`, with the actions in the buffers, `reset`, `save` (tell the games' states) or `load`
    (play on from `states`)."""
    envs: range
    """In which envs, as far as they are in the group."""
    masked: bool = False
    """Only in those that are active according to the buffers."""
    states: tuple[GameState, ...] = ()
    """For `load`: a state per env, of all N."""


@dataclass(frozen=True, kw_only=True)
class Buffers:
    """What parent and workers exchange every step, for N envs."""

    observations: UInt8Array
    """uint8 [N, size, size, stack]."""
    screens: UInt8Array | None
    """uint8 [N, H, W, 3]."""
    actions: IntArray
    """int32 [N], from the parent."""
    active: BoolArray
    """bool [N], from the parent, for masked orders."""
    rewards: FloatArray
    """Raw rewards, float32 [N]."""
    dones: BoolArray
    """bool [N]."""


@dataclass(frozen=True, kw_only=True)
class GroupSpec:
    """All that a group of envs needs to be made; its memory is shared when it was made so."""

    protocol: Protocol
    num_envs: int
    envs: tuple[int, ...]
    seed: int
    max_episode_frames: int | None
    screens: tuple[int, int] | None
    memory: dict[str, Any]

    def buffers(self) -> Buffers:
        """Arrays over the memory."""
        views: dict[str, Any] = {
            name: np.frombuffer(self.memory[name], dtype).reshape(shape)
            for name, (shape, dtype) in _fields(self).items()
        }
        views.setdefault("screens", None)
        return Buffers(**views)


def _fields(spec: GroupSpec) -> dict[str, tuple[tuple[int, ...], type]]:
    n = spec.num_envs
    layout: dict[str, tuple[tuple[int, ...], type]] = {
        "observations": ((n, *spec.protocol.observation_shape), np.uint8),
        "actions": ((n,), np.int32),
        "active": ((n,), np.bool_),
        "rewards": ((n,), np.float32),
        "dones": ((n,), np.bool_),
    }
    if spec.screens is not None:
        layout["screens"] = ((n, *spec.screens, 3), np.uint8)
    return layout


def allocate(spec: GroupSpec) -> None:
    """Fill `spec.memory` with zeroed memory that its worker processes will share."""
    for name, (shape, dtype) in _fields(spec).items():
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        spec.memory[name] = _SPAWN.RawArray("B", size)


class EnvGroup:
    """Some of the envs, played in the present process."""

    def __init__(self, spec: GroupSpec) -> None:
        self._buffers = buffers = spec.buffers()
        self._orders: deque[Order] = deque()
        self._shares: dict[range, list[int]] = {}
        self._games = {
            env: AtariGame(
                spec.protocol,
                env=env,
                seed=spec.seed,
                observation=buffers.observations[env],
                screen=None if buffers.screens is None else buffers.screens[env],
                max_episode_frames=spec.max_episode_frames,
            )
            for env in spec.envs
        }

    def submit(self, order: Order) -> None:
        """Take note of `order`; it is carried out when its result is asked for."""
        self._orders.append(order)

    def result(self) -> list[Any]:
        """Carry out the oldest order, in those of its envs that are in this group.

        Returns the games that ended, or (env, state) of each.
        """
        order = self._orders.popleft()
        if order.command == "save":
            return [(env, self._games[env].get_state()) for env in self._share(order.envs)]
        play = {"step": self._step, "reset": self._reset, "load": self._load}[order.command]
        ended: list[FinishedGame] = []
        for env in self._share(order.envs):
            if order.masked and not self._buffers.active[env]:
                continue
            play(env, order)
            ended += self._games[env].collect()
        return ended

    def close(self) -> None:
        """Nothing to end."""

    def _share(self, envs: range) -> list[int]:
        if envs not in self._shares:
            self._shares[envs] = [env for env in self._games if env in envs]
        return self._shares[envs]

    def _reset(self, env: int, order: Order) -> None:
        self._games[env].reset()

    def _load(self, env: int, order: Order) -> None:
        self._games[env].set_state(order.states[env])

    def _step(self, env: int, order: Order) -> None:
        buffers = self._buffers
        buffers.rewards[env], buffers.dones[env] = self._games[env].step(int(buffers.actions[env]))


class WorkerProcess:
    """Some of the envs, played in a process of their own."""

    def __init__(self, spec: GroupSpec, index: int) -> None:
        """Start the process; its first `result()` comes when the envs are made."""
        self._name = f"env worker {index}"
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_serve, args=(theirs, spec), name=self._name, daemon=True
        )
        self._process.start()
        theirs.close()

    def submit(self, order: Order) -> None:
        """Have `order` carried out; raises JobError if the process is no more."""
        try:
            os.write(self._pipe.fileno(), _encode(order.command, order.envs, order.masked))
            if order.states:
                self._pipe.send(order.states)
        except _GONE as error:
            raise self._death() from error

    def result(self) -> list[Any]:
        """Wait for the oldest order's answer; raises JobError if the process fails or is gone."""
        try:
            answer = _read(self._pipe, 1)
            if answer == _DONE:
                return []
            content = self._pipe.recv()
        except _GONE as error:
            raise self._death() from error
        if answer == _FAILED:
            failure = JobError(f"{self._name} failed: {content.strip().splitlines()[-1]}")
            failure.add_note(content)
            raise failure
        answer_of_group: list[Any] = content
        return answer_of_group

    def _death(self) -> JobError:
        self._process.join(timeout=5)
        return JobError(f"{self._name} died (exit code {self._process.exitcode})")

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(pipe: Connection, spec: GroupSpec) -> None:
    """Obey the parent until it closes the pipe, or is no more.

    An order is a few bytes, not pickled and without a header, for it is sent at every step; the
    answer is one byte, followed by a pickled object where there is something to tell.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    cv2.setNumThreads(1)
    with contextlib.suppress(*_GONE):
        try:
            _obey(pipe, EnvGroup(spec))
        except _GONE:
            raise
        except Exception:
            os.write(pipe.fileno(), _FAILED)
            pipe.send(traceback.format_exc())


def _obey(pipe: Connection, group: EnvGroup) -> None:
    os.write(pipe.fileno(), _DONE)
    while True:
        order = _decode(_read(pipe, _ORDER.size))
        if order.command == "load":
            order = order._replace(states=pipe.recv())
        group.submit(order)
        answer = group.result()
        os.write(pipe.fileno(), _TOLD if answer else _DONE)
        if answer:
            pipe.send(answer)


def _read(pipe: Connection, size: int) -> bytes:
    data = os.read(pipe.fileno(), size)
    if len(data) < size:  # both ends write whole messages, so the other end is closed
        raise EOFError
    return data


@lru_cache(maxsize=64)
def _encode(command: str, envs: range, masked: bool) -> bytes:
    return _ORDER.pack(_COMMANDS.index(command), masked, envs.start, envs.stop, envs.step)


@lru_cache(maxsize=64)
def _decode(message: bytes) -> Order:
    command, masked, *bounds = _ORDER.unpack(message)
    return Order(_COMMANDS[command], range(*bounds), masked)
