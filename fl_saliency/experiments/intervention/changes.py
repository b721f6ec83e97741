"""How far two branches differ, decision by decision: policy, value and saliency maps."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import FloatArray
from fl_saliency.experiments.intervention.branches import Branches, BranchStep
from fl_saliency.metrics.policy import policy_kl

__all__ = [
    "MapChange",
    "Maps",
    "StepChange",
    "compare",
    "first_difference",
    "map_change",
]

Maps = Mapping[str, FloatArray]
"""Saliency method -> its map of each decision of a branch, float32 [T, 84, 84], >= 0."""


@dataclass(frozen=True, kw_only=True)
class MapChange:
    """How far two maps differ."""

    one_minus_r: float | None
    """1 - Pearson's r over the pixels, 0 to 2; None if a map is constant."""
    l1: float | None
    """Sum of absolute differences of the maps, each summing to 1: 0 to 2; None if one is all 0."""


@dataclass(frozen=True, kw_only=True)
class StepChange:
    """How far the branches differ at one decision that both have."""

    sees_difference: bool
    """Whether the observations differ."""
    kl: float
    """KL(original policy || intervened policy), nats."""
    value_change: float
    """Intervened value minus original value."""
    maps: dict[str, MapChange]


def compare(branches: Branches, original: Maps, intervened: Maps) -> list[StepChange]:
    """The changes at each decision that both branches have."""
    pairs = zip(branches.original.steps, branches.intervened.steps, strict=False)
    return [
        _step_change(
            before, after, {name: (original[name][i], intervened[name][i]) for name in original}
        )
        for i, (before, after) in enumerate(pairs)
    ]


def first_difference(changes: list[StepChange]) -> int | None:
    """The first decision, counted from the branching one, at which the observations differ."""
    return next((i for i, change in enumerate(changes) if change.sees_difference), None)


def map_change(before: FloatArray, after: FloatArray) -> MapChange:
    """How far maps [H, W], >= 0, of any scale, differ."""
    first, second = (np.asarray(grid, np.float64).ravel() for grid in (before, after))
    totals = first.sum(), second.sum()
    l1 = np.abs(first / totals[0] - second / totals[1]).sum() if min(totals) > 0 else None
    return MapChange(one_minus_r=_one_minus_r(first, second), l1=None if l1 is None else float(l1))


def _one_minus_r(first: FloatArray, second: FloatArray) -> float | None:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    if np.array_equal(first, second):
        return 0.0
    units = [grid - grid.mean() for grid in (first, second)]
    r = np.dot(*units) / np.sqrt(np.dot(units[0], units[0]) * np.dot(units[1], units[1]))
    return float(np.clip(1.0 - r, 0.0, 2.0))


def _step_change(
    before: BranchStep, after: BranchStep, maps: dict[str, tuple[FloatArray, FloatArray]]
) -> StepChange:
    return StepChange(
        sees_difference=not np.array_equal(before.observation, after.observation),
        kl=float(policy_kl(before.scores, after.scores)),
        value_change=after.value - before.value,
        maps={name: map_change(*pair) for name, pair in maps.items()},
    )
