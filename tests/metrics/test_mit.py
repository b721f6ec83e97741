import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fl_saliency.base import FloatArray
from fl_saliency.metrics.distribution import blur_fixations
from fl_saliency.metrics.fixation import Fixations, nss, shuffled_auc
from fl_saliency.metrics.mit import (
    EPS,
    MIT_METRICS,
    auc_judd,
    cc,
    information_gain,
    mit_kl,
    mit_nss,
    mit_sauc,
    score_sequence_mit,
    sim,
)
from tests.golden.metrics_inputs import RAW, make_case, sequence

POINT = 0.1
"""A blur so narrow (exp(-50) at the next pixel) that a fixation stays a point."""

seeds = st.integers(0, 2**31)


def every_metric(saliency: FloatArray, counts: Any, others: Any) -> dict[str, float | None]:
    return {
        "nss": mit_nss(saliency, counts),
        "kldiv": mit_kl(saliency, counts, sigma=2),
        "sauc": mit_sauc(saliency, counts, others),
        "auc_judd": auc_judd(saliency, counts),
        "cc": cc(saliency, counts, sigma=2),
        "sim": sim(saliency, counts, sigma=2),
        "ig": information_gain(saliency, counts, baseline=np.ones(saliency.shape)),
    }


def fixations_of(counts: list[Any]) -> list[Fixations]:
    return [Fixations.from_counts(frame) for frame in counts]


# --- by hand ------------------------------------------------------------------------------------

QUARTERS = np.array([[1.0, 0.0], [0.0, 3.0]])
CORNER = np.array([[0, 0], [0, 1]])


def test_nss_by_hand_counts_every_fixation() -> None:
    saliency = np.array([[0.0, 0.0], [0.0, 4.0]])  # mean 1, deviation sqrt(3)
    thrice = np.array([[1, 0], [0, 3]])
    assert mit_nss(saliency, thrice) == pytest.approx((9 - 1) / 4 / math.sqrt(3))


def test_auc_judd_by_hand_counts_the_fixated_pixel_among_all() -> None:
    assert auc_judd(QUARTERS, CORNER) == (3 + 0.5) / 4
    assert auc_judd(QUARTERS, np.array([[0, 1], [0, 1]])) == (3.5 + 0.5 * 2) / 8


def test_shuffled_auc_by_hand_weighs_each_negative_by_its_fixations() -> None:
    assert mit_sauc(QUARTERS, np.array([[1, 0], [0, 0]]), np.array([[1, 2], [0, 3]])) == 2.5 / 6


def test_kl_by_hand_is_minus_log_of_the_map_at_a_lone_fixation() -> None:
    assert mit_kl(QUARTERS, CORNER, sigma=POINT) == pytest.approx(-math.log(0.75))
    assert mit_kl(QUARTERS * 0, CORNER, sigma=POINT) == pytest.approx(math.log(4))


def test_kl_where_the_map_is_0_under_gaze_is_set_by_eps() -> None:
    upper = np.array([[0, 1], [0, 0]])
    assert mit_kl(QUARTERS, upper, sigma=POINT) == pytest.approx(-math.log(EPS))


def test_sim_by_hand_is_the_mass_that_both_have() -> None:
    assert sim(QUARTERS, CORNER, sigma=POINT) == pytest.approx(0.75)
    assert sim(QUARTERS, np.array([[1, 0], [0, 1]]), sigma=POINT) == pytest.approx(0.25 + 0.5)


def test_maps_below_0_are_shifted_up_to_be_densities() -> None:
    assert sim(QUARTERS - 1, CORNER, sigma=POINT) == pytest.approx(3 / 4)
    assert sim(QUARTERS + 1, CORNER, sigma=POINT) == pytest.approx(4 / 8)  # needs no shift


def test_cc_by_hand() -> None:
    assert cc(QUARTERS, CORNER, sigma=POINT) == pytest.approx(2 / math.sqrt(1.5 * 3))
    assert cc(-CORNER.astype(float), CORNER, sigma=POINT) == pytest.approx(-1)


def test_information_gain_by_hand_is_in_bits_per_fixation() -> None:
    both = np.array([[1, 0], [0, 1]])
    uniform = np.full((2, 2), 0.25)
    assert information_gain(QUARTERS, CORNER, baseline=uniform) == pytest.approx(math.log2(3))
    expected = (math.log2(3) + 0) / 2
    assert information_gain(QUARTERS, both, baseline=uniform) == pytest.approx(expected)


def test_a_fixation_where_the_map_is_0_costs_52_bits() -> None:
    value = information_gain(QUARTERS, np.array([[0, 1], [0, 0]]), baseline=np.ones((2, 2)))
    assert value == pytest.approx(math.log2(EPS) + 2)
    assert math.log2(EPS) == pytest.approx(-52, abs=1e-4)


# --- invariants ---------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(seed=seeds, scale=st.floats(0.01, 100), shift=st.floats(-50, 50))
def test_nss_and_cc_do_not_change_under_a_rising_affine_map(
    seed: int, scale: float, shift: float
) -> None:
    saliency, counts, _ = make_case(seed, (12, 9), "uniform", 6)
    moved = saliency * scale + shift
    assert mit_nss(moved, counts) == pytest.approx(mit_nss(saliency, counts), abs=1e-6)
    before = cc(saliency, counts, sigma=2)
    assert cc(moved, counts, sigma=2) == pytest.approx(before, abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
@pytest.mark.parametrize("rising", [np.exp, np.cbrt, np.arctan])
def test_aucs_do_not_change_under_a_rising_map(
    seed: int, rising: Callable[[FloatArray], FloatArray]
) -> None:
    rng = np.random.default_rng(seed)
    saliency = rng.integers(-9, 9, (12, 9)).astype(float)
    _, counts, others = make_case(seed, (12, 9), "uniform", 6)
    assert auc_judd(rising(saliency), counts) == auc_judd(saliency, counts)
    assert mit_sauc(rising(saliency), counts, others) == mit_sauc(saliency, counts, others)


@settings(deadline=None, max_examples=25)
@given(seed=seeds, kind=st.sampled_from(["uniform", "halfzero", "exponential", "zero"]))
def test_metrics_keep_their_ranges(seed: int, kind: str) -> None:
    saliency, counts, others = make_case(seed, (12, 9), kind, 6)
    values = every_metric(saliency, counts, others)
    lowest = {"kldiv": -1e-12, "sauc": 0, "auc_judd": 0, "cc": -1, "sim": 0}
    for name, low in lowest.items():
        value = values[name]
        assert value is not None
        assert low <= value <= (math.inf if name == "kldiv" else 1), name


@settings(deadline=None, max_examples=25)
@given(seed=seeds, scale=st.floats(1e-30, 1e30))
def test_distribution_metrics_ignore_the_scale(seed: int, scale: float) -> None:
    saliency, counts, others = make_case(seed, (12, 9), "halfzero", 6)
    before, after = (every_metric(s, counts, others) for s in (saliency, saliency * scale))
    for name in ("kldiv", "sim", "ig"):
        assert after[name] == pytest.approx(before[name], abs=1e-9), name


@settings(deadline=None, max_examples=25)
@given(seed=seeds, nfix=st.integers(1, 40))
def test_the_baseline_gains_nothing_over_itself(seed: int, nfix: int) -> None:
    saliency, counts, _ = make_case(seed, (12, 9), "halfzero", nfix)
    assert information_gain(saliency, counts, baseline=saliency) == 0
    assert information_gain(saliency * 7, counts, baseline=saliency) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("nfix", [1, 7, 40])
def test_the_blurred_fixations_themselves_are_the_best_map(nfix: int) -> None:
    _, counts, _ = make_case(3, (84, 84), "uniform", nfix)
    best = blur_fixations(counts, sigma=2) * 1e4
    assert mit_kl(best, counts, sigma=2) == pytest.approx(0, abs=1e-11)
    assert cc(best, counts, sigma=2) == pytest.approx(1)
    assert sim(best, counts, sigma=2) == pytest.approx(1)


def test_aucs_of_noise_are_a_half() -> None:
    cases = [make_case(900 + k, (84, 84), "uniform", 40) for k in range(60)]
    judd = np.array([auc_judd(saliency, counts) for saliency, counts, _ in cases], float)
    sauc = np.array([mit_sauc(*case) for case in cases], float)
    assert judd.mean() == pytest.approx(0.5, abs=0.02)
    assert sauc.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("kind", ["uniform", "coarse7"])
def test_shuffled_auc_is_what_the_draws_of_the_paper_convention_tend_to(kind: str) -> None:
    case = make_case(7, RAW, kind, 20)
    drawn = shuffled_auc(*case, splits=5000)
    assert mit_sauc(*case) == pytest.approx(drawn, abs=2e-3)


def test_nss_is_that_of_the_paper_convention_where_that_is_defined() -> None:
    saliency, counts, _ = make_case(4, RAW, "exponential", 20)
    assert mit_nss(saliency, counts) == pytest.approx(nss(saliency, counts), abs=1e-12)


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1e6, -2.7, 3e38, 1e-45])
def test_a_constant_map_scores_chance(value: float, dtype: type) -> None:
    _, counts, others = make_case(1, (84, 84), "uniform", 5)
    values = every_metric(np.full((84, 84), value, dtype), counts, others)
    gaze = blur_fixations(counts, sigma=2)
    assert (values["nss"], values["cc"]) == (0, 0)
    assert (values["sauc"], values["auc_judd"]) == (0.5, 0.5)
    assert values["ig"] == pytest.approx(0, abs=1e-12)
    assert values["sim"] == pytest.approx(np.minimum(gaze, 1 / 84**2).sum())
    entropy = -(gaze[gaze > 0] * np.log(gaze[gaze > 0])).sum()
    assert values["kldiv"] == pytest.approx(math.log(84**2) - entropy)


@pytest.mark.parametrize(
    "extremes", [(0.0, 1.0), (0.0, 5e-324), (0.0, 1e308), (-1e308, 1e308), (1e308, -1e308)]
)
def test_a_one_hot_map_has_finite_scores_at_any_scale(extremes: tuple[float, float]) -> None:
    rest, spike = extremes
    _, counts, others = make_case(1, (84, 84), "uniform", 5)
    for row, column in ((3, 4), np.argwhere(counts)[0]):
        saliency = np.full((84, 84), rest)
        saliency[row, column] = spike
        values = every_metric(saliency, counts, others)
        assert np.isfinite(np.array(list(values.values()), float)).all(), values


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_map_that_is_not_finite_has_no_scores(value: float) -> None:
    saliency, counts, others = make_case(1, (84, 84), "uniform", 5)
    saliency[0, 0] = value
    assert set(every_metric(saliency, counts, others).values()) == {None}


def test_no_gaze_has_no_scores() -> None:
    saliency, counts, others = make_case(1, (84, 84), "uniform", 5)
    assert set(every_metric(saliency, counts * 0, others).values()) == {None}
    assert mit_sauc(saliency, counts, others * 0) is None


@pytest.mark.parametrize("metric", MIT_METRICS)
def test_densities_and_foreign_shapes_are_errors(metric: str) -> None:
    saliency, counts, others = make_case(1, (84, 84), "uniform", 5)

    def score(saliency: Any, counts: Any, others: Any) -> object:
        if metric == "sauc":
            return mit_sauc(saliency, counts, others)
        if metric == "ig":
            return information_gain(saliency, counts, baseline=np.ones((84, 84)))
        plain = {"nss": mit_nss, "auc_judd": auc_judd}
        if metric in plain:
            return plain[metric](saliency, counts)
        return {"kldiv": mit_kl, "cc": cc, "sim": sim}[metric](saliency, counts, sigma=2)

    with pytest.raises(TypeError, match="density"):
        score(saliency, blur_fixations(counts, sigma=2), others)
    with pytest.raises(ValueError, match=r"expected shape \(84, 84\), got \(84, 83\)"):
        score(saliency[:, 1:], counts, others)
    with pytest.raises(ValueError, match=r"others: expected shape \(84, 84\), got \(84, 83\)"):
        mit_sauc(saliency, counts, others[:, 1:])


def test_a_baseline_that_is_no_density_is_an_error() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 5)
    for wrong in (saliency * 0, saliency - 1, saliency * np.nan, saliency.ravel()):
        with pytest.raises(ValueError, match=r"baseline: expected a finite density \[H, W\]"):
            information_gain(saliency, counts, baseline=wrong)
    with pytest.raises(ValueError, match=r"baseline: expected shape \(84, 84\), got \(84, 83\)"):
        information_gain(saliency, counts, baseline=saliency[:, 1:])


# --- sequences ----------------------------------------------------------------------------------


def test_a_sequence_scores_as_its_frames_do() -> None:
    maps, counts = sequence(30000, (84, 84))
    baseline = np.ones((84, 84))
    scores = score_sequence_mit(iter(maps), fixations_of(counts), sigma=2, baseline=baseline)
    for frame, saliency in enumerate(maps):
        values = every_metric(saliency, counts[frame], sum(counts) - counts[frame])
        for name in MIT_METRICS:
            value = getattr(scores, name)[frame]
            assert (None if np.isnan(value) else value) == values[name], (frame, name)


def test_shuffled_auc_of_a_sequence_is_over_every_pair_with_every_other_frame() -> None:
    maps, counts = sequence(31000, (84, 84), n=3)
    counts[0] = np.roll(counts[1], 5)
    fixations = fixations_of(counts)
    scores = score_sequence_mit(maps, fixations, sigma=2, baseline=np.ones((84, 84)))
    for frame, (saliency, points) in enumerate(zip(maps, fixations, strict=True)):
        others = [other.pixels for other in fixations if other is not points]
        here, there = saliency.ravel()[points.pixels], saliency.ravel()[np.concatenate(others)]
        above = (here[:, None] > there).mean() + (here[:, None] == there).mean() / 2
        assert scores.sauc[frame] == pytest.approx(above, abs=1e-12)


def test_every_dropped_frame_has_a_reason() -> None:
    maps, counts = sequence(30000, (84, 84))
    scores = score_sequence_mit(maps, fixations_of(counts), sigma=2, baseline=np.ones((84, 84)))
    reasons = {"no_fixation": 2, "map_not_finite": 1}
    assert scores.dropped == dict.fromkeys(MIT_METRICS, reasons)
    for name in MIT_METRICS:
        assert np.flatnonzero(np.isnan(getattr(scores, name))).tolist() == [0, 3, 5]


def test_a_single_frame_has_no_shuffled_auc_and_all_else() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 4)
    scores = score_sequence_mit(
        [saliency], fixations_of([counts]), sigma=2, baseline=np.ones((84, 84))
    )
    assert scores.dropped.pop("sauc") == {"no_other_fixation": 1}
    assert set(map(str, scores.dropped.values())) == {"{}"}
    for name in MIT_METRICS:
        assert np.isfinite(getattr(scores, name)).all() == (name != "sauc")


def test_no_frames_give_empty_scores() -> None:
    scores = score_sequence_mit([], [], sigma=2, baseline=np.ones((84, 84)))
    assert {getattr(scores, name).shape for name in MIT_METRICS} == {(0,)}


def test_maps_are_drawn_one_at_a_time() -> None:
    _, counts = sequence(31000, (84, 84), n=4)
    drawn = []

    def maps() -> Iterator[FloatArray]:
        saliency = np.zeros((84, 84))
        for frame in range(4):
            saliency[:] = make_case(frame, (84, 84), "uniform", 1)[0]  # the same memory each time
            drawn.append(frame)
            yield saliency

    scores = score_sequence_mit(maps(), fixations_of(counts), sigma=2, baseline=np.ones((84, 84)))
    assert drawn == [0, 1, 2, 3]
    expected = [nss(make_case(k, (84, 84), "uniform", 1)[0], counts[k]) for k in (1, 2, 3)]
    assert scores.nss[1:] == pytest.approx(np.array(expected, float), abs=1e-12)


def test_wrong_sequences_are_errors() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 4)
    points = Fixations.from_counts(counts)
    baseline = np.ones((84, 84))
    with pytest.raises(ValueError, match="1 maps of 2 frames"):
        score_sequence_mit([saliency], [points, points], sigma=2, baseline=baseline)
    with pytest.raises(ValueError, match="saliency: expected shape"):
        score_sequence_mit([saliency[1:]], [points], sigma=2, baseline=baseline)
    with pytest.raises(ValueError, match="fixations: expected shape"):
        score_sequence_mit([saliency], [points], sigma=2, baseline=np.ones(RAW))
    density: Any = blur_fixations(counts, sigma=2)
    with pytest.raises(TypeError, match="density"):
        score_sequence_mit([saliency], [density], sigma=2, baseline=baseline)


def test_each_frame_can_have_a_baseline_of_its_own() -> None:
    rng = np.random.default_rng(0)
    maps, baselines = rng.uniform(size=(3, 84, 84)), rng.uniform(0.1, 1, size=(2, 84, 84))
    counts = list(rng.integers(2, size=(3, 84, 84)))
    fold = np.array([1, 0, 1])
    scores = score_sequence_mit(maps, fixations_of(counts), sigma=2, baseline=baselines, fold=fold)
    expected = [
        information_gain(saliency, points, baseline=baselines[which])
        for saliency, points, which in zip(maps, counts, fold, strict=True)
    ]
    assert scores.ig.tolist() == expected
    for wrong in (fold[:2], fold[:, None]):
        with pytest.raises(ValueError, match=r"fold .*: expected \[K, H, W\] and \(3,\)"):
            score_sequence_mit(maps, fixations_of(counts), sigma=2, baseline=baselines, fold=wrong)
    with pytest.raises(ValueError, match=r"baseline \(84, 84\), fold \(3,\)"):
        score_sequence_mit(maps, fixations_of(counts), sigma=2, baseline=baselines[0], fold=fold)
