"""How far two policies and two maps differ, on values computed by hand."""

import math

import numpy as np
import pytest

from fl_saliency.experiments.intervention.changes import map_change, policy_kl

RAMP = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_kl_is_that_of_the_first_policy_to_the_second():
    first, second = np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.25, 0.5])
    assert policy_kl(first + 7, second - 3) == pytest.approx(0.25 * math.log(2))
    first, second = np.log([0.9, 0.1]), np.log([0.5, 0.5])
    assert policy_kl(first, second) == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2))


def test_kl_is_nothing_for_equal_scores_and_finite_for_hopeless_actions():
    scores = np.array([1e4, 0.0, -1e4], np.float32)
    assert policy_kl(scores, scores) == 0
    assert policy_kl(scores, -scores) == pytest.approx(2e4)


def test_maps_that_differ_in_scale_alone_do_not_differ():
    change = map_change(RAMP, 3 * RAMP)
    assert change.one_minus_r == pytest.approx(0, abs=1e-12)
    assert change.l1 == pytest.approx(0, abs=1e-12)
    assert map_change(RAMP, RAMP).one_minus_r == 0


def test_opposite_and_disjoint_maps_are_two_apart():
    assert map_change(RAMP, 11 - RAMP).one_minus_r == pytest.approx(2)
    one, other = np.zeros((2, 2)), np.zeros((2, 2))
    one[0, 0], other[1, 1] = 3, 5
    assert map_change(one, other).l1 == pytest.approx(2)
    assert map_change(one, other).one_minus_r == pytest.approx(4 / 3)


def test_what_is_undefined_is_none():
    assert map_change(np.ones((3, 4)), RAMP).one_minus_r is None
    assert map_change(np.ones((3, 4)), RAMP).l1 is not None
    nothing = map_change(np.zeros((3, 4)), RAMP)
    assert nothing.one_minus_r is None
    assert nothing.l1 is None
