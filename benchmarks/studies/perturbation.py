"""Perturbation saliency: ours beside one forward pass a mask, on the same compiled network.

The other way is a careful one: the blur once a frame, the masks once and for all, whole
observations mixed by NumPy, a forward pass of one observation for each of the 289 masks.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import cv2
import numpy as np
import tensorflow as tf

from benchmarks.harness import Settings, Table, in_turn, median
from fl_saliency.envs import AtariVectorEnv, resolve_protocol
from fl_saliency.errors import JobError
from fl_saliency.networks.policy import build_policy
from fl_saliency.saliency.perturbation import (
    BATCH,
    BLUR_SIGMA,
    SIGMA,
    STRIDE,
    perturbation_scores,
)

NETWORK = "cnn"
GAME = "BreakoutNoFrameskip-v4"
STEPS_BETWEEN = 15
"""Steps of random actions between the observations that are explained."""
TOLERANCE = 1e-4
"""Of the largest score: what rounding in kernels for another batch may make of differences."""

Scorer = Callable[[Any], Any]


def observations(number: int) -> Any:
    """Observations uint8 [number, 84, 84, 4] of games played by random actions."""
    rng, found = np.random.default_rng(0), []
    with AtariVectorEnv(resolve_protocol(GAME), 1, 0, workers=0) as env:
        env.reset()
        for _ in range(number):
            for _ in range(STEPS_BETWEEN):
                env.step(rng.integers(env.num_actions, size=1))
            found.append(env.observations.copy())
    return np.concatenate(found)


def compiled_scores() -> Scorer:
    """The logits of an untrained policy, compiled for any number of observations."""
    model = build_policy(NETWORK, 4, seed=0)
    spec = tf.TensorSpec((None, 84, 84, 4), tf.uint8)
    logits = tf.function(lambda obs: model(obs, training=False)[0], input_signature=(spec,))
    concrete = logits.get_concrete_function()
    return lambda obs: concrete(tf.convert_to_tensor(obs)).numpy()


def all_masks() -> Any:
    """Every mask over the whole frame, float32 [17 * 17, 84, 84, 1]."""
    place = np.arange(84)
    profiles = np.exp(-((place - place[::STRIDE, None]) ** 2) / (2 * SIGMA**2))
    masks = np.einsum("ir,jc->ijrc", profiles, profiles).astype(np.float32)
    return masks.reshape(-1, 84, 84, 1)


def one_pass_a_mask(score_fn: Scorer, obs: Any, masks: Any) -> Any:
    """What perturbation_scores gives, one observation at a time."""
    scores = []
    for frame in obs:
        before = score_fn(frame[None])
        levels = frame.astype(np.float32)
        blurred = cv2.GaussianBlur(levels, (0, 0), BLUR_SIGMA, borderType=cv2.BORDER_REFLECT)
        changes = blurred - levels
        for mask in masks:
            perturbed = (levels + np.rint(mask * changes)).astype(np.uint8)
            scores.append(0.5 * np.square(score_fn(perturbed[None]) - before).sum())
    side = len(range(0, 84, STRIDE))
    return np.reshape(scores, (len(obs), side, side))


def timed(way: Callable[[Any], Any], obs: Any) -> dict[str, Any]:
    started = time.perf_counter()
    scores = way(obs)
    return {"frames/s": len(obs) / (time.perf_counter() - started), "scores": scores}


def relative_difference(scores: Any, expected: Any) -> float:
    """The largest difference over the largest score; JobError if the two ways do not agree."""
    found = float(np.abs(scores - expected).max() / expected.max())
    if not found <= TOLERANCE:
        raise JobError(f"perturbation: the two ways differ by {found} of the largest score")
    return found


def passes_a_frame(obs: Any) -> float:
    """Forward passes that ours makes of each of `obs`, that of the unperturbed one included."""
    batches: list[int] = []

    def count(images: Any) -> Any:
        batches.append(len(images))
        return np.zeros(len(images))

    perturbation_scores(count, obs)
    return sum(batches) / len(obs)


def run(settings: Settings) -> list[Table]:
    obs, score_fn, masks = observations(settings.pick(32, 4)), compiled_scores(), all_masks()
    ours, plain = f"ours, batches of {BATCH}", "one forward pass a mask"
    ways = {
        ours: partial(perturbation_scores, score_fn),
        plain: partial(one_pass_a_mask, score_fn, masks=masks),
    }
    for way in ways.values():
        way(obs[:1])
    runs, _ = in_turn(
        {name: partial(timed, way, obs) for name, way in ways.items()}, settings.rounds
    )
    difference = relative_difference(runs[ours][0]["scores"], runs[plain][0]["scores"])
    speeds = {name: median(found, "frames/s") for name, found in runs.items()}
    passes = passes_a_frame(obs)
    table = Table(
        name="perturbation",
        title=f"Perturbation saliency of `{NETWORK}` on Breakout, {len(masks)} masks a frame",
        columns=["", "frames/s", "times faster"],
        rows=[[name, speed, speed / speeds[plain]] for name, speed in speeds.items()],
        notes=[
            f"Both give the same scores: the largest difference is {difference:.1g} of the largest "
            f"score. Of {len(masks) + 1} passes a frame ours makes {passes:.0f}: a mask that "
            "changes nothing needs none."
        ],
        figures={
            **{name: [run["frames/s"] for run in found] for name, found in runs.items()},
            "largest difference over the largest score": difference,
            "passes a frame": passes,
            "frames": len(obs),
        },
    )
    return [table]
