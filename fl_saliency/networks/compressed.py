"""The Nature network and its compressed variants, of "Compression and Localization".

Source: arXiv 1904.09489 (2019): the feature maps of the Nature network (Mnih et al. 2015), or half
as many; before the fully connected layer no pooling, or a global maximum over space.
"""

from collections.abc import Sequence

import keras
from keras import ops

from fl_saliency.networks import blocks
from fl_saliency.networks.attention import SPARSE
from fl_saliency.networks.blocks import SPARSE_TRUNK, Tensor
from fl_saliency.networks.registry import Builder, register

__all__ = ["HALF_TRUNK"]

HALF_TRUNK: Sequence[blocks.ConvRow] = tuple(
    (filters // 2, size, stride, padding) for filters, size, stride, padding in SPARSE_TRUNK
)
"""The Nature convolutions with half as many feature maps."""

_SOURCE = "arXiv 1904.09489"
_SHOWN = "shown: of each channel what the maximum lets through, at the cell that has it, added up"


def _plain(trunk: Sequence[blocks.ConvRow]) -> Builder:
    def build(obs: Tensor) -> tuple[Tensor, None]:
        return blocks.latent_of(blocks.trunk(blocks.scale_pixels(obs), trunk)), None

    return build


def _max_pooled(trunk: Sequence[blocks.ConvRow]) -> Builder:
    def build(obs: Tensor) -> tuple[Tensor, Tensor]:
        features = blocks.trunk(blocks.scale_pixels(obs), trunk)
        peaks = keras.layers.GlobalMaxPooling2D(keepdims=True)(features)
        through = ops.where(ops.equal(features, peaks), features, 0)
        return blocks.latent_of(peaks), ops.sum(through, axis=-1, keepdims=True)

    return build


for _name, _trunk in {"dqn": SPARSE_TRUNK, "dqn_half": HALF_TRUNK}.items():
    register(_name, geometry=None, source=_SOURCE)(_plain(_trunk))
    register(f"{_name}_max", geometry=SPARSE, source=_SOURCE, note=_SHOWN, pooling="max")(
        _max_pooled(_trunk)
    )
