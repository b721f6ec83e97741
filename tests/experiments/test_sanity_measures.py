"""Similarity of maps, bootstrap intervals, agreement: hand values and invariants."""

import numpy as np
import pytest

from fl_saliency.experiments.sanity.agreement import agreement
from fl_saliency.experiments.sanity.bootstrap import band, interval, ratio_interval
from fl_saliency.experiments.sanity.similarity import (
    BINS,
    CELL,
    SIMILARITIES,
    hog_features,
    spearman,
    spearman_nonzero,
    ssim,
)

RNG = np.random.default_rng(0)
MAPS = RNG.random((3, 84, 84)).astype(np.float32)
NOISE = RNG.random((3, 84, 84)).astype(np.float32)


@pytest.mark.parametrize("measure", SIMILARITIES.values(), ids=list(SIMILARITIES))
class TestEveryMeasure:
    def test_is_1_for_the_same_map_at_any_scale(self, measure) -> None:
        np.testing.assert_allclose(measure(MAPS, MAPS * 7), 1, atol=1e-6)

    def test_is_near_0_for_maps_without_relation(self, measure) -> None:
        assert np.abs(measure(MAPS, NOISE)).max() < 0.1

    def test_is_symmetric(self, measure) -> None:
        np.testing.assert_allclose(measure(MAPS, NOISE), measure(NOISE, MAPS), atol=1e-9)

    def test_is_undefined_for_a_constant_map(self, measure) -> None:
        flat = np.ones((3, 84, 84), np.float32)
        assert np.isnan(measure(MAPS, flat)).all()
        assert np.isnan(measure(flat, flat)).all()
        assert np.isnan(measure(flat * 0, flat * 0)).all()

    def test_takes_each_state_by_itself(self, measure) -> None:
        mixed = np.stack([MAPS[0], NOISE[1], np.zeros((84, 84), np.float32)])
        found = measure(MAPS, mixed)
        assert found[0] == pytest.approx(1)
        assert abs(found[1]) < 0.1
        assert np.isnan(found[2])


def test_spearman_of_hand_values() -> None:
    # Ranks 1 2 3 4 against 2 1 4 3: 1 - 6 * (1 + 1 + 1 + 1) / (4 * 15).
    one = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    other = np.array([[[20.0, 10.0], [1000.0, 30.0]]])
    assert spearman(one, other) == pytest.approx([0.6])
    assert spearman(one, -other) == pytest.approx([-0.6])


def test_spearman_of_ties_takes_mean_ranks() -> None:
    # Ranks 1.5 1.5 3.5 3.5 against 1 2 3 4: Pearson's r of those.
    found = spearman(np.array([[[0.0, 0.0], [1.0, 1.0]]]), np.array([[[1.0, 2.0], [3.0, 4.0]]]))
    assert found == pytest.approx([np.corrcoef([1.5, 1.5, 3.5, 3.5], [1, 2, 3, 4])[0, 1]])


def test_black_pixels_make_maps_alike_unless_they_are_left_out() -> None:
    bright = np.zeros((1, 84, 84), np.float32)
    bright[:, :20] = 1
    one, other = bright * MAPS[:1], bright * NOISE[:1]
    assert spearman(one, other)[0] > 0.9
    assert abs(spearman_nonzero(one, other)[0]) < 0.05


def test_ssim_of_hand_values() -> None:
    # Between two halves, black and white, and their negative: far from the edge every window is
    # constant, so SSIM is C1 / (1 + C1) there, nearly 0; with itself it is 1.
    half = np.zeros((1, 84, 84), np.float32)
    half[:, :, 42:] = 1
    assert -0.2 < ssim(half, 1 - half)[0] < 0.001
    nearly = half.copy()
    nearly[0, :42] = 0
    nearly[0, :, 42:] = 1
    assert ssim(half, nearly)[0] == pytest.approx(1)


def test_ssim_falls_with_noise() -> None:
    smooth = np.outer(np.linspace(0, 1, 84), np.linspace(0, 1, 84))[None]
    found = [ssim(smooth, smooth + size * NOISE[:1])[0] for size in (0, 0.05, 0.2, 0.8)]
    assert sorted(found, reverse=True) == found
    assert found[0] == pytest.approx(1)


@pytest.mark.parametrize(("axis", "bin_"), [(1, 0), (0, None)])
def test_a_ramp_has_gradients_of_one_orientation(axis: int, bin_: int | None) -> None:
    ramp = np.indices((84, 84))[axis][None].astype(np.float32)
    histograms = hog_features(ramp).reshape(-1, BINS)
    assert histograms.shape[0] == 4 * (84 // CELL - 1) ** 2
    total = histograms.sum(axis=0)
    if bin_ is None:  # straight down, 90 degrees: between bins 4 and 5 of 0, 20, ... 160
        assert total[4] == pytest.approx(total[5])
        assert total[[0, 1, 2, 3, 6, 7, 8]].max() < 1e-6
    else:
        assert total[bin_] > 0
        assert np.delete(total, bin_).max() < 1e-6


def test_hog_does_not_know_the_sign_of_a_gradient() -> None:
    np.testing.assert_allclose(hog_features(MAPS), hog_features(1 - MAPS), atol=1e-5)


def test_an_interval_holds_the_mean_and_shrinks_with_states() -> None:
    few, many = (interval(np.random.default_rng(1).normal(5, 1, n), seed=0) for n in (20, 2000))
    for found in (few, many):
        assert found.low < found.mean < found.high
    # 1.96 standard errors to each side.
    assert many.high - many.low == pytest.approx(2 * 1.96 / 2000**0.5, rel=0.1)
    assert few.high - few.low > 5 * (many.high - many.low)


def test_undefined_states_are_counted_and_left_out() -> None:
    found = interval(np.array([1.0, np.nan, 3.0, np.nan]), seed=0)
    assert (found.mean, found.n, found.undefined) == (2, 2, 2)
    none = interval(np.full(4, np.nan), seed=0)
    assert (none.mean, none.low, none.high, none.n, none.undefined) == (None, None, None, 0, 4)
    assert str(none) == "undefined"
    one = interval(np.array([2.0]), seed=0)
    assert (one.mean, one.low, one.high) == (2, None, None)


def test_an_interval_of_equal_values_is_that_value() -> None:
    found = interval(np.full(7, 0.1), seed=0)
    assert found.low == pytest.approx(0.1)
    assert found.low <= found.mean <= found.high


def test_intervals_depend_on_their_seed_alone() -> None:
    values = RNG.random(30)
    assert interval(values, seed=1) == interval(values, seed=1)
    assert interval(values, seed=1) != interval(values, seed=2)


def test_a_ratio_is_of_means_and_open_where_nothing_is_below() -> None:
    found = ratio_interval(np.array([2.0, 4.0]), np.array([1.0, 2.0]), seed=0)
    assert (found.mean, found.low, found.high) == (2, 2, 2)
    assert ratio_interval(np.ones(3), np.zeros(3), seed=0).mean is None
    rare = ratio_interval(np.ones(3), np.array([0.0, 0.0, 3.0]), seed=0)
    assert rare.mean == 1
    assert rare.high is None
    assert rare.low == pytest.approx(1 / 3)


def test_a_band_is_an_interval_at_each_point() -> None:
    curves = RNG.random((40, 5))
    low, high = band(curves, seed=3)
    for point in range(5):
        found = interval(curves[:, point], seed=3)
        assert (low[point], high[point]) == pytest.approx((found.low, found.high))


def test_agreement_ranks_methods_by_the_others_and_leaves_baselines_out() -> None:
    maps = {
        "a": MAPS,
        "b": MAPS * 2 + 0.1 * NOISE,
        "odd": -MAPS,
        "flat": np.zeros_like(MAPS),
        "centre": NOISE,
    }
    found = agreement(maps, ["centre"], seed=0)
    assert found.pairs["a"]["a"].mean == pytest.approx(1)
    assert found.pairs["a"]["odd"].mean == pytest.approx(-1)
    assert found.pairs["a"]["b"] == found.pairs["b"]["a"]
    assert found.pairs["a"]["flat"].mean is None
    assert found.pairs["a"]["flat"].undefined == 3
    assert "centre" not in found.ranks
    assert found.ranks["flat"] is None
