"""Insertion and deletion: what the agent says as the picture goes, or comes, in a map's order.

Petsiuk et al. 2018, "RISE: Randomized Input Sampling for Explanation of Black-box Models", arXiv
1806.07421, section 4.3; what is not there yet, or any more, is blurred.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from scipy.special import log_softmax

from fl_saliency.base import Agent, BoolArray, FloatArray, IntArray, UInt8Array
from fl_saliency.experiments.sanity.bootstrap import Interval, band, interval
from fl_saliency.saliency.methods import ONE_SIDED
from fl_saliency.saliency.probing import BATCH, score_all

__all__ = [
    "BLUR_SIGMA",
    "KINDS",
    "STEPS",
    "CurveFinding",
    "area",
    "blurred",
    "curve_findings",
    "curves",
    "pixel_order",
    "raised_states",
    "shares",
]

BLUR_SIGMA = 5.0
"""Of the Gaussian that stands for absence, in pixels of the 84x84 input."""
STEPS = 20
"""Steps of equally many pixels."""
KINDS = ("deletion", "insertion")


def blurred(obs: UInt8Array, sigma: float = BLUR_SIGMA) -> UInt8Array:
    """obs uint8 [B, H, W, C], each frame blurred by a Gaussian of `sigma` pixels."""
    images = [
        cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REFLECT) for image in obs
    ]
    return np.stack(images).reshape(obs.shape)


def pixel_order(maps: FloatArray, rng: np.random.Generator) -> IntArray:
    """The pixels of maps [B, H, W], the largest first, equal ones in random order: int [B, H * W].

    Without chance, the many equal pixels of coarse maps would go from the upper left corner on.
    """
    flat = maps.reshape(len(maps), -1)
    shuffled = rng.permuted(np.broadcast_to(np.arange(flat.shape[1]), flat.shape), axis=1)
    order = np.argsort(-np.take_along_axis(flat, shuffled, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(shuffled, order, axis=1))


def shares(pixels: int, steps: int = STEPS) -> IntArray:
    """How many of `pixels` are changed after 0, 1, ... `steps` steps, int [steps + 1]."""
    return np.linspace(0, pixels, steps + 1).round().astype(np.int64)


def curves(
    agent: Agent, obs: UInt8Array, actions: IntArray, order: IntArray, *, steps: int = STEPS
) -> dict[str, FloatArray]:
    """What becomes of the chosen `actions` int [B] as pixels of obs [B, H, W, C] go in `order`.

    `deletion_logit` and `deletion_probability` float64 [B, steps + 1], from the whole picture to
    the blurred one; `insertion_...` from the blurred to the whole one.
    """
    reference = blurred(obs)
    found: dict[str, list[FloatArray]] = {}
    states = max(1, BATCH // (steps + 1))
    for start in range(0, len(obs), states):
        rows = slice(start, start + states)
        ends = {"deletion": (obs[rows], reference[rows]), "insertion": (reference[rows], obs[rows])}
        for kind, (before, after) in ends.items():
            images = _morphed(before, after, order[rows], steps)
            for name, values in _chosen(agent, images, actions[rows]).items():
                found.setdefault(f"{kind}_{name}", []).append(values)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _morphed(before: UInt8Array, after: UInt8Array, order: IntArray, steps: int) -> UInt8Array:
    """From `before` [B, H, W, C] to `after`, pixel by pixel in `order`: [B, steps + 1, H, W, C]."""
    counts = shares(order.shape[1], steps)
    place = np.argsort(order, axis=1)
    gone = place[:, None] < counts[None, :, None]
    gone = gone.reshape(len(before), steps + 1, *before.shape[1:3], 1)
    return np.where(gone, after[:, None], before[:, None])


def _chosen(agent: Agent, images: UInt8Array, actions: IntArray) -> dict[str, FloatArray]:
    """Logit and probability of `actions` [B] in images [B, K, H, W, C]: each float64 [B, K]."""
    scores = score_all(agent.scores, images.reshape(-1, *images.shape[2:]))
    logits = scores.reshape(*images.shape[:2], -1).astype(np.float64)
    at = actions[:, None, None]
    return {
        "logit": np.take_along_axis(logits, at, axis=2)[..., 0],
        "probability": np.exp(np.take_along_axis(log_softmax(logits, axis=2), at, axis=2)[..., 0]),
    }


def area(found: FloatArray) -> FloatArray:
    """The area under curves [S, K] over the share of pixels, 0 to 1: [S]."""
    return np.asarray((found[:, 1:] + found[:, :-1]).mean(axis=1) / 2)


@dataclass(frozen=True, kw_only=True)
class CurveFinding:
    """A method's curve of one kind and number, and how it compares."""

    share: list[float]
    """Of the pixels, 0 to 1."""
    mean: list[float]
    low: list[float]
    high: list[float]
    area: Interval
    over_random: Interval
    """How much better the area is than that of a random order: above 0 is better, for deletion too.
    """
    over_centre: Interval
    """The same against the order from the centre outwards."""


def curve_findings(
    found: Mapping[str, Mapping[str, FloatArray]], *, seed: int
) -> dict[str, dict[str, CurveFinding]]:
    """From method -> `deletion_logit`, ... -> values [S, K]: curve's name -> method -> finding.

    `random` and `centre` must be among the methods. The curves are scaled: see `_scaled`. Methods
    that mark only what holds the logit up (`ONE_SIDED`) cannot say what holds it down: states in
    which blurring everything raises it are left out for them, as undefined.
    """
    raised = raised_states(found)
    scaled = {method: _scaled(arrays) for method, arrays in found.items()}
    findings: dict[str, dict[str, CurveFinding]] = {}
    for name in next(iter(scaled.values())):
        areas = {method: area(arrays[name]) for method, arrays in scaled.items()}
        sign = -1 if name.startswith("deletion") else 1
        findings[name] = {}
        for method, arrays in scaled.items():
            left_out = raised if method in ONE_SIDED else np.zeros_like(raised)
            findings[name][method] = _finding(arrays[name], method, areas, sign, seed, left_out)
    return findings


def raised_states(found: Mapping[str, Mapping[str, FloatArray]]) -> BoolArray:
    """The states in which blurring the whole picture raises the chosen logit, bool [S]."""
    logits = found["random"]["deletion_logit"]
    return np.asarray(logits[:, -1] > logits[:, 0])


def _finding(
    found: FloatArray,
    method: str,
    areas: Mapping[str, FloatArray],
    sign: int,
    seed: int,
    left_out: BoolArray,
) -> CurveFinding:
    """The finding over all states but those `left_out`, where it is undefined."""
    shown = found[~left_out]
    mean = shown.mean(axis=0) if len(shown) else np.full(found.shape[1], np.nan)
    low, high = band(shown, seed=seed) if len(shown) else (mean, mean)

    def defined(values: FloatArray) -> Interval:
        return interval(np.where(left_out, np.nan, values), seed=seed)

    own = areas[method]
    return CurveFinding(
        share=np.linspace(0, 1, found.shape[1]).tolist(),
        mean=mean.tolist(),
        low=low.tolist(),
        high=high.tolist(),
        area=defined(own),
        over_random=defined(sign * (own - areas["random"])),
        over_centre=defined(sign * (own - areas["centre"])),
    )


def _scaled(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Curves from 0, the blurred picture, on; of the logits, 1 is on average the whole one.

    Each state's change of the logit is turned upwards and divided by the mean size of the changes
    of all states: divided by its own, a state in which blurring changes nearly nothing would drown
    them.
    """
    whole, gone = (arrays["deletion_logit"][:, [end]] for end in (0, -1))
    size = np.abs(whole - gone).mean()
    scale = np.sign(whole - gone) / (size if size > 0 else 1)
    return {
        name: (values - gone) * scale
        if name.endswith("_logit")
        else np.asarray(values - arrays["deletion_probability"][:, [-1]])
        for name, values in arrays.items()
    }
