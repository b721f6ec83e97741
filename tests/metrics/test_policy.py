"""How far two policies differ, on values computed by hand."""

import math

import numpy as np
import pytest

from fl_saliency.metrics.policy import policy_kl


def test_kl_is_that_of_the_first_policy_to_the_second():
    first, second = np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.25, 0.5])
    assert policy_kl(first + 7, second - 3) == pytest.approx(0.25 * math.log(2))
    first, second = np.log([0.9, 0.1]), np.log([0.5, 0.5])
    assert policy_kl(first, second) == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2))


def test_kl_is_nothing_for_equal_scores_and_finite_for_hopeless_actions():
    scores = np.array([1e4, 0.0, -1e4], np.float32)
    assert policy_kl(scores, scores) == 0
    assert policy_kl(scores, -scores) == pytest.approx(2e4)


def test_kl_of_batches_is_a_number_a_row():
    scores = np.random.default_rng(0).normal(size=(5, 3, 4))
    found = policy_kl(scores, scores[::-1])
    assert found.shape == (5, 3)
    assert found[1, 2] == policy_kl(scores[1, 2], scores[3, 2])
