"""The fifteen networks of Free-Lunch Saliency (Nikulin et al. 2019, arXiv 1908.02511)."""

from collections.abc import Callable, Sequence
from functools import partial

from keras import ops

from fl_saliency.base import AttentionGeometry
from fl_saliency.networks import blocks
from fl_saliency.networks.blocks import DENSE_TRUNK, SPARSE_TRUNK, Tensor
from fl_saliency.networks.registry import Builder, register

__all__ = ["DENSE", "SPARSE", "SPARSE_FIRST"]

SPARSE = AttentionGeometry(receptive_field=36, stride=8, padding=0)
"""7x7 maps after the third convolution of the sparse trunk."""
SPARSE_FIRST = AttentionGeometry(receptive_field=8, stride=4, padding=0)
"""20x20 maps after the first convolution of the sparse trunk."""
DENSE = AttentionGeometry(receptive_field=13, stride=1, padding=6)
"""84x84 maps of the dense trunk."""

_FLS = "Nikulin et al. 2019, arXiv 1908.02511"
_UNPADDED = "the drawing rule ignores the one-pixel zero padding of the input, as the original's"


@register("cnn", geometry=None, source="Mnih et al. 2015, doi:10.1038/nature14236")
def _cnn(obs: Tensor) -> tuple[Tensor, None]:
    return blocks.latent_of(blocks.trunk(blocks.scale_pixels(obs), SPARSE_TRUNK)), None


@register(
    "cnn_daqn", geometry=SPARSE, source="Mousavi et al. 2016, arXiv 1612.05753", pooling="sum"
)
def _daqn(obs: Tensor) -> tuple[Tensor, Tensor]:
    features = blocks.trunk(blocks.scale_pixels(obs), SPARSE_TRUNK)
    attention = blocks.soft_attention_map(features)
    return blocks.latent_of(blocks.attention_pool(features, attention)), attention


def _rsppo(obs: Tensor, *, pad: int) -> tuple[Tensor, Tensor]:
    pixels = blocks.scale_pixels(obs)
    if pad:
        pixels = ops.pad(pixels, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    features = blocks.unit_channels(blocks.trunk(pixels, SPARSE_TRUNK))
    attention = blocks.region_map(features)
    return blocks.latent_of(features * attention), attention


for _name, _pad, _note in (("cnn_rsppo", 1, _UNPADDED), ("cnn_rsppo_nopad", 0, "")):
    register(_name, geometry=SPARSE, source="Yang et al. 2018, arXiv 1812.11276", note=_note)(
        partial(_rsppo, pad=_pad)
    )


def _fls(
    *,
    trunk: Sequence[blocks.ConvRow] = SPARSE_TRUNK,
    relu: bool = True,
    pool: bool = False,
    norm: bool = False,
    size: int = 3,
    positive: Callable[[Tensor], Tensor] = ops.softplus,
) -> Builder:
    """The family with one attention map after the last convolution."""

    def build(obs: Tensor) -> tuple[Tensor, Tensor]:
        features = blocks.trunk(
            blocks.scale_pixels(obs), trunk, last_activation="relu" if relu else None
        )
        attention = blocks.fls_map(features, size=size, positive=positive)
        if norm:
            attention = blocks.normalise_map(attention)
        attended = blocks.attention_pool(features, attention) if pool else features * attention
        return blocks.latent_of(attended), attention

    return build


for _name, _builder in {
    "cnn_sparse_fls": _fls(),
    "cnn_sparse_fls_pool": _fls(pool=True),
    "cnn_sparse_fls_norm": _fls(norm=True),
    "cnn_sparse_fls_1x1": _fls(size=1),
    "cnn_sparse_fls_sp2": _fls(positive=blocks.softplus2),
    "cnn_sparse_fls_norelu": _fls(relu=False),
    "cnn_sparse_fls_norelu_pool": _fls(relu=False, pool=True),
}.items():
    register(
        _name, geometry=SPARSE, source=_FLS, pooling="sum" if _name.endswith("_pool") else None
    )(_builder)


@register("cnn_sparse_fls_h1", geometry=SPARSE_FIRST, source=_FLS)
def _fls_first(obs: Tensor) -> tuple[Tensor, Tensor]:
    features, maps = _attended_trunk(obs, levels=1)
    return blocks.latent_of(features), maps[0]


@register(
    "cnn_sparse_fls_x3",
    geometry=SPARSE_FIRST,
    source=_FLS,
    note="shown: the three maps added after spreading the second and third over the first's grid",
)
def _fls_each(obs: Tensor) -> tuple[Tensor, Tensor]:
    features, (first, second, third) = _attended_trunk(obs, levels=3)
    shown = first + blocks.ones_transpose(second, 4, 2) + blocks.ones_transpose(third, 8, 2)
    return blocks.latent_of(features), shown


def _attended_trunk(obs: Tensor, *, levels: int) -> tuple[Tensor, list[Tensor]]:
    """The sparse trunk with a map of its own after each of the first `levels` convolutions."""
    maps: list[Tensor] = []

    def attend(features: Tensor, index: int) -> Tensor:
        if index > levels:
            return features
        maps.append(blocks.fls_map(features, scope=f"h{index}."))
        return features * maps[-1]

    return blocks.trunk(blocks.scale_pixels(obs), SPARSE_TRUNK, after=attend), maps


register("cnn_dense_fls", geometry=DENSE, source=_FLS, pooling="sum")(
    _fls(trunk=DENSE_TRUNK, pool=True)
)
register("cnn_dense_fls_norelu", geometry=DENSE, source=_FLS, pooling="sum")(
    _fls(trunk=DENSE_TRUNK, pool=True, relu=False)
)
