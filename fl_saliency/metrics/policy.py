"""Policies beside each other: probabilities of logits, and how far two policies differ."""

import numpy as np
from scipy.special import log_softmax

from fl_saliency.base import FloatArray

__all__ = ["log_policy", "policy_kl"]


def log_policy(scores: FloatArray) -> FloatArray:
    """Logits [..., A] -> log-probabilities, float64 [..., A]."""
    return np.asarray(log_softmax(np.asarray(scores, np.float64), axis=-1))


def policy_kl(scores: FloatArray, others: FloatArray) -> FloatArray:
    """KL(softmax(scores) || softmax(others)) of logits [..., A], nats, float64 [...], >= 0."""
    first, second = log_policy(scores), log_policy(others)
    # Rounding can leave -1e-17 where both are the same.
    return np.asarray(np.maximum(0, (np.exp(first) * (first - second)).sum(axis=-1)))
