"""What a network computes on the way: activations of its layers, and gradients of its outputs."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from fl_saliency.base import AttentionGeometry, Derivatives, FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.networks.blocks import Tensor

__all__ = ["Inside"]

_HEADS = {"scores": "pi", "value": "vf"}
_TRUNK = re.compile(r"c\d+")
"""What `blocks.trunk` calls its convolutions."""


class Inside:
    """The layers of a policy `model` (of `build_policy`), whose weights it shares."""

    def __init__(self, model: keras.Model) -> None:
        self._model = model
        self._compiled: dict[tuple[str | None, ...], Any] = {}

    @cached_property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """Trainable layers, first to last -> the shape of one observation's activations."""
        layers = [layer for layer in self._model.layers if layer.trainable_weights]
        ordered = sorted(layers, key=lambda layer: layer.name in _HEADS.values())
        return {layer.name: tuple(layer.output.shape[1:]) for layer in ordered}

    @property
    def feature_layer(self) -> str | None:
        """The trunk's last convolution, or the last of any if none is named as a trunk's."""
        pictures = [name for name, shape in self.layers.items() if len(shape) == 3]
        trunk = [name for name in pictures if _TRUNK.fullmatch(name)]
        return next(reversed(trunk or pictures), None)

    def geometry(self, layer: str) -> AttentionGeometry | None:
        """How the cells of a trunk's convolution lie over the input; None for other layers."""
        self._check_layer(layer)
        if not _TRUNK.fullmatch(layer):
            return None
        field, stride, padding = 1, 1, 0
        for name in self.layers:
            if not _TRUNK.fullmatch(name):
                continue
            conv = self._model.get_layer(name)
            size = conv.kernel_size[0]
            field += (size - 1) * stride
            # `same` adds this much in front at stride 1; no trunk has it at another.
            padding += stride * ((size - 1) // 2 if conv.padding == "same" else 0)
            stride *= conv.strides[0]
            if name == layer:
                break
        return AttentionGeometry(receptive_field=field, stride=stride, padding=padding)

    def activations(self, obs: UInt8Array, layer: str) -> FloatArray:
        """What `layer` computes of obs uint8 [B, 84, 84, 4]: float32 [B, h, w, C] or [B, C]."""
        self._check_layer(layer)
        if ("activations", layer) not in self._compiled:
            part = keras.Model(self._model.input, self._model.get_layer(layer).output)
            signature = (tf.TensorSpec(self._model.input.shape, tf.uint8),)
            self._compiled["activations", layer] = tf.function(part, input_signature=signature)
        return np.asarray(self._compiled["activations", layer](tf.convert_to_tensor(obs)).numpy())

    def derivatives(
        self, pixels: FloatArray, output: str, index: IntArray, *, by: str | None = None
    ) -> Derivatives:
        """Number `index` int [B] of `output` for each of `pixels`, and its gradients.

        pixels float32 [B, 84, 84, 4] in 0..255. `output` is `scores` (index: an action), `value`
        (0), or a layer (a channel: the mean over space); the gradients are by the pixels or by
        the activations of layer `by`. Raises InputError for an unknown output or layer, an index
        out of range, and if the output does not depend on layer `by`.
        """
        self._check_output(output, index)
        if by is not None:
            self._check_layer(by)
        key = ("derivatives", output, by)
        if key not in self._compiled:
            self._compiled[key] = self._differentiation(output, by)
        found = self._compiled[key](
            tf.convert_to_tensor(pixels, tf.float32), tf.convert_to_tensor(index, tf.int32)
        )
        values, points, gradients = (np.asarray(array.numpy()) for array in found)
        return Derivatives(values=values, points=points, gradients=gradients)

    def _differentiation(self, output: str, by: str | None) -> Any:
        part = self._from_grey_levels(_HEADS.get(output, output), by)

        shape = self._model.input.shape
        signature = (tf.TensorSpec(shape, tf.float32), tf.TensorSpec(shape[:1], tf.int32))

        @tf.function(input_signature=signature, autograph=False)
        def differentiate(pixels: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(pixels)
                found, inner = part(pixels)
                found = tf.cast(found, tf.float32)
                if len(found.shape) == 4:
                    found = tf.reduce_mean(found, axis=(1, 2))
                values = tf.gather(found, index, axis=1, batch_dims=1)
            points = pixels if by is None else inner
            gradients = tape.gradient(values, points)
            if gradients is None:
                raise InputError(
                    f"{output!r} does not depend on layer {by!r}; choose one before it"
                )
            return values, tf.cast(points, tf.float32), tf.cast(gradients, tf.float32)

        return differentiate

    def _from_grey_levels(self, output: str, by: str | None) -> keras.Model:
        """float32 grey levels -> the outputs of two layers; uint8 pixels would have no gradient."""
        outer, inner = (self._model.get_layer(name).output for name in (output, by or output))
        part = keras.Model(self._model.input, (outer, inner))
        levels = keras.Input(self._model.input.shape[1:], dtype="float32")
        # The layers stay the same objects, so their weights are this network's.
        return keras.models.clone_model(
            part, input_tensors=levels, clone_function=lambda layer: layer
        )

    def _check_layer(self, layer: str) -> None:
        if layer not in self.layers:
            raise unknown_choice("layer", layer, self.layers)

    def _check_output(self, output: str, index: IntArray) -> None:
        if output not in _HEADS and output not in self.layers:
            raise unknown_choice("output", output, [*_HEADS, *self.layers])
        size = self.layers[_HEADS.get(output, output)][-1]
        for number in index[(index < 0) | (index >= size)]:
            raise InputError(f"{output} {number}: expected 0 to {size - 1}")
