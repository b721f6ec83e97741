"""What each saliency method does for one agent and target: the makers in the table of methods.

A maker returns two functions: where the method computes, as coarse a map as it is (cells), and how
cells are drawn over the input.
"""

import zlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from fl_saliency.base import Agent, AttentionGeometry, FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.render.overlay import attention_to_input
from fl_saliency.saliency import gradients
from fl_saliency.saliency.baselines import centre_map, frame_difference_maps
from fl_saliency.saliency.occlusion import occlusion_differences
from fl_saliency.saliency.options import MAP_SHAPE, MethodOptions
from fl_saliency.saliency.perturbation import perturbation_maps, perturbation_scores, sarfa_scores
from fl_saliency.saliency.probing import spread
from fl_saliency.saliency.rise import random_masks, rise_maps
from fl_saliency.saliency.targets import Target
from fl_saliency.seeding import stream

Cells: TypeAlias = Callable[[UInt8Array, IntArray], FloatArray]
"""obs uint8 [B, 84, 84, 4], the actions chosen int [B] -> float32 [B, h, w] >= 0."""
Draw: TypeAlias = Callable[[FloatArray], FloatArray]
"""Cells [B, h, w] -> maps over the input, float32 [B, 84, 84]."""
Made: TypeAlias = tuple[Cells, Draw]
Maker: TypeAlias = Callable[[Agent, Target, MethodOptions], Made]


class NotServedError(InputError):
    """A method that a network cannot serve."""


def _whole(maps: FloatArray) -> FloatArray:
    return maps


def attention(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """The network's own attention, drawn over what each cell sees."""
    geometry = agent.geometry
    if geometry is None:
        raise NotServedError(f"network {agent.name!r} has no built-in attention")

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        return agent.attention(obs)

    return cells, partial(attention_to_input, geometry=geometry)


def activation(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """Mean magnitude of a convolution's features; weighted by attention where that pools them."""
    layer = _picture_layer(agent, options)
    weighted = agent.pooling == "sum" and layer == agent.feature_layer

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        found = np.abs(agent.activations(obs, layer)).mean(axis=3)
        return np.asarray(found * agent.attention(obs) if weighted else found)

    return cells, _draw_layer(agent, layer)


def grad_cam(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """Grad-CAM of the trunk's last convolution; InputError for a target that comes before it."""
    layer = _picture_layer(agent, options)
    if target.kind == "unit":
        nothing = np.zeros((1, *MAP_SHAPE, 4), np.float32)
        agent.derivatives(nothing, target.output, target.indices(np.zeros(1, np.int64)), by=layer)

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        found = agent.derivatives(
            obs.astype(np.float32), target.output, target.indices(actions), by=layer
        )
        return gradients.grad_cam(found.points, found.gradients)

    return cells, _draw_layer(agent, layer)


def _picture_layer(agent: Agent, options: MethodOptions) -> str:
    """The convolution that a method looks into; InputError if there is none such."""
    pictures = [name for name, shape in agent.layers.items() if len(shape) == 3]
    layer = options.layer or agent.feature_layer
    if layer is None:
        raise NotServedError(f"network {agent.name!r} has no convolution")
    if layer not in pictures:
        raise unknown_choice("layer", layer, pictures)
    return layer


def _draw_layer(agent: Agent, layer: str) -> Draw:
    """Bilinear between the centres of what a layer's cells see; evenly where that is unknown."""
    geometry = agent.layer_geometry(layer)
    if geometry is None:
        stride = MAP_SHAPE[0] / agent.layers[layer][0]
        return partial(spread, size=MAP_SHAPE, stride=stride, first=(stride - 1) / 2)
    return partial(spread, size=MAP_SHAPE, stride=geometry.stride, first=_first_centre(geometry))


def _first_centre(geometry: AttentionGeometry) -> float:
    return (geometry.receptive_field - 1) / 2 - geometry.padding


def blurring(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """Half the squared change of the target's scores under blurs."""
    score_fn = target.score_fn(agent)

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        return perturbation_scores(
            score_fn, obs, actions=target.actions(actions), **_blurs(options)
        )

    return cells, partial(perturbation_maps, size=MAP_SHAPE, stride=options.stride)


def sarfa(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """Specificity and relevance of blurs for one action."""

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        return sarfa_scores(agent.scores, obs, actions=target.indices(actions), **_blurs(options))

    return cells, partial(perturbation_maps, size=MAP_SHAPE, stride=options.stride)


def _blurs(options: MethodOptions) -> dict[str, Any]:
    return {
        "sigma": options.sigma,
        "blur_sigma": options.blur_sigma,
        "stride": options.stride,
        "channels": options.channels or "together",
    }


def occlusion(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """The size of the change of the target's scores under boxes."""
    score_fn = target.score_fn(agent)

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        falls = occlusion_differences(
            score_fn, obs, size=options.box, stride=options.stride, fill=options.fill
        )
        wanted = target.actions(actions)
        if wanted is not None:
            falls = np.take_along_axis(falls, wanted[:, None, None, None], axis=3)
        return np.asarray(np.sqrt(np.square(falls).sum(axis=3)))

    return cells, partial(spread, size=MAP_SHAPE, stride=options.stride)


def rise(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """Random masks weighted by the target under them; what lowers it counts for nothing."""

    @cache  # when they are first needed: whether a method can be served costs nothing
    def masks() -> FloatArray:
        return random_masks(stream("saliency", options.seed), options.masks, MAP_SHAPE)

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        maps = [
            rise_maps(target.number_fn(agent, int(action)), obs[[frame]], masks())
            for frame, action in enumerate(actions)
        ]
        return np.asarray(np.maximum(np.concatenate(maps), 0))

    return cells, _whole


def _gradient_kind(
    attribute: Callable[[gradients.GradientFn, FloatArray, MethodOptions], FloatArray],
    agent: Agent,
    target: Target,
    options: MethodOptions,
) -> Made:
    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        index = target.indices(actions)

        def gradient_fn(pixels: FloatArray, rows: IntArray) -> FloatArray:
            levels = pixels * np.float32(255)
            return agent.derivatives(levels, target.output, index[rows]).gradients * np.float32(255)

        attributions = attribute(gradient_fn, obs.astype(np.float32) / np.float32(255), options)
        return gradients.join_channels(attributions, options.channels or "max")

    return cells, _whole


def _gradient(fn: gradients.GradientFn, pixels: FloatArray, options: MethodOptions) -> FloatArray:
    return gradients.plain_gradients(fn, pixels)


def _grad_input(fn: gradients.GradientFn, pixels: FloatArray, options: MethodOptions) -> FloatArray:
    return gradients.plain_gradients(fn, pixels) * pixels


def _smoothgrad(fn: gradients.GradientFn, pixels: FloatArray, options: MethodOptions) -> FloatArray:
    rng = stream("saliency", options.seed)
    return gradients.smooth_gradients(
        fn, pixels, rng=rng, samples=options.samples, noise=options.noise
    )


def _integrated(fn: gradients.GradientFn, pixels: FloatArray, options: MethodOptions) -> FloatArray:
    return gradients.integrated_gradients(fn, pixels, steps=options.ig_steps)


gradient: Maker = partial(_gradient_kind, _gradient)
grad_input: Maker = partial(_gradient_kind, _grad_input)
smoothgrad: Maker = partial(_gradient_kind, _smoothgrad)
integrated_gradients: Maker = partial(_gradient_kind, _integrated)


def uniform(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """The same everywhere."""
    return (lambda obs, actions: np.ones((len(obs), *MAP_SHAPE), np.float32)), _whole


def random_noise(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """Noise that hangs on the state alone, in whatever batches it is computed."""

    def cells(obs: UInt8Array, actions: IntArray) -> FloatArray:
        seeds = [[options.seed, zlib.crc32(image.tobytes())] for image in obs]
        return np.stack([np.random.default_rng(s).random(MAP_SHAPE, np.float32) for s in seeds])

    return cells, _whole


def centre(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """A Gaussian around the middle."""
    centre = centre_map(MAP_SHAPE)
    return (lambda obs, actions: np.repeat(centre[None], len(obs), axis=0)), _whole


def frame_difference(agent: Agent, target: Target, options: MethodOptions) -> Made:
    """What changed since the last frame."""
    return (lambda obs, actions: frame_difference_maps(obs)), _whole
