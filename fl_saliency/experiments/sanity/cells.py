"""A network with built-in attention whose cells can be set to 0, for all that comes after them."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from fl_saliency.base import BoolArray, FloatArray, UInt8Array
from fl_saliency.networks.blocks import Tensor

__all__ = ["AttentionCells", "attention_cells"]

_DISPLAY = ("Cast", "GetItem")
"""What only brings an attention map into the shape in which it is shown."""


class AttentionCells:
    """Logits of a network in which some cells of its attention are 0; the weights are shared."""

    def __init__(self, attend: keras.Model, rest: keras.Model) -> None:
        """`attend`: obs -> attention [B, h, w] or [B, h, w, 1]; `rest`: (obs, it) -> logits."""
        self._attend = attend
        self._rest = rest

    def scores(self, obs: UInt8Array, absent: BoolArray) -> FloatArray:
        """Logits float32 [B, A] of obs uint8 [B, 84, 84, 4] without the cells `absent` [B, h, w].

        The others stay as they are, also where the network normalises its map.
        """
        pixels = tf.convert_to_tensor(obs)
        attention = self._attend(pixels)
        kept = tf.convert_to_tensor((~absent).reshape(attention.shape), attention.dtype)
        return np.asarray(self._rest((pixels, attention * kept)).numpy())


def attention_cells(model: keras.Model) -> AttentionCells | None:
    """`model` (of `build_policy`) with removable cells.

    None if the map that it shows is not itself what it attends by: without attention, or with one
    that is put together from several for the eye.
    """
    attention = _undisplayed(model.outputs[3])
    if attention is model.outputs[3] or not _feeds(attention, model.outputs[0]):
        return None
    return AttentionCells(
        keras.Model(model.input, attention),
        keras.Model((model.input, attention), model.outputs[0]),
    )


def _undisplayed(shown: Tensor) -> Tensor:
    """The attention map before it was brought into the shape in which it is shown."""
    node = _node(shown)
    if type(node.operation).__name__ in _DISPLAY and len(node.input_tensors) == 1:
        return _undisplayed(node.input_tensors[0])
    return shown


def _feeds(tensor: Tensor, output: Tensor) -> bool:
    """Whether `output` is computed from `tensor`."""
    found, seen = [output], set()
    while found:
        one = found.pop()
        if one is tensor:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            found += _node(one).input_tensors
    return False


def _node(tensor: Tensor) -> Any:
    """The node of Keras' graph that made `tensor`."""
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]
