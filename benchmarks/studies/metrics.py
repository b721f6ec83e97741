"""Gaze metrics of a 210x160 frame: ours beside the original's way, and that both give the same.

The original's way: shuffled AUC by scikit-learn's roc_auc_score, one split after another, NSS by
NumPy over the whole map, KL by OpenCV's blur and SciPy's entropy. It takes fixations as a map of
counts, ours as points; each is given its own form, made before the clock starts.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cv2
import numpy as np
from scipy.stats import entropy
from sklearn.metrics import roc_auc_score

from benchmarks.harness import Settings, Table, in_turn, median
from fl_saliency.errors import JobError
from fl_saliency.metrics.distribution import kl_blurred_fixations_to_map
from fl_saliency.metrics.fixation import Fixations, nss, shuffled_auc
from fl_saliency.metrics.paper import OTHER_FRAMES, SEED, SPLITS

SHAPE = (210, 160)
SIGMA = 5.0
FIXATIONS = (20, 400)
"""A frame of a short trial, and one watched for long: the union of 8 frames' samples."""
TOLERANCE = 1e-9
"""Two ways of one metric may differ by rounding, not by more."""


@dataclass(frozen=True)
class Frame:
    """A map, its fixations and those of other frames, as points and as counts."""

    saliency: Any
    points: Fixations
    others: Fixations
    counts: Any
    other_counts: Any


def make_frames(number: int, fixations: int) -> list[Frame]:
    rng = np.random.default_rng(0)
    frames = []
    for _ in range(number):
        points, others = (
            Fixations(SHAPE, rng.integers(0, SHAPE[0] * SHAPE[1], count))
            for count in (fixations, OTHER_FRAMES * fixations)
        )
        saliency = rng.random(SHAPE) + 0.01
        frames.append(Frame(saliency, points, others, points.counts(), others.counts()))
    return frames


def plain_nss(frame: Frame) -> float:
    scores = (frame.saliency - frame.saliency.mean()) / frame.saliency.std()
    return float(np.repeat(scores.ravel(), frame.counts.ravel()).mean())


def plain_kl(frame: Frame) -> float:
    counts = frame.counts.astype(np.float64)
    blurred = cv2.GaussianBlur(counts, (0, 0), SIGMA, borderType=cv2.BORDER_REFLECT_101)
    return float(entropy(blurred.ravel(), frame.saliency.ravel()))


def plain_auc(frame: Frame) -> float:
    values = frame.saliency.ravel()
    positives = np.repeat(values, frame.counts.ravel())
    chances = frame.other_counts.ravel() / frame.other_counts.sum()
    draws = np.random.RandomState(SEED).choice(values.size, (SPLITS, positives.size), p=chances)
    labels = np.repeat([1, 0], positives.size)
    found = [roc_auc_score(labels, np.r_[positives, values[draw]]) for draw in draws]
    return float(np.mean(found))


Ways = Mapping[str, Callable[[Frame], float | None]]
OURS: Ways = {
    "NSS": lambda frame: nss(frame.saliency, frame.points),
    "KL": lambda frame: kl_blurred_fixations_to_map(frame.points, frame.saliency, sigma=SIGMA),
    "shuffled AUC": lambda frame: shuffled_auc(
        frame.saliency, frame.points, frame.others, splits=SPLITS, seed=SEED
    ),
}
PLAIN: Ways = {"NSS": plain_nss, "KL": plain_kl, "shuffled AUC": plain_auc}


def timed(ways: Ways, frames: Sequence[Frame], repeats: int) -> dict[str, Any]:
    """Milliseconds a frame of each metric and of all, and the values of each frame."""
    times, values = {}, {}
    for name, way in ways.items():
        started = time.perf_counter()
        for _ in range(repeats):
            values[name] = [way(frame) for frame in frames]
        times[name] = 1000 * (time.perf_counter() - started) / (repeats * len(frames))
    return {**times, "sum": sum(times.values()), "values": values}


def largest_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Over all frames and metrics; JobError if the two ways do not agree."""
    found = max(
        float(np.abs(np.subtract(one["values"][name], other["values"][name])).max())
        for name in OURS
    )
    if not found <= TOLERANCE:
        raise JobError(f"metrics: the two ways differ by {found}")
    return found


def measure(settings: Settings, fixations: int) -> tuple[list[list[Any]], dict[str, Any]]:
    """Two rows, ours and the original's way, and every single measurement."""
    frames = make_frames(settings.pick(10, 3), fixations)
    ours, plain = f"ours, {fixations} fixations", f"the original's way, {fixations} fixations"
    for ways in (OURS, PLAIN):
        timed(ways, frames[:1], 1)
    contenders = {
        ours: partial(timed, OURS, frames, settings.pick(10, 3)),
        plain: partial(timed, PLAIN, frames, 1),
    }
    runs, _ = in_turn(contenders, settings.rounds)
    difference = largest_difference(runs[ours][0], runs[plain][0])
    columns = [*OURS, "sum"]
    rows = []
    for name in (ours, plain):
        times = [median(runs[name], column) for column in columns]
        rows.append([name, *times, median(runs[plain], "sum") / times[-1]])
    figures = {name: [{key: run[key] for key in columns} for run in runs[name]] for name in runs}
    return rows, {**figures, f"largest difference, {fixations} fixations": difference}


def run(settings: Settings) -> list[Table]:
    rows: list[list[Any]] = []
    figures: dict[str, Any] = {}
    for fixations in FIXATIONS:
        new_rows, new_figures = measure(settings, fixations)
        rows += new_rows
        figures |= new_figures
    difference = max(value for name, value in figures.items() if name.startswith("largest"))
    table = Table(
        name="metrics",
        title=f"Gaze metrics, wall milliseconds per {SHAPE[0]}x{SHAPE[1]} frame",
        columns=["", "NSS", "KL", f"shuffled AUC, {SPLITS} splits", "sum", "times faster"],
        rows=rows,
        notes=[
            f"Both give the same values: the largest difference is {difference:.1g}. The "
            "original's way: scikit-learn's roc_auc_score split by split, NumPy, OpenCV's blur and "
            "SciPy's entropy."
        ],
        figures=figures,
    )
    return [table]
