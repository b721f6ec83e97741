import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.base import FloatArray
from fl_saliency.metrics.fixation import Fixations, nss, shuffled_auc
from fl_saliency.metrics.paper import METRICS, other_frames, score_sequence
from tests.golden.metrics_inputs import RAW, make_case, sequence

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metrics.json").read_text())


def fixations_of(counts: list[Any]) -> list[Fixations]:
    return [Fixations.from_counts(frame) for frame in counts]


@pytest.mark.parametrize("golden", GOLDEN["auc_shuffled_many"], ids=lambda row: str(row["seed"]))
def test_shuffled_auc_of_a_sequence_equals_the_original(golden: dict[str, Any]) -> None:
    maps, counts = sequence(golden["seed"], golden["shape"], golden["n"])
    scores = score_sequence(iter(maps), fixations_of(counts), sigma=5)
    expected = np.array(golden["sauc"], float)
    assert scores.sauc == pytest.approx(expected, abs=1e-15, nan_ok=True)
    assert scores.nss[1] == nss(maps[1], counts[1])


def test_every_dropped_frame_has_a_reason() -> None:
    maps, counts = sequence(30000, RAW)
    scores = score_sequence(maps, fixations_of(counts), sigma=5)
    everywhere = {"no_fixation": 2, "map_not_finite": 1}
    assert scores.dropped == {
        "nss": everywhere | {"constant_map": 2},
        "kldiv": everywhere | {"zero_under_gaze": 1},
        "sauc": everywhere | {"constant_map": 2},
    }
    for name in METRICS:
        assert np.isnan(getattr(scores, name)).sum() == sum(scores.dropped[name].values())


def test_frames_of_a_trial_where_nobody_else_looked_keep_nss_and_kl() -> None:
    maps, counts = sequence(30000, (84, 84), 3)
    nothing = np.zeros_like(counts[1])
    scores = score_sequence(maps, fixations_of([nothing, counts[1], nothing]), sigma=2)
    assert np.isfinite([scores.nss[1], scores.kldiv[1]]).all()
    assert scores.dropped["sauc"] == {"no_fixation": 2, "no_other_fixation": 1}


def test_a_single_frame_has_no_shuffled_auc() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 4)
    scores = score_sequence([saliency], fixations_of([counts]), sigma=2)
    assert np.isfinite(scores.nss).all()
    assert scores.dropped == {"nss": {}, "kldiv": {}, "sauc": {"no_other_fixation": 1}}


def test_no_frames_give_empty_scores() -> None:
    assert score_sequence([], [], sigma=2).nss.shape == (0,)


def test_other_frames_are_every_frame_but_this_one() -> None:
    rng = np.random.RandomState(0)
    drawn = np.concatenate([other_frames(rng, 2, 5) for _ in range(40)])
    assert sorted(set(drawn.tolist())) == [0, 1, 3, 4]
    assert other_frames(rng, 0, 1).size == 0


def test_as_many_maps_as_frames_are_needed() -> None:
    saliency, counts, _ = make_case(1, (84, 84), "uniform", 4)
    with pytest.raises(ValueError, match="1 maps of 2 frames"):
        score_sequence([saliency], fixations_of([counts, counts]), sigma=2)
    with pytest.raises(ValueError, match="more maps than the 1 frames"):
        score_sequence([saliency, saliency], fixations_of([counts]), sigma=2)


def test_another_seed_draws_other_frames_and_other_points() -> None:
    maps, counts = sequence(31000, (84, 84))
    first, again, other = (
        score_sequence(maps, fixations_of(counts), sigma=2, seed=seed).sauc for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)


def test_memory_does_not_hold_the_maps() -> None:
    saliency, counts, _ = make_case(1, RAW, "uniform", 60)
    points = Fixations.from_counts(counts)

    def maps() -> Iterator[FloatArray]:
        for frame in range(200):
            yield saliency + frame  # a new 270 kB array each

    tracemalloc.start()
    try:
        score_sequence(maps(), [points] * 200, sigma=5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * saliency.nbytes


def test_a_frame_scores_as_its_parts_do() -> None:
    cases = [make_case(70 + k, (84, 84), "exponential", 8) for k in range(2)]
    scores = score_sequence(
        [saliency for saliency, _, _ in cases], fixations_of([c for _, c, _ in cases]), sigma=2
    )
    # With two frames the other one is drawn ten times.
    expected = shuffled_auc(cases[0][0], cases[0][1], 10 * cases[1][1])
    assert scores.sauc[0] == expected
