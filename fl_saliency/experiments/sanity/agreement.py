"""How far the methods agree: the mean rank correlation of each two methods' maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import FloatArray
from fl_saliency.experiments.sanity.bootstrap import Interval, interval
from fl_saliency.experiments.sanity.similarity import spearman

__all__ = ["AgreementFinding", "agreement"]


@dataclass(frozen=True, kw_only=True)
class AgreementFinding:
    """Spearman's correlation of every two methods' maps."""

    names: tuple[str, ...]
    pairs: Mapping[str, Mapping[str, Interval]]
    """Method -> another (or itself) -> mean over states."""
    with_others: Mapping[str, Interval]
    """Method, baselines aside -> mean correlation with the other ones."""
    ranks: Mapping[str, int | None]
    """Method, baselines aside -> place by that mean, 1 the highest; None where it is undefined."""


def agreement(
    maps: Mapping[str, FloatArray], baselines: Sequence[str], *, seed: int
) -> AgreementFinding:
    """From method -> maps [S, H, W] of the same states."""
    values: dict[tuple[str, str], FloatArray] = {}
    names = tuple(maps)
    for place, name in enumerate(names):
        for other in names[place:]:
            values[name, other] = values[other, name] = spearman(maps[name], maps[other])
    methods = [name for name in names if name not in baselines]
    others = {name: _with_others(name, methods, values, seed) for name in methods}
    return AgreementFinding(
        names=names,
        pairs={n: {o: interval(values[n, o], seed=seed) for o in names} for n in names},
        with_others=others,
        ranks=_ranks(others),
    )


def _with_others(
    name: str, methods: Sequence[str], values: Mapping[tuple[str, str], FloatArray], seed: int
) -> Interval:
    rows = [values[name, other] for other in methods if other != name]
    size = len(values[name, name])
    return interval(np.mean(rows, axis=0) if rows else np.full(size, np.nan), seed=seed)


def _ranks(means: Mapping[str, Interval]) -> dict[str, int | None]:
    found = sorted((m.mean for m in means.values() if m.mean is not None), reverse=True)
    return {n: None if m.mean is None else found.index(m.mean) + 1 for n, m in means.items()}
