"""How far two policies and two maps differ, on values computed by hand."""

import numpy as np
import pytest

from fl_saliency.experiments.intervention.changes import map_change

RAMP = np.arange(12, dtype=np.float32).reshape(3, 4)


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
