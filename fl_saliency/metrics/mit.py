"""The `mit` convention: metrics of the MIT/Tuebingen benchmark, defined on every finite map.

Sources: Bylinskii et al. 2016 (arXiv 1604.03605) as pysaliency computes it, shuffled AUC of Borji
et al. 2012, information gain of Kümmerer et al. 2015. A constant map scores chance; None stands
only where nothing can be scored: no fixation, or a map that is not finite. Every fixation counts,
also a second one on the same pixel. Blurred fixations are those of `blur_fixations`, so a Gaussian
mirrored at the border, while the benchmark's own repeats the border pixel.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fl_saliency.base import FloatArray, IntArray
from fl_saliency.metrics.distribution import blur_fixations
from fl_saliency.metrics.fixation import (
    Fixations,
    FixationsLike,
    as_fixations,
    auc,
    check_shape,
)
from fl_saliency.metrics.paper import why_undefined

__all__ = [
    "EPS",
    "MIT_METRICS",
    "MitScorer",
    "MitScores",
    "auc_judd",
    "cc",
    "information_gain",
    "mit_kl",
    "mit_nss",
    "mit_sauc",
    "score_sequence_mit",
    "sim",
]

EPS = 2.2204e-16
"""MIT_KLDiv's constant; here also the floor of the densities of information gain."""

MIT_METRICS = ("nss", "kldiv", "sauc", "auc_judd", "cc", "sim", "ig")


@dataclass(frozen=True, kw_only=True, eq=False)
class MitScores:
    """Metrics of T frames, each float64 [T] with NaN where undefined, and why it is."""

    nss: FloatArray
    kldiv: FloatArray
    """MIT_KLDiv of the blurred fixations from the map, nats; lower is better."""
    sauc: FloatArray
    """Negatives: all fixations of all other frames."""
    auc_judd: FloatArray
    """Negatives: all pixels."""
    cc: FloatArray
    sim: FloatArray
    ig: FloatArray
    """Bits per fixation over the baseline."""
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per metric: how many frames were dropped for which `DropReason`."""


def mit_nss(saliency: FloatArray, fixations: FixationsLike) -> float | None:
    """Mean z-score (population deviation) of the map at the fixations; 0 on a constant map.

    saliency [H, W], fixations [H, W] -> float, chance 0; None: no fixation, map not finite.
    """
    points = _scorable(saliency, fixations)
    return None if points is None else _nss(_z_scores(saliency), points)


def mit_kl(saliency: FloatArray, fixations: FixationsLike, *, sigma: float) -> float | None:
    """MIT_KLDiv: sum of P log(EPS + P / (Q + EPS)), P the blurred fixations, Q the map, in nats.

    saliency [H, W], shifted up if below 0, then made to sum to 1 (zeros become uniform); fixations
    [H, W]; sigma in pixels -> float >= 0 up to H * W * EPS, lower is better; None: no fixation,
    map not finite. Zeros of the map under gaze cost about 36 nats each, by their share of P.
    """
    points = _scorable(saliency, fixations)
    if points is None:
        return None
    return _kl(_density(saliency), blur_fixations(points, sigma=sigma))


def auc_judd(saliency: FloatArray, fixations: FixationsLike) -> float | None:
    """ROC AUC of the map at the fixations against all pixels, fixated ones too; ties count 1/2.

    saliency [H, W], fixations [H, W] -> float in 0..1, chance and constant map 0.5;
    None: no fixation, map not finite. It is pysaliency's `AUC(nonfixations="uniform")`.
    """
    points = _scorable(saliency, fixations)
    if points is None:
        return None
    values = saliency.ravel()
    return float(auc(values[points.pixels], values))


def mit_sauc(saliency: FloatArray, fixations: FixationsLike, others: FixationsLike) -> float | None:
    """Shuffled AUC, exact: each fixation against each fixation of `others`; ties count 1/2.

    saliency, fixations, others [H, W] -> float in 0..1, chance and constant map 0.5; None: no
    fixation here or in the others, map not finite.
    """
    points, background = _scorable(saliency, fixations), as_fixations(others)
    check_shape("others", background.shape, saliency.shape)
    if points is None or not background.total:
        return None
    values = saliency.ravel()
    return float(_aucs(values, points, background.counts().reshape(1, -1))[0])


def cc(saliency: FloatArray, fixations: FixationsLike, *, sigma: float) -> float | None:
    """Pearson's correlation of the map and the blurred fixations; 0 where either is constant.

    saliency [H, W], fixations [H, W], sigma in pixels -> float in -1..1; None: no fixation, map
    not finite.
    """
    points = _scorable(saliency, fixations)
    if points is None:
        return None
    return _cc(_z_scores(saliency), blur_fixations(points, sigma=sigma))


def sim(saliency: FloatArray, fixations: FixationsLike, *, sigma: float) -> float | None:
    """Similarity: the mass that the map and the blurred fixations share, both summing to 1.

    saliency [H, W], a density as in `mit_kl`; fixations [H, W]; sigma in pixels -> float in 0..1;
    None: no fixation, map not finite.
    """
    points = _scorable(saliency, fixations)
    if points is None:
        return None
    return _sim(_density(saliency), blur_fixations(points, sigma=sigma))


def information_gain(
    saliency: FloatArray, fixations: FixationsLike, *, baseline: FloatArray
) -> float | None:
    """Mean over the fixations of log2 p(map) - log2 p(baseline): bits per fixation.

    saliency, baseline, fixations [H, W] -> float, 0 for the baseline itself; None: no fixation,
    map not finite. p: shifted up if below 0, made to sum to 1 (zeros become uniform), EPS added to
    every pixel, made to sum to 1 again. So a fixation where the map is 0 counts as -52 bits less
    the baseline's. ValueError: a baseline that is not finite, below 0 anywhere or 0 everywhere.
    """
    prior = _log2_baseline(baseline)
    points = _scorable(saliency, fixations)
    check_shape("baseline", prior.shape, saliency.shape)
    return None if points is None else _gain(_density(saliency), points, prior)


class MitScorer:
    """Scores the maps of a sequence of T frames one after another."""

    def __init__(
        self,
        fixations: Sequence[Fixations],
        *,
        sigma: float,
        baseline: FloatArray,
        fold: IntArray | None = None,
    ) -> None:
        """See `score_sequence_mit`."""
        self._frames = [as_fixations(points) for points in fixations]
        self._priors, self._folds = _priors(baseline, fold, len(self._frames))
        self._everyone = _total_counts(self._frames, self._priors[0].shape)
        self._sigma = sigma
        self._frame = 0
        self._values = np.full((len(MIT_METRICS), len(self._frames)), np.nan)
        self._reasons: dict[str, Counter[str]] = {name: Counter() for name in MIT_METRICS}

    def add(self, saliency: FloatArray) -> None:
        """Score the next frame's map [H, W]; ValueError if there is no further frame."""
        frame = self._frame
        if frame == len(self._frames):
            raise ValueError(f"more maps than the {frame} frames")
        self._frame += 1
        points = self._frames[frame]
        check_shape("saliency", saliency.shape, points.shape)
        blocked = why_undefined(saliency, points)
        if blocked:
            for counter in self._reasons.values():
                counter[blocked] += 1
            return
        others = self._everyone - points.counts()
        self._reasons["sauc"]["no_other_fixation"] += not others.any()
        prior = self._priors[self._folds[frame]]
        self._values[:, frame] = _score(saliency, points, others, self._sigma, prior)

    def scores(self) -> MitScores:
        """The scores of all frames; ValueError if a map is missing."""
        if self._frame != len(self._frames):
            raise ValueError(f"{self._frame} maps of {len(self._frames)} frames")
        dropped = {name: dict(+counter) for name, counter in self._reasons.items()}
        return MitScores(**dict(zip(MIT_METRICS, self._values, strict=True)), dropped=dropped)


def score_sequence_mit(
    maps: Iterable[FloatArray],
    fixations: Sequence[Fixations],
    *,
    sigma: float,
    baseline: FloatArray,
    fold: IntArray | None = None,
) -> MitScores:
    """Score T maps [H, W], drawn one at a time, against the T frames' fixations.

    sigma: blur of the fixations for KL, CC and SIM, pixels. baseline [H, W]: density that
    information gain is over, above 0 where anyone looks; from other trials, for it to be fair.
    Several baselines [K, H, W] need `fold`, int [T]: which of them is a frame's.
    Raises ValueError if there are not as many maps as frames, or shapes differ.
    """
    scorer = MitScorer(fixations, sigma=sigma, baseline=baseline, fold=fold)
    for saliency in maps:
        scorer.add(saliency)
    return scorer.scores()


def _score(
    saliency: FloatArray, points: Fixations, others: IntArray, sigma: float, prior: FloatArray
) -> tuple[float, ...]:
    """All metrics of one frame in the order of `MIT_METRICS`; what they share is done once."""
    gaze = blur_fixations(points, sigma=sigma)
    density, z_scores = _density(saliency), _z_scores(saliency)
    weights = np.stack([others.ravel(), np.ones(others.size, others.dtype)])
    sauc, judd = _aucs(saliency.ravel(), points, weights)
    return (
        _nss(z_scores, points),
        _kl(density, gaze),
        float(sauc),
        float(judd),
        _cc(z_scores, gaze),
        _sim(density, gaze),
        _gain(density, points, prior),
    )


def _priors(
    baseline: FloatArray, fold: IntArray | None, frames: int
) -> tuple[list[FloatArray], IntArray]:
    """log2 densities of the baselines, and which of them is each frame's, int [frames]."""
    if fold is None:
        return [_log2_baseline(baseline)], np.zeros(frames, np.int64)
    if np.ndim(baseline) != 3 or np.shape(fold) != (frames,):
        raise ValueError(
            f"baseline {np.shape(baseline)}, fold {np.shape(fold)}: "
            f"expected [K, H, W] and ({frames},)"
        )
    return [_log2_baseline(density) for density in baseline], fold


def _scorable(saliency: FloatArray, fixations: FixationsLike) -> Fixations | None:
    """The fixations, or None where no metric is defined."""
    points = as_fixations(fixations)
    check_shape("saliency", saliency.shape, points.shape)
    return None if why_undefined(saliency, points) else points


def _total_counts(frames: Sequence[Fixations], shape: tuple[int, ...]) -> IntArray:
    """Fixations of all frames per pixel, int64 [H, W]."""
    total = np.zeros(shape, np.int64)
    for points in frames:
        check_shape("fixations", points.shape, shape)
        total += points.counts()
    return total


def _unit(saliency: FloatArray) -> FloatArray:
    """In float64, divided by its largest magnitude: sums neither overflow nor underflow.

    A constant map becomes 0, 1 or -1, whose mean is exact, so its deviation is exactly 0.
    """
    values = np.asarray(saliency, np.float64)
    largest = np.abs(values).max()
    return values / largest if largest else values


def _z_scores(saliency: FloatArray) -> FloatArray:
    """Mean 0, population deviation 1; zeros for a constant map."""
    values = _unit(saliency)
    centred = values - values.mean()
    spread = values.std()
    return np.asarray(centred / spread if spread else centred, np.float64)


def _density(saliency: FloatArray) -> FloatArray:
    """Shifted up if below 0, then made to sum to 1; uniform where that leaves only zeros."""
    values = _unit(saliency)
    values = values - min(0.0, float(values.min()))
    total = values.sum()
    return values / total if total else np.full(values.shape, 1 / values.size)


def _log2_density(density: FloatArray) -> FloatArray:
    """log2 of a density that has EPS added to every pixel and is made to sum to 1 again."""
    floored = density + EPS
    return np.asarray(np.log2(floored / floored.sum()), np.float64)


def _log2_baseline(baseline: FloatArray) -> FloatArray:
    """log2 density of a baseline [H, W]; ValueError where it is none."""
    values = np.asarray(baseline, np.float64)
    if values.ndim != 2 or not np.isfinite(values).all() or values.min() < 0 or not values.any():
        raise ValueError("baseline: expected a finite density [H, W] >= 0 that is not all zeros")
    return _log2_density(_density(values))


def _aucs(values: FloatArray, points: Fixations, weights: IntArray) -> FloatArray:
    """AUC of the fixations against all pixels, each counting `weights` times; ties count 1/2.

    values [N], weights [K, N] -> float64 [K], one AUC a row of weights; NaN where a row is all 0.
    One sort serves all rows.
    """
    order = np.argsort(values)
    below, up_to = (
        np.searchsorted(values[order], values[points.pixels], side=side)
        for side in ("left", "right")
    )
    mass = np.pad(np.cumsum(weights[:, order], axis=1), ((0, 0), (1, 0)))
    wins = 0.5 * (mass[:, below] + mass[:, up_to]).sum(axis=1)
    pairs = points.total * mass[:, -1]
    aucs = np.full(len(weights), np.nan)
    np.divide(wins, pairs, out=aucs, where=pairs > 0)
    return aucs


def _nss(z_scores: FloatArray, points: Fixations) -> float:
    return float(z_scores.ravel()[points.pixels].mean())


def _kl(density: FloatArray, gaze: FloatArray) -> float:
    return float((gaze * np.log(EPS + gaze / (density + EPS))).sum())


def _cc(z_scores: FloatArray, gaze: FloatArray) -> float:
    # Rounding can leave 1 + 1e-16 where both are the same.
    return float(np.clip((z_scores * _z_scores(gaze)).mean(), -1, 1))


def _sim(density: FloatArray, gaze: FloatArray) -> float:
    return min(1.0, float(np.minimum(density, gaze).sum()))


def _gain(density: FloatArray, points: Fixations, prior: FloatArray) -> float:
    gain = _log2_density(density) - prior
    return float(gain.ravel()[points.pixels].mean())
