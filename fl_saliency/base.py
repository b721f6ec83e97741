"""Dataclasses and small functions that every part shares; NumPy and the standard library only."""

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Agent",
    "AttentionGeometry",
    "BoolArray",
    "Closing",
    "Derivatives",
    "EpisodeRecord",
    "FloatArray",
    "IntArray",
    "PolicyStep",
    "Pooling",
    "UInt8Array",
    "atomic_path",
    "file_sha256",
    "strict_json",
    "umask",
    "write_json",
]

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

Pooling: TypeAlias = Literal["sum", "max"]
"""Over space: the sum, weighted by attention, or each channel's maximum."""


@dataclass(frozen=True, kw_only=True)
class AttentionGeometry:
    """How an attention map lies over the network's input, in input pixels.

    Cell (i, j) sees the square of `receptive_field` pixels whose first row is
    `i * stride - padding` (columns alike). A network without attention has none (`None`).
    """

    receptive_field: int
    stride: int
    padding: int


@dataclass(frozen=True, kw_only=True)
class EpisodeRecord:
    """One finished whole game."""

    env: int
    """Index of the env that played it."""
    episode: int
    """How many games this env had finished before it."""
    seed: int
    """The emulator seed of this game."""
    reward: float
    """Raw whole-game return: the sum of the emulator's own rewards."""
    length: int
    """Agent steps as Baselines counts them, hidden reset steps (no-op, FIRE) included."""
    frames: int
    """Emulator frames since the no-op start."""
    end: str
    """`game_over`, `truncated` (frame cap) or `stalled` (nothing moved for too long)."""
    time: float
    """Seconds since the env was made."""


@dataclass(frozen=True, kw_only=True)
class PolicyStep:
    """What a policy answers to a batch of B observations."""

    actions: IntArray
    """Sampled actions, int64 [B]."""
    neglogp: FloatArray
    """-log pi(action), float32 [B]."""
    values: FloatArray
    """V(observation), float32 [B]."""
    attention: FloatArray | None
    """Attention, float32 [B, h, w]; None for a network that has none."""


@dataclass(frozen=True, kw_only=True)
class Derivatives:
    """One number of a network for each of B inputs, and its gradient by something."""

    values: FloatArray
    """The number, float32 [B]."""
    points: FloatArray
    """What the gradient is by: the pixels, or a layer's activations, float32 [B, ...]."""
    gradients: FloatArray
    """float32, shaped as the points."""


class Agent(Protocol):
    """The one thing that analysis knows of a trained network, whoever trained it.

    Its outputs are called `scores` (index: an action), `value` (index: 0), and by its layers'
    names (index: a channel, of which the mean over space is taken).
    """

    name: str
    """The network's name."""
    num_actions: int
    geometry: AttentionGeometry | None
    """How its attention lies over the input; None for a network that has none."""
    layers: Mapping[str, tuple[int, ...]]
    """Its trainable layers, first to last -> the shape of one observation's activations."""
    feature_layer: str | None
    """The last convolution of its trunk; None if it has none."""
    pooling: Pooling | None
    """How it pools its features over space, so that no place has weights of its own; None: not."""
    rng: np.random.Generator
    """The random stream that `step` draws from."""

    def step(self, obs: UInt8Array) -> PolicyStep:
        """Act on `obs` uint8 [B, 84, 84, 4]; draws from the agent's own random stream."""

    def scores(self, obs: UInt8Array) -> FloatArray:
        """Action logits or Q-values, float32 [B, actions]."""

    def value(self, obs: UInt8Array) -> FloatArray:
        """State values, float32 [B]."""

    def attention(self, obs: UInt8Array) -> FloatArray:
        """Attention, float32 [B, h, w]; raises InputError for a network that has none."""

    def activations(self, obs: UInt8Array, layer: str) -> FloatArray:
        """What `layer` computes, float32 [B, h, w, C] or [B, C]."""

    def layer_geometry(self, layer: str) -> AttentionGeometry | None:
        """How a layer's cells lie over the input; None where that is not known."""

    def derivatives(
        self, pixels: FloatArray, output: str, index: IntArray, *, by: str | None = None
    ) -> Derivatives:
        """Number `index` int [B] of `output` for each of `pixels`, and its gradients.

        pixels float32 [B, 84, 84, 4] in 0..255, whole or not. The gradients are by the pixels, or
        by the activations of layer `by`. Raises InputError if nothing depends on those.
        """


class Closing:
    """A context manager that closes at its end, however it ends."""

    def close(self) -> None:
        """Give back what is held; subclasses say what that is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary sibling of `path` to write to; renamed on success, removed on any failure."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~umask())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """The SHA-256 of the file at `path`, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def umask() -> int:
    """The permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def strict_json(value: Any) -> Any:
    """`value` with NaN and infinities as None and NumPy scalars, arrays and paths made plain."""
    if isinstance(value, dict):
        return {str(key): strict_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return strict_json(value.tolist())
    if isinstance(value, list | tuple):
        return [strict_json(item) for item in value]
    if isinstance(value, np.generic):
        return strict_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def write_json(path: Path, value: Any) -> None:
    """Write `value` as strict JSON (no NaN), indented by 4, atomically."""
    text = json.dumps(strict_json(value), indent=4, allow_nan=False)
    with atomic_path(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")
