"""Occlusion, RISE, SARFA and the baselines by hand."""

import numpy as np
import pytest

from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.errors import InputError
from fl_saliency.saliency.baselines import centre_map, frame_difference_maps
from fl_saliency.saliency.occlusion import occlusion_differences
from fl_saliency.saliency.perturbation import perturbation_scores, sarfa_scores
from fl_saliency.saliency.probing import spread
from fl_saliency.saliency.rise import random_masks, rise_maps


def total(obs: UInt8Array) -> FloatArray:
    return obs.sum(axis=(1, 2, 3), dtype=np.float64)


def test_occlusion_is_the_sum_that_a_box_takes_away() -> None:
    obs = np.full((1, 9, 9, 2), 10, np.uint8)
    found = occlusion_differences(total, obs, size=3, stride=4, fill=0)
    assert found.shape == (1, 3, 3, 1)
    # A whole box holds 9 pixels of 2 channels; one at a border 6, one in a corner 4.
    assert found[0, :, :, 0].tolist() == [[80, 120, 80], [120, 180, 120], [80, 120, 80]]


def test_an_occluding_box_has_the_median_of_its_channel() -> None:
    obs = np.zeros((1, 9, 9, 2), np.uint8)
    obs[..., 1] = 50
    obs[0, 4, 4] = (90, 90)
    found = occlusion_differences(total, obs, size=3, stride=4)
    assert found[0, 1, 1, 0] == 90 + 40
    assert np.count_nonzero(found) == 1


def test_rise_of_a_sum_is_the_brightness_itself() -> None:
    """Score and masks are linear: with every mask of single pixels, a pixel's share is exact."""
    obs = np.array([[10, 40], [80, 0]], np.uint8).reshape(1, 2, 2, 1)
    grid = np.array([[(bits >> k) & 1 for k in range(4)] for bits in range(16)], np.float32)
    maps = rise_maps(total, obs, grid.reshape(16, 2, 2), batch=5)
    np.testing.assert_allclose(maps[0], [[10, 40], [80, 0]], atol=1e-4)


def test_random_masks_are_smooth_shares_of_the_picture() -> None:
    masks = random_masks(np.random.default_rng(0), 500, (84, 84))
    assert masks.shape == (500, 84, 84)
    assert masks.min() >= 0
    assert masks.max() <= 1
    assert masks.mean() == pytest.approx(0.5, abs=0.02)
    assert np.abs(np.diff(masks, axis=1)).max() < 0.2
    # No place is left out more than another.
    assert masks.mean(axis=0).std() < 0.03


@pytest.mark.parametrize(
    "arguments",
    [{"count": 1}, {"cells": 0}, {"share": 0.0}, {"share": 1.0}],
)
def test_masks_out_of_range_are_an_error(arguments: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected at least 2"):
        random_masks(np.random.default_rng(0), **{"count": 5, "size": (8, 8)} | arguments)  # type: ignore[arg-type]


def test_masks_of_another_size_are_an_error() -> None:
    with pytest.raises(InputError, match=r"masks: expected shape \[M, 2, 2\]"):
        rise_maps(total, np.zeros((1, 2, 2, 1), np.uint8), np.zeros((4, 3, 3), np.float32))


def test_sarfa_equals_its_definition() -> None:
    weights = np.random.default_rng(0).normal(0, 1e-3, (20 * 20 * 2, 3))

    def scores(obs: UInt8Array) -> FloatArray:
        return obs.reshape(len(obs), -1) @ weights

    obs = np.random.default_rng(1).integers(0, 256, (1, 20, 20, 2), dtype=np.uint8)
    seen: list[UInt8Array] = []

    def watched(batch: UInt8Array) -> FloatArray:
        seen.append(batch.copy())
        return scores(batch)

    found = sarfa_scores(watched, obs, actions=np.array([1]), stride=5, sigma=2)[0].ravel()
    assert found.max() > 0
    before = scores(obs)[0]
    for cell, image in zip(found, np.concatenate(seen[1:]), strict=True):
        after = scores(image[None])[0]
        p, q = (np.exp(x) / np.exp(x).sum() for x in (before, after))
        fall = max(0.0, p[1] - q[1])
        rest, moved = (np.exp(x[[0, 2]]) / np.exp(x[[0, 2]]).sum() for x in (before, after))
        relevance = 1 / (1 + (moved * np.log(moved / rest)).sum())
        assert cell == pytest.approx(2 * fall * relevance / (fall + relevance), rel=2e-3, abs=1e-6)


def test_a_channel_of_its_own_is_blurred_alone() -> None:
    obs = np.random.default_rng(1).integers(0, 256, (1, 20, 20, 3), dtype=np.uint8)

    def first_only(batch: UInt8Array) -> FloatArray:
        return batch[..., 0].sum(axis=(1, 2), dtype=np.float64) * 1e-2

    settings = {"sigma": 2.0, "stride": 5}
    together = perturbation_scores(first_only, obs, **settings)  # type: ignore[arg-type]
    highest = perturbation_scores(first_only, obs, channels="max", **settings)  # type: ignore[arg-type]
    mean = perturbation_scores(first_only, obs, channels="mean", **settings)  # type: ignore[arg-type]
    np.testing.assert_allclose(highest, together, rtol=1e-6)
    np.testing.assert_allclose(mean, together / 3, rtol=1e-6)


def test_cells_are_spread_between_their_centres() -> None:
    cells = np.array([[[0.0, 4.0]]])
    drawn = spread(cells, (1, 7), stride=4, first=1)
    assert drawn[0, 0].tolist() == [0, 0, 1, 2, 3, 4, 4]


def test_the_centre_map_peaks_in_the_middle() -> None:
    found = centre_map((84, 84))
    assert np.unravel_index(found.argmax(), found.shape) in [(41, 41), (41, 42), (42, 41), (42, 42)]
    np.testing.assert_allclose(found, found[::-1, ::-1])


def test_frame_difference_is_what_the_newest_frame_changed() -> None:
    obs = np.zeros((1, 2, 2, 4), np.uint8)
    obs[0, 0, 0] = (0, 0, 9, 4)
    obs[0, 1, 1] = (9, 9, 7, 7)
    assert frame_difference_maps(obs)[0].tolist() == [[5, 0], [0, 0]]
