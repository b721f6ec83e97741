"""Floating-point operations of a policy network's layers, counted from their shapes."""

from math import prod
from typing import Any

import keras

__all__ = ["forward_flops", "training_flops"]


def forward_flops(model: keras.Model) -> int:
    """Of one observation through `model`: a multiplication and an addition per weight and place."""
    return sum(_layer(layer) for layer in _weighted(model))


def training_flops(model: keras.Model) -> int:
    """Of one observation, forward and backward.

    Every layer's gradient costs it twice its forward pass, for its weights and for its input; the
    first needs none for its input, which is the screen.
    """
    layers = [_layer(layer) for layer in _weighted(model)]
    return 3 * sum(layers) - layers[0]


def _weighted(model: keras.Model) -> list[Any]:
    return [layer for layer in model.layers if layer.trainable_weights]


def _layer(layer: Any) -> int:
    places = prod(layer.output.shape[1:3]) if len(layer.kernel.shape) == 4 else 1
    return 2 * prod(layer.kernel.shape) * places
