"""Means over decisions, and how sure they are: what is close in time is no separate evidence."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fl_saliency.atari_head.scores import MethodScores, TrialScores
from fl_saliency.atari_head.settings import kind_of
from fl_saliency.base import FloatArray
from fl_saliency.metrics.mit import MIT_METRICS, MitScores
from fl_saliency.metrics.paper import METRICS, SequenceScores

__all__ = [
    "STRETCH",
    "mean_interval",
    "method_summaries",
    "overall",
    "statistics",
    "trial_method_summaries",
]

STRETCH = 25
"""Consecutive decisions that count as one piece of evidence: 100 frames, 5 s of a recording."""
RESAMPLES = 1000


def statistics(values: FloatArray) -> dict[str, float | int | None]:
    """Mean and population standard deviation of the finite `values`, and how many (n) there are."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return {"mean": None, "std": None, "n": 0}
    return {"mean": float(finite.mean()), "std": float(finite.std()), "n": finite.size}


def mean_interval(values: Sequence[FloatArray], *, seed: int = 0) -> tuple[float, float] | None:
    """95 % interval of the mean of the finite values of all trials, each float64 [T].

    A bootstrap over stretches of 25 consecutive decisions, whose values are much alike (percentiles
    of 1000 resamples). None where fewer than two stretches have a value.
    """
    sums, counts = _stretches(values)
    if np.count_nonzero(counts) < 2:
        return None
    sums, counts = sums[counts > 0], counts[counts > 0]
    rng = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    for sample in range(RESAMPLES):
        drawn = rng.integers(len(sums), size=len(sums))
        means[sample] = sums[drawn].sum() / counts[drawn].sum()
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def _stretches(values: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the finite values in each stretch of each trial."""
    sums, counts = [np.zeros(0)], [np.zeros(0)]
    for trial in values:
        starts = np.arange(0, len(trial), STRETCH)
        if len(starts):
            finite = np.isfinite(trial)
            sums.append(np.add.reduceat(np.where(finite, trial, 0), starts))
            counts.append(np.add.reduceat(finite.astype(np.float64), starts))
    return np.concatenate(sums), np.concatenate(counts)


def overall(
    scores: Sequence[SequenceScores | MitScores], metrics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Statistics of each metric over the decisions of all trials together, and those dropped."""
    figures = {}
    for name in metrics:
        dropped: Counter[str] = Counter()
        for trial in scores:
            dropped.update(trial.dropped[name])
        values = np.concatenate([getattr(trial, name) for trial in scores])
        figures[name] = statistics(values) | {"dropped": dict(dropped)}
    return figures


def method_summaries(scores: Sequence[TrialScores]) -> list[dict[str, Any]]:
    """What saliency.json says of each method, over the decisions of all trials (at least one)."""
    return [
        _method_summary(each) for each in zip(*(trial.methods for trial in scores), strict=True)
    ]


def _method_summary(trials: Sequence[MethodScores]) -> dict[str, Any]:
    first = trials[0]
    shifts = {
        f"{shift:+d}": _means([trial.shifted[shift] for trial in trials]) for shift in first.shifted
    }
    return {
        "name": first.name,
        "kind": kind_of(first.name),
        "target": first.target,
        "decisions": sum(len(trial.num_fixations) for trial in trials),
        "fixations": sum(int(trial.num_fixations.sum()) for trial in trials),
        "paper": _with_intervals([trial.paper for trial in trials], METRICS),
        "mit": _with_intervals([trial.mit for trial in trials], MIT_METRICS),
        "shifted": shifts,
    }


def _with_intervals(
    scores: Sequence[SequenceScores | MitScores], metrics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    figures = overall(scores, metrics)
    for name in metrics:
        figures[name]["interval95"] = mean_interval([getattr(trial, name) for trial in scores])
    return figures


def _means(scores: Sequence[SequenceScores]) -> dict[str, float | None]:
    return {name: figures["mean"] for name, figures in overall(scores, METRICS).items()}


def trial_method_summaries(trial: TrialScores) -> list[dict[str, Any]]:
    """Each method's statistics on one trial."""
    return [
        {
            "name": each.name,
            "paper": overall([each.paper], METRICS),
            "mit": overall([each.mit], MIT_METRICS),
        }
        for each in trial.methods
    ]
