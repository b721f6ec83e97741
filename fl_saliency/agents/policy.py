"""A policy network as an Agent: compiled calls, and a random stream of its own for actions."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from fl_saliency.base import (
    AttentionGeometry,
    Derivatives,
    FloatArray,
    IntArray,
    PolicyStep,
    Pooling,
    UInt8Array,
)
from fl_saliency.errors import InputError
from fl_saliency.networks.inside import Inside
from fl_saliency.networks.registry import get_network

__all__ = ["PolicyAgent", "sample_actions"]

_OBS = tf.TensorSpec((None, 84, 84, 4), tf.uint8)


class PolicyAgent:
    """Acts with a policy `model` (of `networks.build_policy`); satisfies `base.Agent`.

    Actions are sampled from the policy, in evaluation too, as Baselines does.
    """

    def __init__(self, model: keras.Model, rng: np.random.Generator) -> None:
        self.model = model
        self.rng = rng
        self.num_actions = int(model.outputs[0].shape[-1])
        self.name: str = model.name
        row = get_network(model.name)
        self.geometry: AttentionGeometry | None = row.geometry
        self.pooling: Pooling | None = row.pooling
        self._inside = Inside(model)
        self.layers: Mapping[str, tuple[int, ...]] = self._inside.layers
        self.feature_layer: str | None = self._inside.feature_layer

    @cached_property
    def _compiled(self) -> Any:
        # Concrete, and called with a tensor: half the cost of a call that looks at its arguments.
        return tf.function(self._forward, input_signature=(_OBS,)).get_concrete_function()

    def _outputs(self, obs: UInt8Array) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logits [B, actions], values [B] and attention [B, h, w], float32."""
        logits, values, attention = self._compiled(tf.convert_to_tensor(obs))
        return logits.numpy(), values.numpy(), attention.numpy()

    def act(self, obs: UInt8Array) -> tuple[Any, Any, Any, Any]:
        """actions int64 [B], neglogp [B], values [B] float32 and attention [B, h, w], as arrays."""
        uniform = self.rng.random((len(obs), self.num_actions), dtype=np.float32)
        logits, values, attention = self._outputs(obs)
        # Drawn here: on a few numbers, each of TensorFlow's operations takes longer than all of it.
        actions, neglogp = sample_actions(logits, uniform)
        return actions, neglogp, values, attention

    def step(self, obs: UInt8Array) -> PolicyStep:
        """Sample an action for each of `obs` uint8 [B, 84, 84, 4]."""
        actions, neglogp, values, attention = self.act(obs)
        return PolicyStep(
            actions=actions,
            neglogp=neglogp,
            values=values,
            attention=None if self.geometry is None else attention,
        )

    def scores(self, obs: UInt8Array) -> FloatArray:
        """Logits, float32 [B, actions]."""
        return self._outputs(obs)[0]

    def value(self, obs: UInt8Array) -> FloatArray:
        """State values, float32 [B]."""
        return self._outputs(obs)[1]

    def attention(self, obs: UInt8Array) -> FloatArray:
        """Attention, float32 [B, h, w]; InputError for a network that has none."""
        if self.geometry is None:
            raise InputError(f"network {self.model.name!r} has no built-in attention")
        return self._outputs(obs)[2]

    def activations(self, obs: UInt8Array, layer: str) -> FloatArray:
        """What `layer` computes, float32 [B, h, w, C] or [B, C]."""
        return self._inside.activations(obs, layer)

    def layer_geometry(self, layer: str) -> AttentionGeometry | None:
        """How a layer's cells lie over the input; None for what is not a trunk's convolution."""
        return self._inside.geometry(layer)

    def derivatives(
        self, pixels: FloatArray, output: str, index: IntArray, *, by: str | None = None
    ) -> Derivatives:
        """A number of the network and its gradients: see `base.Agent`."""
        return self._inside.derivatives(pixels, output, index, by=by)

    def _forward(self, obs: Any) -> tuple[Any, Any, Any]:
        logits, values, _, attention = self.model(obs, training=False)
        return logits, values, attention


def sample_actions(logits: FloatArray, uniform: FloatArray) -> tuple[IntArray, FloatArray]:
    """A draw from the softmax of each row, int64 [B], and -log of its probability, float32 [B].

    By Gumbel's trick: the argmax of logits [B, A] + noise, of `uniform` [B, A] from [0, 1).
    """
    with np.errstate(divide="ignore"):  # a 0 is a noise of -inf: never drawn, as it should be
        actions = np.argmax(logits - np.log(-np.log(uniform)), axis=1)
    shifted = logits - logits.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(shifted, actions[:, None], axis=1)[:, 0]
    return actions, np.log(np.exp(shifted).sum(axis=1)) - chosen
