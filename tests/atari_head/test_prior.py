from pathlib import Path

import numpy as np
import pytest

from fl_saliency.atari_head.prior import (
    BLURS,
    FLOOR,
    OTHER_HALF,
    OTHER_TRIALS,
    OtherGaze,
    gaze_density,
    prior_of_halves,
    prior_of_trials,
)
from fl_saliency.atari_head.reader import find_trials
from fl_saliency.atari_head.settings import BenchmarkSettings
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.metrics.distribution import blur_fixations
from fl_saliency.metrics.fixation import Fixations
from tests.atari_head.makers import FLAT_META, frame_files, label_row, label_text, tar_bytes

SETTINGS = BenchmarkSettings(protocol=resolve_protocol("BreakoutNoFrameskip-v4"))


def at(row: int, column: int, count: int = 1) -> np.ndarray:
    counts = np.zeros((84, 84), np.int64)
    counts[row, column] = count
    return counts


def test_a_gaze_density_is_blurred_gaze_with_an_even_part_so_that_it_is_zero_nowhere() -> None:
    counts = at(20, 30, 3) + at(60, 10)
    density = gaze_density(counts, sigma=2)
    assert density.sum() == pytest.approx(1)
    assert density.min() == pytest.approx(FLOOR / 84**2)
    expected = (1 - FLOOR) * blur_fixations(counts, sigma=2) + FLOOR / 84**2
    assert density == pytest.approx(expected, abs=1e-15)


def test_no_gaze_is_an_even_density() -> None:
    assert gaze_density(np.zeros((4, 5), np.int64), sigma=2).tolist() == [[1 / 20] * 5] * 4


def test_each_half_of_a_trial_gets_the_gaze_of_the_other_without_decisions_that_share_frames() -> (
    None
):
    columns = [10] * 7 + [40] * 6 + [70] * 7  # the six in the middle are left out
    frames = [Fixations.from_counts(at(42, column)) for column in columns]
    prior = prior_of_halves(frames, stack=4, sigma=1)
    assert prior.source == OTHER_HALF
    assert prior.fold.tolist() == [0] * 10 + [1] * 10
    sigma = BLURS[OTHER_HALF]
    for density, column in zip(prior.densities, (70, 10), strict=True):
        assert density == pytest.approx(gaze_density(at(42, column, 7), sigma=sigma))


def test_halves_that_are_too_short_are_even() -> None:
    for length in (1, 2, 6):
        frames = [Fixations.from_counts(at(42, 10))] * length
        prior = prior_of_halves(frames, stack=4, sigma=1)
        assert len(prior.fold) == length
        assert np.ptp(prior.densities) == 0


def test_the_gaze_of_other_trials_serves_all_decisions() -> None:
    prior = prior_of_trials(at(3, 4), 5, sigma=1)
    assert prior.source == OTHER_TRIALS
    assert prior.fold.tolist() == [0] * 5
    assert prior.densities[0] == pytest.approx(gaze_density(at(3, 4), sigma=BLURS[OTHER_TRIALS]))


def write_trials(folder: Path, **points: str) -> Path:
    meta = [FLAT_META, *(f"Breakout,{name[1:]},RZ,4,1.0" for name in points)]
    (folder / "meta_data.csv").write_text("\n".join(meta) + "\n")
    for key, gaze in points.items():
        name = f"{key[1:]}_RZ_42_x"
        rows = [label_row(n, gaze) for n in range(1, 5)]
        (folder / f"{name}.txt").write_text(label_text(rows) if gaze else "")
        (folder / f"{name}.tar.bz2").write_bytes(tar_bytes(frame_files(range(1, 5), name)))
    return folder


def test_other_gaze_is_that_of_all_other_trials_on_every_labelled_frame(tmp_path: Path) -> None:
    write_trials(tmp_path, t1="10.00,20.00", t2="30.00,40.00", t3="50.00,60.00,900.00,1.00")
    refs = find_trials(tmp_path, "breakout")
    others = OtherGaze(refs, SETTINGS)
    for ref, expected in zip(
        refs, ([[40, 30], [60, 50]], [[20, 10], [60, 50]], [[20, 10], [40, 30]]), strict=True
    ):
        counts = others.without(ref)
        assert counts is not None
        assert np.argwhere(counts).tolist() == expected
        assert counts[tuple(expected[0])] == 4


def test_a_single_trial_and_broken_ones_beside_it_have_no_other_gaze(tmp_path: Path) -> None:
    write_trials(tmp_path, t1="10.00,20.00", t2="")
    refs = find_trials(tmp_path, "breakout")
    assert OtherGaze(refs, SETTINGS).without(refs[0]) is None
    assert OtherGaze(refs[:1], SETTINGS).without(refs[0]) is None
    assert OtherGaze(refs, SETTINGS).without(refs[1]) is not None
