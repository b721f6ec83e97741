import numpy as np
import pytest

from fl_saliency.atari_head.averages import STRETCH, mean_interval, statistics


def test_statistics_leave_undefined_frames_out() -> None:
    assert statistics(np.array([1.0, np.nan, 3.0])) == {"mean": 2.0, "std": 1.0, "n": 2}
    assert statistics(np.array([np.nan])) == {"mean": None, "std": None, "n": 0}


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    values = [np.random.default_rng(0).normal(1, 1, 20 * STRETCH)]
    low, high = mean_interval(values) or (0.0, 0.0)
    assert low < values[0].mean() < high
    assert high - low == pytest.approx(2 * 1.96 / np.sqrt(20 * STRETCH), rel=0.5)
    assert mean_interval(values) == (low, high)
    assert mean_interval(values, seed=1) != (low, high)


def test_what_stays_alike_for_long_is_less_sure_than_what_does_not() -> None:
    rng = np.random.default_rng(0)
    held = np.repeat(rng.normal(size=20), STRETCH)
    shuffled = rng.permutation(held)
    (low, high), (lower, higher) = mean_interval([held]) or (), mean_interval([shuffled]) or ()
    assert high - low > 2 * (higher - lower)


def test_undefined_decisions_play_no_part_in_the_interval() -> None:
    values = np.where(np.arange(6 * STRETCH) % 2, np.nan, 3.0)
    assert mean_interval([values]) == (3.0, 3.0)


@pytest.mark.parametrize(
    "values", [[], [np.zeros(0)], [np.ones(STRETCH)], [np.full(99, np.nan), np.ones(3)]]
)
def test_there_is_no_interval_of_a_single_stretch(values: list[np.ndarray]) -> None:
    assert mean_interval(values) is None
