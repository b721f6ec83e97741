"""Perturbation saliency: values by a plain loop and by hand, locality, batches, bad input."""

import math
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.errors import InputError
from fl_saliency.networks.policy import build_policy
from fl_saliency.saliency.perturbation import (
    _blur_changes,
    perturbation_maps,
    perturbation_scores,
)

ScoreFn = Callable[[UInt8Array], FloatArray]


def noise(*shape: int, seed: int = 0) -> UInt8Array:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def plain_loop(
    score_fn: ScoreFn, obs: UInt8Array, *, sigma: float, blur_sigma: float, stride: int
) -> tuple[FloatArray, FloatArray]:
    """Score before and changes of it [B, h, w, K]: one observation and one whole mask at a time."""
    height, width = obs.shape[1:3]
    before = np.concatenate([score_fn(frame[None]) for frame in obs])
    changes = []
    for frame, score in zip(obs, before, strict=True):
        levels = frame.astype(np.float32)
        blurred = cv2.GaussianBlur(levels, (0, 0), blur_sigma, borderType=cv2.BORDER_REFLECT)
        blurred = blurred.reshape(frame.shape)
        for row in range(0, height, stride):
            for column in range(0, width, stride):
                down = np.exp(-((np.arange(height) - row) ** 2) / (2 * sigma**2))
                across = np.exp(-((np.arange(width) - column) ** 2) / (2 * sigma**2))
                mask = np.outer(down, across).astype(np.float32)[..., None]
                perturbed = levels + np.rint(mask * (blurred - levels))
                changes.append(score_fn(perturbed.astype(np.uint8)[None])[0] - score)
    grid = math.ceil(height / stride), math.ceil(width / stride)
    return before, np.reshape(changes, (len(obs), *grid, -1))


def nonlinear(pixels: int, outputs: int = 3) -> ScoreFn:
    weights = np.random.default_rng(1).normal(0, 1e-3, (pixels, outputs))
    return lambda obs: np.tanh(obs.reshape(len(obs), -1) @ weights)


def pixel_sum(rows: slice, columns: slice) -> ScoreFn:
    """Looks at one region; whole numbers, so that sums are exact in any order."""
    return lambda obs: obs[:, rows, columns].sum(axis=(1, 2, 3), dtype=np.int64)


@pytest.mark.parametrize("channels", [1, 4, 5])
@pytest.mark.parametrize(
    "settings",
    [
        {"sigma": 5.0, "blur_sigma": 3.0, "stride": 5},
        {"sigma": 1.3, "blur_sigma": 0.8, "stride": 4},
        {"sigma": 0.2, "blur_sigma": 20.0, "stride": 1},
    ],
)
def test_scores_equal_a_plain_loop_over_whole_masks(
    settings: dict[str, Any], channels: int
) -> None:
    obs = noise(2, 21, 16, channels)
    score_fn = nonlinear(21 * 16 * channels)
    _, changes = plain_loop(score_fn, obs, **settings)
    expected = 0.5 * (changes**2).sum(axis=-1)
    scores = perturbation_scores(score_fn, obs, **settings)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5 * expected.max())


def test_scores_of_one_bright_pixel_are_those_by_hand() -> None:
    obs = np.zeros((1, 21, 21, 1), np.uint8)
    obs[0, 10, 10] = 200
    scores = perturbation_scores(
        lambda images: images[:, 10, 10], obs, sigma=5.0, blur_sigma=1.0, stride=5
    )
    # The blur leaves (1 / sum of exp(-k^2 / 2))^2 = 0.1592 of the pixel; at a distance of 5 the
    # mask is exp(-1/2) = 0.607, of sqrt(50) exp(-1) = 0.368, of 10 exp(-2) = 0.135.
    by_distance = {0: 168, 25: 102, 50: 62, 100: 23}
    for squared, levels in by_distance.items():
        found = {
            float(scores[0, i, j])
            for i in range(5)
            for j in range(5)
            if (5 * i - 10) ** 2 + (5 * j - 10) ** 2 == squared
        }
        assert found == {0.5 * levels**2}


def test_scores_of_a_linear_function_are_half_the_squared_sum_of_weighted_changes() -> None:
    obs = noise(1, 20, 20, 4)
    weights = np.random.default_rng(2).normal(size=(20, 20, 4))
    settings = {"sigma": 3.0, "blur_sigma": 2.0, "stride": 5}
    scores = perturbation_scores(
        lambda images: np.tensordot(images / 255, weights, axes=3), obs, **settings
    )
    blurred = gaussian_filter(obs[0].astype(np.float64), (2.0, 2.0, 0))
    place = np.arange(20)
    masks = np.exp(-((place - 5 * np.arange(4)[:, None]) ** 2) / 18)
    changes = np.einsum("ir,jc,rck,rck->ij", masks, masks, (blurred - obs[0]) / 255, weights)
    # Here without the rounding to grey levels, which is at most half a level a pixel.
    np.testing.assert_allclose(np.sqrt(2 * scores[0]), np.abs(changes), rtol=0, atol=0.1)
    assert np.abs(changes).max() > 1


def test_the_blur_is_scipys() -> None:
    frame = noise(30, 24, 4)
    expected = gaussian_filter(frame.astype(np.float64), (3.0, 3.0, 0)) - frame
    np.testing.assert_allclose(
        _blur_changes(frame.astype(np.float32), 3.0), expected, rtol=0, atol=1e-3
    )


def test_a_constant_frame_scores_zero_without_a_forward_pass_per_mask() -> None:
    seen = []

    def score_fn(images: UInt8Array) -> FloatArray:
        seen.append(len(images))
        return images[:, 0, 0].astype(np.float32)

    scores = perturbation_scores(score_fn, np.full((3, 84, 84, 4), 142, np.uint8))
    assert scores.shape == (3, 17, 17)
    assert not scores.any()
    assert seen == [3]


def test_only_masks_that_reach_the_region_looked_at_score() -> None:
    rows, columns = slice(20, 29), slice(36, 42)
    scores = perturbation_scores(
        pixel_sum(rows, columns), noise(1, 60, 60, 4), sigma=2.0, blur_sigma=3.0, stride=3
    )[0]
    centre = np.arange(0, 60, 3)
    down = np.maximum(0, np.maximum(rows.start - centre, centre - (rows.stop - 1)))
    across = np.maximum(0, np.maximum(columns.start - centre, centre - (columns.stop - 1)))
    distance = np.hypot(down[:, None], across)
    assert not scores[distance > 2 * math.sqrt(2 * math.log(510))].any()
    assert (scores[distance == 0] > 0).all()


@pytest.mark.parametrize("batch", [1, 2, 7, 24, 1000])
def test_scores_do_not_depend_on_the_batch(batch: int) -> None:
    obs, score_fn = noise(5, 12, 14, 2), pixel_sum(slice(0, 9), slice(2, 14))
    expected = perturbation_scores(score_fn, obs, stride=4)
    assert (expected > 0).any()
    np.testing.assert_array_equal(
        perturbation_scores(score_fn, obs, stride=4, batch=batch), expected
    )


def test_each_observation_is_scored_by_itself() -> None:
    obs, score_fn = noise(3, 12, 14, 2), pixel_sum(slice(0, 9), slice(2, 14))
    alone = [perturbation_scores(score_fn, frame[None], stride=4) for frame in obs]
    together = perturbation_scores(score_fn, obs, stride=4)
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_the_observations_are_left_as_they_were() -> None:
    obs = noise(1, 12, 14, 2)
    obs.setflags(write=False)
    perturbation_scores(pixel_sum(slice(0, 9), slice(2, 14)), obs, batch=2)
    np.testing.assert_array_equal(obs, noise(1, 12, 14, 2))


def test_an_agents_policy_value_and_action_are_explained() -> None:
    agent = PolicyAgent(build_policy("cnn", 4, seed=0), np.random.default_rng(0))
    obs, actions = noise(2, 84, 84, 4), np.array([3, 1])
    settings = {"sigma": 5.0, "blur_sigma": 3.0, "stride": 28}
    _, policy = plain_loop(agent.scores, obs, **settings)
    _, value = plain_loop(agent.value, obs, **settings)
    expected = {
        "policy": 0.5 * (policy**2).sum(axis=-1),
        "value": 0.5 * value[..., 0] ** 2,
        "action": 0.5 * policy[np.arange(2), ..., actions] ** 2,
    }
    found = {
        "policy": perturbation_scores(agent.scores, obs, **settings),
        "value": perturbation_scores(agent.value, obs, **settings),
        "action": perturbation_scores(agent.scores, obs, actions=actions, **settings),
    }
    for target, scores in found.items():
        largest = expected[target].max()
        assert largest > 0
        # Kernels for other batches round logits otherwise, and scores are of small differences.
        np.testing.assert_allclose(scores, expected[target], rtol=0, atol=1e-4 * largest)


# --- maps over the pixels -----------------------------------------------------------------------


def test_a_map_has_the_scores_at_the_centres_and_lines_between_them() -> None:
    scores = np.random.default_rng(0).random((2, 17, 17), np.float32)
    maps = perturbation_maps(scores, (84, 84), stride=5)
    assert maps.shape == (2, 84, 84)
    assert maps.dtype == np.float32
    np.testing.assert_array_equal(maps[:, ::5, ::5], scores)
    between = 0.6 * scores[:, 3, 4] + 0.4 * scores[:, 4, 4]
    np.testing.assert_allclose(maps[:, 17, 20], between, rtol=1e-6)
    np.testing.assert_array_equal(maps[:, 83], maps[:, 80])


def test_a_map_of_stride_1_is_the_scores() -> None:
    scores = np.random.default_rng(0).random((1, 6, 9), np.float32)
    np.testing.assert_array_equal(perturbation_maps(scores, (6, 9), stride=1), scores)


def test_a_map_of_one_cell_is_constant() -> None:
    maps = perturbation_maps(np.full((1, 1, 1), 2.0, np.float32), (6, 9), stride=9)
    np.testing.assert_array_equal(maps, np.full((1, 6, 9), 2.0))


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stride": 0}, "stride 0: expected 1 or more"),
        ({"batch": -1}, "batch -1: expected 1 or more"),
        ({"sigma": 0.0}, "sigma 0.0: expected pixels"),
        ({"sigma": float("nan")}, "sigma nan: expected pixels"),
        ({"blur_sigma": 1e9}, "blur_sigma 1000000000.0: expected pixels"),
        ({"obs": noise(12, 14, 2)}, r"obs: expected uint8 .* got uint8 \[12, 14, 2\]"),
        ({"obs": noise(0, 12, 14, 2)}, r"obs: .* got uint8 \[0, 12, 14, 2\]"),
        ({"obs": np.zeros((1, 12, 14, 2), np.float32)}, "obs: expected uint8 .* got float32"),
        ({"actions": np.array([2, 0])}, "actions: expected 0 to 1, got 2"),
        ({"actions": np.array([0, -1])}, "actions: expected 0 to 1, got -1"),
        ({"actions": np.array([0])}, r"actions: expected int \[2\], got int64 \[1\]"),
        ({"actions": np.array([0.0, 1.0])}, r"actions: expected int \[2\], got float64"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    good = {"score_fn": lambda images: images[:, 5, 5], "obs": noise(2, 12, 14, 2)}
    with pytest.raises(InputError, match=message):
        perturbation_scores(**{**good, **arguments})


def test_scores_of_a_wrong_shape_are_named() -> None:
    with pytest.raises(InputError, match=r"expected scores \[2, K\] or \[2\], got \[2, 14, 2\]"):
        perturbation_scores(lambda images: images[:, 0], noise(2, 12, 14, 2))
    with pytest.raises(InputError, match=r"expected scores \[2, K\] or \[2\], got \[1\]"):
        perturbation_scores(lambda images: np.zeros(1), noise(2, 12, 14, 2))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("call", [1, 2])
def test_scores_that_are_not_finite_are_named(bad: float, call: int) -> None:
    calls = []

    def score_fn(images: UInt8Array) -> FloatArray:
        calls.append(images)
        return np.full(len(images), bad if len(calls) == call else 0.0)

    with pytest.raises(InputError, match=f"expected finite scores, got {bad}"):
        perturbation_scores(score_fn, noise(2, 12, 14, 2))


@pytest.mark.parametrize(
    ("scores", "stride", "message"),
    [
        (np.zeros((1, 17, 16), np.float32), 5, r"scores: expected shape \[B, 17, 17\]"),
        (np.zeros((17, 17), np.float32), 5, r"scores: .* got \[17, 17\]"),
        (np.zeros((1, 17, 17), np.float32), 0, "stride 0"),
    ],
)
def test_scores_that_do_not_fit_the_map_are_named(
    scores: FloatArray, stride: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        perturbation_maps(scores, (84, 84), stride=stride)
