import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fl_saliency.metrics.distribution import blur_fixations
from fl_saliency.metrics.fixation import (
    Fixations,
    _first_above,
    auc,
    draw_pixels,
    nss,
    shuffled_auc,
)
from tests.golden.metrics_inputs import CASES, RAW, make_case

GOLDEN = Path(__file__).parents[1] / "golden"
ORIGINAL = json.loads((GOLDEN / "metrics.json").read_text())["cases"]
BOTH = [pytest.param(*pair, id=pair[1][0]) for pair in zip(ORIGINAL, CASES, strict=True)]
PYSALIENCY = json.loads((GOLDEN / "metrics_pysaliency.json").read_text())["cases"]


def defined(value: Any) -> float | None:
    """A golden value with "it raised" as None: the benchmark guards those frames."""
    return value if isinstance(value, float) else None


def tolerance(golden: dict[str, Any]) -> float:
    return 1e-12 if golden["dtype"] == "float64" else 2.4e-7


@pytest.mark.parametrize(("golden", "case"), BOTH)
def test_nss_equals_the_original(golden: dict[str, Any], case: tuple[Any, ...]) -> None:
    saliency, fixations, _ = make_case(golden["seed"], *case[1:])
    expected = golden["pipeline_guarded"]["nss"]
    value = nss(saliency, fixations)
    assert (value is None) == (expected is None)
    if value is not None:
        assert value == pytest.approx(expected, abs=tolerance(golden), rel=0)


@pytest.mark.parametrize(("splits", "seed"), [(100, 42), (10, 0)])
@pytest.mark.parametrize(("golden", "case"), BOTH)
def test_shuffled_auc_equals_the_original(
    golden: dict[str, Any], case: tuple[Any, ...], splits: int, seed: int
) -> None:
    saliency, fixations, others = make_case(golden["seed"], *case[1:])
    expected = defined(golden[f"auc_shuffled_rs{seed}_{splits}"])
    value = shuffled_auc(saliency, fixations, others, splits=splits, seed=seed)
    assert (value is None) == (expected is None)
    if value is not None:
        assert value == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("golden", PYSALIENCY, ids=lambda row: str(row["seed"]))
def test_nss_and_auc_equal_pysaliency(golden: dict[str, Any]) -> None:
    saliency, counts, others = make_case(
        golden["seed"], golden["shape"], golden["kind"], golden["nfix"]
    )
    positives = saliency.ravel()[Fixations.from_counts(counts).pixels]
    negatives = saliency.ravel()[Fixations.from_counts(others).pixels]
    assert nss(saliency, counts) == pytest.approx(golden["nss"], abs=1e-12)
    assert auc(positives, negatives) == pytest.approx(golden["auc"], abs=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "coarse7"])
def test_shuffled_auc_is_the_mean_of_sklearns_over_the_same_splits(kind: str) -> None:
    saliency, counts, others = make_case(7, RAW, kind, 20)
    values = saliency.ravel()
    positives = values[Fixations.from_counts(counts).pixels]
    draws = np.random.RandomState(42).choice(
        values.size, (100, 20), p=others.ravel() / others.sum()
    )
    labels = np.repeat([1, 0], 20)
    peers = [roc_auc_score(labels, [*positives, *values[draw]]) for draw in draws]
    assert shuffled_auc(saliency, counts, others) == pytest.approx(np.mean(peers), abs=1e-12)
    assert auc(positives, values[draws]) == pytest.approx(peers, abs=1e-12)


def test_draw_pixels_is_numpys_weighted_choice_number_for_number() -> None:
    _, counts, _ = make_case(11, (84, 84), "uniform", 30)
    distinct, draws = draw_pixels(Fixations.from_counts(counts), (5, 400), seed=3)
    expected = np.random.RandomState(3).choice(84 * 84, (5, 400), p=counts.ravel() / 30)
    assert np.array_equal(distinct[draws], expected)


@pytest.mark.parametrize("pixels", [1, 2, 700])
def test_draws_at_the_steps_of_the_distribution_fall_on_the_right_side(pixels: int) -> None:
    counts = np.random.default_rng(pixels).integers(1, 9, pixels)
    cumulative = np.cumsum(counts / counts.sum())
    cumulative /= cumulative[-1]
    steps = [cumulative, np.nextafter(cumulative, 0), np.nextafter(cumulative, 1), [0, 1 - 2**-53]]
    uniform = np.concatenate(steps)
    uniform = uniform[uniform < 1]
    expected = np.searchsorted(cumulative, uniform, side="right")
    assert np.array_equal(_first_above(cumulative, uniform, counts), expected)


def test_nss_by_hand_counts_every_fixation() -> None:
    saliency = np.array([[0.0, 0.0], [0.0, 4.0]])  # mean 1, deviation sqrt(3)
    once, thrice = np.array([[1, 0], [0, 1]]), np.array([[1, 0], [0, 3]])
    assert nss(saliency, once) == pytest.approx((3 - 1) / 2 / math.sqrt(3))
    assert nss(saliency, thrice) == pytest.approx((9 - 1) / 4 / math.sqrt(3))


def test_auc_counts_a_tie_half() -> None:
    assert auc(np.array([1.0, 2.0]), np.array([1.0, 1.0])) == 0.75
    assert auc(np.array([1.0]), np.array([[0.0], [1.0], [2.0]])).tolist() == [1.0, 0.5, 0.0]


def test_nss_refuses_a_density() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 5)
    with pytest.raises(TypeError, match="density"):
        nss(saliency, blur_fixations(counts, sigma=2))
    with pytest.raises(TypeError, match="density"):
        shuffled_auc(saliency, counts, counts.astype(float))


def test_shapes_that_differ_are_an_error() -> None:
    saliency, counts, others = make_case(1, (84, 84), "uniform", 5)
    wrong = np.zeros(RAW, np.int64)
    with pytest.raises(ValueError, match=r"saliency: expected shape \(210, 160\), got \(84, 84\)"):
        nss(saliency, wrong)
    with pytest.raises(ValueError, match="others"):
        shuffled_auc(saliency, counts, wrong)
    with pytest.raises(ValueError, match="fixations"):
        Fixations.union([Fixations.from_counts(counts), Fixations.from_counts(wrong)], (84, 84))
    with pytest.raises(ValueError, match=">= 0"):
        nss(others, -others)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1e6, np.nan, np.inf])
def test_constant_and_infinite_maps_are_undefined(value: float, dtype: type) -> None:
    saliency = np.full(RAW, value, dtype)
    _, counts, others = make_case(1, RAW, "uniform", 5)
    assert nss(saliency, counts) is None
    assert shuffled_auc(saliency, counts, others) is None
    saliency[:100] = 0.5  # now only its finiteness can forbid it
    finite = math.isfinite(value)
    assert (nss(saliency, counts) is not None) == finite
    assert (shuffled_auc(saliency, counts, others) is not None) == finite


def test_a_one_hot_map_is_defined() -> None:
    saliency = np.zeros((84, 84))
    saliency[3, 4] = 1.0
    counts = np.zeros((84, 84), np.int64)
    counts[3, 4] = 2
    others = np.roll(counts, 1)
    assert nss(saliency, counts) == pytest.approx(math.sqrt(84 * 84 - 1))
    assert shuffled_auc(saliency, counts, others) == 1.0
    assert shuffled_auc(saliency, others, counts) == 0.0


def test_no_gaze_is_undefined() -> None:
    saliency, counts, others = make_case(1, (84, 84), "uniform", 5)
    nothing = np.zeros_like(counts)
    assert nss(saliency, nothing) is None
    assert shuffled_auc(saliency, nothing, others) is None
    assert shuffled_auc(saliency, counts, nothing) is None


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), scale=st.floats(0.01, 100), shift=st.floats(-50, 50))
def test_metrics_do_not_change_under_a_rising_affine_map(
    seed: int, scale: float, shift: float
) -> None:
    saliency, counts, others = make_case(seed, (12, 9), "uniform", 6)
    moved = saliency * scale + shift
    assert nss(moved, counts) == pytest.approx(nss(saliency, counts), abs=1e-6)
    assert shuffled_auc(moved, counts, others) == shuffled_auc(saliency, counts, others)


def test_shuffled_auc_of_noise_is_a_half() -> None:
    values = [shuffled_auc(*make_case(900 + k, (84, 84), "uniform", 40)) for k in range(60)]
    assert np.mean(np.array(values, float)) == pytest.approx(0.5, abs=0.02)


def test_a_centre_prior_gains_nothing_in_shuffled_auc_but_does_in_nss() -> None:
    rng = np.random.default_rng(5)
    rows, columns = np.mgrid[:84, :84]
    prior = np.exp(-((rows - 42) ** 2 + (columns - 42) ** 2) / 800)
    points = np.clip(rng.normal(42, 15, size=(2, 400)), 0, 83).astype(int)
    counts = np.zeros((2, 84, 84), np.int64)
    np.add.at(counts, (np.repeat([0, 1], 200), *points), 1)
    value = nss(prior, counts[0])
    assert value is not None
    assert value > 0.5
    assert shuffled_auc(prior, counts[0], counts[1]) == pytest.approx(0.5, abs=0.05)


def test_fixations_keep_their_counts() -> None:
    _, counts, others = make_case(2, (84, 84), "uniform", 9)
    one, two = Fixations.from_counts(counts), Fixations.from_counts(others)
    both = Fixations.union([one, two, one], (84, 84))
    assert np.array_equal(both.counts(), 2 * counts + others)
    assert both.total == 2 * 9 + 150
    assert Fixations.union([], (2, 3)).counts().tolist() == [[0, 0, 0], [0, 0, 0]]
