"""Does what a map ranks highest matter more than what it ranks lowest? Each part is taken away.

Pixels are blurred; a built-in attention map's own cells are set to 0 (see `cells`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import Agent, BoolArray, FloatArray, IntArray, UInt8Array
from fl_saliency.experiments.sanity.bootstrap import Interval, interval, ratio_interval
from fl_saliency.experiments.sanity.curves import blurred, pixel_order
from fl_saliency.metrics.policy import policy_kl
from fl_saliency.saliency.probing import score_all

__all__ = [
    "EFFECTS",
    "PARTS",
    "SHARE",
    "PartsFinding",
    "blur_effects",
    "effects",
    "part_masks",
]

SHARE = 0.1
"""Of the pixels or cells that make a part."""
PARTS = ("high", "low", "random")
EFFECTS = ("logit", "kl")
"""|change of the chosen action's logit|, and KL(policy || policy without the part) in nats."""


def part_masks(
    maps: FloatArray, rng: np.random.Generator, share: float = SHARE
) -> dict[str, BoolArray]:
    """The places of maps [B, h, w] with the highest and lowest values, and some at random.

    Each bool [B, h, w], with the same number of places, at least one; ties are broken by chance.
    """
    places = maps[0].size
    count = max(1, round(share * places))
    order = pixel_order(maps, rng)
    chosen = {
        "high": order[:, :count],
        "low": order[:, -count:],
        "random": rng.permuted(order, axis=1)[:, :count],
    }
    masks = {name: np.zeros((len(maps), places), np.bool_) for name in PARTS}
    for name, mask in masks.items():
        np.put_along_axis(mask, chosen[name], True, axis=1)
    return {name: mask.reshape(maps.shape) for name, mask in masks.items()}


def blur_effects(
    agent: Agent, obs: UInt8Array, actions: IntArray, masks: Mapping[str, BoolArray]
) -> dict[str, FloatArray]:
    """What blurring each of the parts of obs uint8 [B, H, W, C] changes: see `effects`."""
    absent = blurred(obs)
    after = {
        part: score_all(agent.scores, np.where(mask[..., None], absent, obs))
        for part, mask in masks.items()
    }
    return effects(score_all(agent.scores, obs), after, actions)


def effects(
    before: FloatArray, after: Mapping[str, FloatArray], actions: IntArray
) -> dict[str, FloatArray]:
    """`high_logit`, `high_kl`, `low_logit`, ...: each float64 [B] >= 0.

    `before` are the logits [B, A] of the whole, `after` those without each of `PARTS`.
    """
    found: dict[str, FloatArray] = {}
    for part in PARTS:
        scores = after[part]
        change = np.take_along_axis(scores - before, actions[:, None], axis=1)[:, 0]
        found[f"{part}_logit"] = np.abs(change).astype(np.float64)
        found[f"{part}_kl"] = policy_kl(before, scores)
    return found


@dataclass(frozen=True, kw_only=True)
class PartsFinding:
    """How much each part matters by one measure."""

    high: Interval
    low: Interval
    random: Interval
    over_low: Interval
    """High less low, state by state."""
    over_random: Interval
    """High less random, state by state."""
    ratio: Interval
    """Mean of high over mean of low."""

    @classmethod
    def of(cls, found: Mapping[str, FloatArray], effect: str, *, seed: int) -> "PartsFinding":
        """From what `effects` gives, for one of `EFFECTS`."""
        values = {part: found[f"{part}_{effect}"] for part in PARTS}
        return cls(
            **{part: interval(values[part], seed=seed) for part in PARTS},
            over_low=interval(values["high"] - values["low"], seed=seed),
            over_random=interval(values["high"] - values["random"], seed=seed),
            ratio=ratio_interval(values["high"], values["low"], seed=seed),
        )
