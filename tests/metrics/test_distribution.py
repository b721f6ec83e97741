import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from fl_saliency.metrics.distribution import blur_fixations, kl_blurred_fixations_to_map
from tests.golden.metrics_inputs import CASES, RAW, make_case

GOLDEN = Path(__file__).parents[1] / "golden"
ORIGINAL = json.loads((GOLDEN / "metrics.json").read_text())["cases"]
BOTH = [pytest.param(*pair, id=pair[1][0]) for pair in zip(ORIGINAL, CASES, strict=True)]
PYSALIENCY = json.loads((GOLDEN / "metrics_pysaliency.json").read_text())["cases"]


@pytest.mark.parametrize("sigma", [2, 5])
@pytest.mark.parametrize(("golden", "case"), BOTH)
def test_kl_equals_the_original(
    golden: dict[str, Any], case: tuple[Any, ...], sigma: float
) -> None:
    saliency, fixations, _ = make_case(golden["seed"], *case[1:])
    expected = golden[f"kldiv_sigma{sigma}"]
    value = kl_blurred_fixations_to_map(fixations, saliency, sigma=sigma)
    if expected is None or expected == "nan":  # the second: no gaze, which the benchmark guards
        assert value is None
    else:
        tolerance = 1e-12 if golden["dtype"] == "float64" else 2.4e-7
        assert value == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("golden", PYSALIENCY, ids=lambda row: str(row["seed"]))
def test_kl_equals_pysaliency_in_its_direction(golden: dict[str, Any]) -> None:
    saliency, counts, _ = make_case(golden["seed"], golden["shape"], golden["kind"], golden["nfix"])
    value = kl_blurred_fixations_to_map(counts, saliency, sigma=golden["sigma"])
    assert value == pytest.approx(golden["kl_gaze_to_map"], abs=1e-10)
    assert abs(golden["kl_map_to_gaze"] - golden["kl_gaze_to_map"]) > 0.1


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), scale=st.floats(1e-3, 1e3))
def test_kl_is_not_negative_and_ignores_scale(seed: int, scale: float) -> None:
    saliency, counts, _ = make_case(seed, (84, 84), "gauss", 5)
    value = kl_blurred_fixations_to_map(counts, saliency, sigma=2)
    assert value is not None
    assert value >= 0
    scaled = kl_blurred_fixations_to_map(counts, saliency * scale, sigma=2)
    assert scaled == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("nfix", [1, 7, 40])
def test_kl_of_the_blurred_fixations_themselves_is_0(nfix: int) -> None:
    _, counts, _ = make_case(3, (84, 84), "uniform", nfix)
    wide = blur_fixations(counts, sigma=30)  # above 0 everywhere
    assert wide.min() * 84 * 84 > 1e-3
    assert kl_blurred_fixations_to_map(counts, wide * 1e4, sigma=30) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("sigma", [2, 5])
def test_blur_is_a_gaussian_mirrored_at_the_border_that_sums_to_1(sigma: float) -> None:
    counts = np.zeros((60, 50), np.int64)
    counts[0, 0], counts[58, 20], counts[30, 30] = 1, 3, 2
    expected = gaussian_filter(counts / 6.0, sigma, mode="mirror", truncate=4)
    density = blur_fixations(counts, sigma=sigma)
    assert np.abs(density - expected / expected.sum()).max() < 1e-15
    assert density.sum() == pytest.approx(1)


def test_kl_is_undefined_where_the_map_is_0_under_gaze_and_only_there() -> None:
    saliency, counts = np.ones((84, 84)), np.zeros((84, 84), np.int64)
    counts[40, 40] = 1
    saliency[40, 60] = 0  # beyond the blur's reach of 8 pixels
    assert kl_blurred_fixations_to_map(counts, saliency, sigma=2) is not None
    for nearly in (0.0, 1e-9):
        saliency[48, 48] = nearly  # the blur's outermost corner
        assert kl_blurred_fixations_to_map(counts, saliency, sigma=2) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kl_is_undefined_on_a_map_that_is_not_finite(value: float) -> None:
    saliency, counts, _ = make_case(1, RAW, "uniform", 5)
    saliency[0, 0] = value
    assert kl_blurred_fixations_to_map(counts, saliency, sigma=5) is None


def test_constant_maps_have_a_kl_and_zero_and_one_hot_maps_have_none() -> None:
    _, counts, _ = make_case(1, (84, 84), "uniform", 5)
    one_hot = np.zeros((84, 84))
    one_hot[1, 1] = 1
    assert kl_blurred_fixations_to_map(counts, np.full((84, 84), 0.3), sigma=2) is not None
    assert kl_blurred_fixations_to_map(counts, np.zeros((84, 84)), sigma=2) is None
    assert kl_blurred_fixations_to_map(counts, one_hot, sigma=2) is None
    assert kl_blurred_fixations_to_map(counts * 0, np.ones((84, 84)), sigma=2) is None


def test_wrong_arguments_are_errors() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 5)
    with pytest.raises(TypeError, match="density"):
        kl_blurred_fixations_to_map(counts.astype(float), saliency, sigma=2)
    with pytest.raises(ValueError, match=r"expected shape \(84, 84\), got \(84, 83\)"):
        kl_blurred_fixations_to_map(counts, saliency[:, 1:], sigma=2)
    with pytest.raises(ValueError, match=r"minimum of -0\.5"):
        kl_blurred_fixations_to_map(counts, np.full((84, 84), -0.5), sigma=2)
