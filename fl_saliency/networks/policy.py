"""A network with its policy and value heads, its initialisation, and its variables by name."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import keras
import numpy as np
from keras import ops

from fl_saliency.base import FloatArray
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.networks.blocks import dense
from fl_saliency.networks.registry import get_network
from fl_saliency.seeding import stream

__all__ = [
    "HEADS",
    "OBSERVATION_SHAPE",
    "NamedVariable",
    "build_network",
    "build_policy",
    "count_parameters",
    "get_arrays",
    "initialise",
    "layer_of",
    "named_variables",
    "orthogonal",
    "set_arrays",
]

OBSERVATION_SHAPE = (84, 84, 4)
HEADS = ("pi", "vf")
"""Layers of a policy behind its network: logits and value."""
_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


@contextlib.contextmanager
def _dtype_policy(policy: str) -> Iterator[None]:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def build_network(name: str) -> keras.Model:
    """obs uint8 [B, 84, 84, 4] -> (latent float32 [B, 512], attention float32 [B, h, w]).

    A network without attention returns zeros [B, 7, 7], as the original's does. Weights are zero
    until `initialise`. Raises InputError for an unknown name.
    """
    obs = keras.Input(OBSERVATION_SHAPE, dtype="uint8", name="obs")
    latent, attention = get_network(name).build(obs)
    if attention is None:
        attention = ops.reshape(ops.zeros_like(latent[:, :49]), (-1, 7, 7))
    elif len(attention.shape) == 4:
        attention = attention[..., 0]
    return keras.Model(obs, (latent, ops.cast(attention, "float32")), name=name)


def build_policy(
    name: str, num_actions: int, *, seed: int | None = None, precision: str = "float32"
) -> keras.Model:
    """obs uint8 [B, 84, 84, 4] -> (logits [B, A], value [B], latent [B, 512], attention [B, h, w]).

    All outputs are float32. With a `seed` the weights are initialised as Baselines does, else they
    are zero. `precision` bfloat16 computes the convolutions in bfloat16 over float32 weights.
    """
    if num_actions < 1:
        raise InputError(f"num_actions {num_actions}: expected at least 1")
    if precision not in _POLICIES:
        raise unknown_choice("precision", precision, _POLICIES)
    with _dtype_policy(_POLICIES[precision]):
        network = build_network(name)
    latent, attention = network.outputs
    logits = dense(latent, "pi", num_actions)
    value = dense(latent, "vf", 1)[:, 0]
    model = keras.Model(network.input, (logits, value, latent, attention), name=name)
    if seed is not None:
        initialise(model, seed)
    return model


@dataclass(frozen=True, kw_only=True)
class NamedVariable:
    """A trainable variable under the name and shape that Baselines' files give it."""

    name: str
    """TensorFlow-1 name, for example `ppo2_model/pi/c1/w:0`."""
    shape: tuple[int, ...]
    """Shape in the file; a convolution's bias is [1, n, 1, 1] there."""
    variable: Any
    """The Keras variable."""


def named_variables(model: keras.Model) -> list[NamedVariable]:
    """The trainable variables of a policy in the order in which Baselines creates them."""
    layers = [layer for layer in model.layers if layer.trainable_weights]
    body = [layer for layer in layers if layer.name not in HEADS]
    heads = [model.get_layer(name) for name in HEADS]
    return [item for layer in body + heads for item in _layer_variables(layer)]


def _layer_variables(layer: Any) -> list[NamedVariable]:
    scope = layer.name if layer.name in HEADS else f"pi/{layer.name.replace('.', '/')}"
    # The policy head is `ppo2_model/pi`, the scope that also holds the network's layers.
    if getattr(layer, "kernel", None) is None or getattr(layer, "bias", None) is None:
        raise InputError(
            f"layer {layer.name!r} ({type(layer).__name__}): a network's trainable layers must "
            "have a kernel and a bias, as model.pkl has names for these alone"
        )
    kernel, bias = layer.kernel, layer.bias
    bias_shape = (1, bias.shape[0], 1, 1) if len(kernel.shape) == 4 else tuple(bias.shape)
    return [
        NamedVariable(name=f"ppo2_model/{scope}/w:0", shape=tuple(kernel.shape), variable=kernel),
        NamedVariable(name=f"ppo2_model/{scope}/b:0", shape=bias_shape, variable=bias),
    ]


def layer_of(variable: str) -> str:
    """The layer of a variable by its name: `ppo2_model/pi/h1/h2/w:0` is of `h1.h2`."""
    scope = variable.removeprefix("ppo2_model/").rsplit("/", 1)[0]
    return scope if scope in HEADS else scope.removeprefix("pi/").replace("/", ".")


def orthogonal(rng: np.random.Generator, shape: tuple[int, ...], gain: float) -> FloatArray:
    """Baselines' orthogonal initialisation: float32 `shape`, its matrix [-1, n] times `gain`."""
    flat = (prod(shape[:-1]), shape[-1])
    u, _, v = np.linalg.svd(rng.standard_normal(flat), full_matrices=False)
    q = u if u.shape == flat else v
    return (gain * q.reshape(shape)).astype(np.float32)


def initialise(model: keras.Model, seed: int) -> None:
    """Set every kernel orthogonally (gain sqrt(2); policy head 0.01, value head 1), biases to 0."""
    rng = stream("weights", seed)
    for item in named_variables(model):
        shape = item.variable.shape
        if item.name.endswith("/w:0"):
            item.variable.assign(orthogonal(rng, tuple(shape), _gain(item.name)))
        else:
            item.variable.assign(np.zeros(shape, np.float32))


def _gain(name: str) -> float:
    return {"ppo2_model/pi/w:0": 0.01, "ppo2_model/vf/w:0": 1.0}.get(name, sqrt(2))


def get_arrays(model: keras.Model) -> dict[str, FloatArray]:
    """Weights by file name, float32 in file shapes, in file order."""
    return {
        item.name: np.asarray(item.variable).reshape(item.shape) for item in named_variables(model)
    }


def set_arrays(model: keras.Model, arrays: Mapping[str, FloatArray]) -> None:
    """Set every weight of `model` from `arrays`, which hold each name in its file shape."""
    for item in named_variables(model):
        item.variable.assign(arrays[item.name].reshape(item.variable.shape))


def count_parameters(model: keras.Model) -> int:
    """How many trainable numbers `model` has."""
    return sum(prod(variable.shape) for variable in model.trainable_variables)
