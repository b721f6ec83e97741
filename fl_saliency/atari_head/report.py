"""Writes what a benchmark found: saliency.pkl (the original's format), .json, .csv and pictures."""

import csv
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fl_saliency.atari_head.averages import (
    STRETCH,
    method_summaries,
    overall,
    statistics,
    trial_method_summaries,
)
from fl_saliency.atari_head.frames_picture import frames_figure
from fl_saliency.atari_head.methods_picture import methods_figure
from fl_saliency.atari_head.picture import benchmark_figure
from fl_saliency.atari_head.prior import BLURS, FLOOR
from fl_saliency.atari_head.scores import MethodScores, SkippedTrial, TrialScores
from fl_saliency.atari_head.settings import GAZE_METHODS, BenchmarkSettings
from fl_saliency.atari_head.tracks import SHIFTS
from fl_saliency.base import FloatArray, atomic_path, write_json
from fl_saliency.metrics.mit import MIT_METRICS
from fl_saliency.metrics.paper import METRICS, OTHER_FRAMES, SPLITS

__all__ = [
    "COMPARISON_FILES",
    "CSV_COLUMNS",
    "METHOD_CSV_COLUMNS",
    "RESULT_FILES",
    "benchmark_summary",
    "pickled_records",
    "statistics",
    "write_report",
]

RESULT_FILES = ("saliency.pkl", "saliency.json", "saliency.csv", "saliency.png")
COMPARISON_FILES = ("saliency_methods.png", "saliency_frames.png")
"""Further files, unless attention alone is scored."""
CSV_COLUMNS = ("trial", "decision", "frame", "n_fixations", *METRICS)
METHOD_CSV_COLUMNS = (*CSV_COLUMNS[:4], "method", *METRICS, *(f"mit_{m}" for m in MIT_METRICS))
"""The columns unless attention alone is scored."""

_MEANING = {
    "nss": "z-score of the map at the fixations; higher is better, chance 0",
    "kldiv": "KL(blurred fixations || map), nats; lower is better, 0 if they are equal",
    "sauc": "AUC against fixations of other frames of the trial; higher is better, chance 0.5",
}
_MIT_MEANING = {
    "nss": _MEANING["nss"] + ", which a constant map gets",
    "kldiv": "MIT_KLDiv of the blurred fixations from the map, nats; lower is better",
    "sauc": "AUC against all fixations of all other decisions of the trial; chance 0.5",
    "auc_judd": "AUC against all pixels; higher is better, chance 0.5",
    "cc": "correlation with the blurred fixations; higher is better, chance 0",
    "sim": "mass shared with the blurred fixations; higher is better, 1 if they are equal",
    "ig": "bits per fixation that the map, as a density, gains over mean gaze; higher is better",
}


def benchmark_summary(
    scores: Sequence[TrialScores],
    skipped: Sequence[SkippedTrial],
    settings: BenchmarkSettings,
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """saliency.json: figures with all that they depend on; `provenance` is of the agent."""
    return {
        **provenance,
        "convention": "paper",
        "metrics": _MEANING,
        "gaze_alignment": settings.alignment,
        "observation": "processed" if settings.processed else "raw",
        "map_shape": settings.shape,
        "map": _map_summary(scores[0].methods[0]),
        "kl_sigma_pixels": settings.sigma,
        "sauc": {"seed": settings.seed, "splits": SPLITS, "other_frames": OTHER_FRAMES},
        "protocol": settings.protocol.as_dict(),
        "playback": "recorded frames; no no-op start and no FIRE, whatever the protocol says",
        "overall": _overall(scores),
        "trials": [_trial_summary(trial) for trial in scores],
        "skipped": [_skipped_summary(trial) for trial in skipped if not trial.absent],
        "absent": [trial.ref.number for trial in skipped if trial.absent],
        "comparison": _comparison_summary(settings),
        "methods": method_summaries(scores),
    }


def _map_summary(method: MethodScores) -> dict[str, str]:
    """What the maps of the first method are."""
    target = method.target
    if method.name == "attention":
        target = "the network's own attention layer, drawn by its receptive field"
    by = "mean" if method.name in GAZE_METHODS else "largest value of the trial"
    return {"source": method.name, "target": target, "normalisation": f"divided by the {by}"}


def _comparison_summary(settings: BenchmarkSettings) -> dict[str, Any]:
    """What the figures under `methods` depend on besides all that stands above them."""
    return {
        "paper": _MEANING,
        "mit": _MIT_MEANING,
        "options": asdict(settings.options),
        "action": "where a target is the action chosen: the agent's best one at each decision",
        "stage": "the network's 84x84 input; its maps are enlarged to the frame that is compared",
        "gaze_density": _gaze_densities(settings.sigma),
        "shifted": {"frames": SHIFTS, "meaning": "gaze of a frame earlier (-1) or later (+1)"},
        "interval95": f"of the mean: bootstrap over stretches of {STRETCH} consecutive decisions",
    }


def _gaze_densities(sigma: float) -> dict[str, Any]:
    """How the maps that are made of gaze are blurred, in pixels, and how much of them is even."""
    mean_gaze = {source: blur * sigma for source, blur in BLURS.items()}
    return {"human_sigma_pixels": sigma, "mean_gaze_sigma_pixels": mean_gaze, "even_part": FLOOR}


def _overall(scores: Sequence[TrialScores]) -> dict[str, Any]:
    """Statistics over the frames of all trials together."""
    decisions = sum(len(trial.frame_numbers) for trial in scores)
    figures = overall([trial.metrics for trial in scores], METRICS)
    return {"trials": len(scores), "decisions": decisions, "metrics": figures}


def _trial_summary(trial: TrialScores) -> dict[str, Any]:
    return {
        "trial_number": trial.ref.number,
        "name": trial.ref.name,
        "game": trial.ref.game,
        "subject": trial.ref.subject,
        "decisions": len(trial.frame_numbers),
        "fixations": int(trial.num_fixations.sum()),
        "metrics": overall([trial.metrics], METRICS),
        "audit": asdict(trial.audit),
        "mean_gaze": trial.prior,
        "methods": trial_method_summaries(trial),
    }


def _skipped_summary(trial: SkippedTrial) -> dict[str, Any]:
    return {"trial_number": trial.ref.number, "name": trial.ref.name, "reason": trial.reason}


def pickled_records(scores: Iterable[TrialScores]) -> bytes:
    """saliency.pkl: a list of OrderedDict(trial_number, metrics), readable by NumPy 1 and 2."""
    records = [
        OrderedDict(
            trial_number=trial.ref.number,
            metrics={name: np.array(getattr(trial.metrics, name)) for name in METRICS},
        )
        for trial in scores
    ]
    # NumPy 2 pickles under a module name that NumPy 1 does not know; both know the older one.
    new, old = b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"
    return pickle.dumps(records, protocol=3).replace(new, old)


def _plain_rows(trial: TrialScores) -> Iterator[list[Any]]:
    columns = [getattr(trial.metrics, name) for name in METRICS]
    for decision, values in enumerate(_cells(columns)):
        yield [*_place(trial, decision), int(trial.num_fixations[decision]), *values]


def _method_rows(trial: TrialScores) -> Iterator[list[Any]]:
    for each in trial.methods:
        columns = [getattr(each.paper, name) for name in METRICS]
        columns += [getattr(each.mit, name) for name in MIT_METRICS]
        for decision, values in enumerate(_cells(columns)):
            count = int(each.num_fixations[decision])
            yield [*_place(trial, decision), count, each.name, *values]


def _place(trial: TrialScores, decision: int) -> tuple[int, int, int]:
    return trial.ref.number, decision, int(trial.frame_numbers[decision])


def _cells(columns: Iterable[FloatArray]) -> Iterator[list[str]]:
    """Row after row of the columns, each float64 [T]; undefined values are empty."""
    for values in zip(*(column.tolist() for column in columns), strict=True):
        yield ["" if np.isnan(value) else repr(value) for value in values]


def _write_csv(path: Path, scores: Iterable[TrialScores], *, plain: bool) -> None:
    with atomic_path(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS if plain else METHOD_CSV_COLUMNS)
        for trial in scores:
            writer.writerows(_plain_rows(trial) if plain else _method_rows(trial))


def write_report(
    directory: Path,
    scores: Sequence[TrialScores],
    summary: Mapping[str, Any],
    settings: BenchmarkSettings,
) -> list[Path]:
    """Write `RESULT_FILES` into `directory`, each whole or not at all; `scores` is not empty.

    `summary` is their `benchmark_summary`. Unless attention alone was scored, `COMPARISON_FILES`
    are written too.
    """
    names = RESULT_FILES if settings.is_plain else (*RESULT_FILES, *COMPARISON_FILES)
    paths = [directory / name for name in names]
    title = f"{summary.get('network', 'attention')} on {settings.protocol.env_id}"
    figures = [benchmark_figure(scores, settings, title)]
    if not settings.is_plain:
        figures.append(methods_figure(summary["methods"], settings, title))
        figures.append(frames_figure(scores, title))
    with atomic_path(paths[0]) as partial:
        partial.write_bytes(pickled_records(scores))
    write_json(paths[1], summary)
    _write_csv(paths[2], scores, plain=settings.is_plain)
    for path, figure in zip(paths[3:], figures, strict=True):
        _save(path, figure)
    return paths


def _save(path: Path, figure: Figure) -> None:
    with atomic_path(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
