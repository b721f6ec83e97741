"""Writes what a benchmark found: saliency.pkl (the original's format), .json, .csv and .png."""

import csv
import pickle
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fl_saliency.atari_head.benchmark import BenchmarkSettings, SkippedTrial, TrialScores
from fl_saliency.atari_head.picture import benchmark_figure
from fl_saliency.base import FloatArray, atomic_path, write_json
from fl_saliency.metrics.paper import METRICS, OTHER_FRAMES, SPLITS

__all__ = [
    "CSV_COLUMNS",
    "RESULT_FILES",
    "benchmark_summary",
    "pickled_records",
    "statistics",
    "write_report",
]

RESULT_FILES = ("saliency.pkl", "saliency.json", "saliency.csv", "saliency.png")
CSV_COLUMNS = ("trial", "decision", "frame", "n_fixations", *METRICS)

_MEANING = {
    "nss": "z-score of the map at the fixations; higher is better, chance 0",
    "kldiv": "KL(blurred fixations || map), nats; lower is better, 0 if they are equal",
    "sauc": "AUC against fixations of other frames of the trial; higher is better, chance 0.5",
}


def statistics(values: FloatArray) -> dict[str, float | int | None]:
    """Mean and population standard deviation of the finite `values`, and how many (n) there are."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return {"mean": None, "std": None, "n": 0}
    return {"mean": float(finite.mean()), "std": float(finite.std()), "n": finite.size}


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
        "map": {
            "source": "attention",
            "target": "the network's own attention layer, drawn by its receptive field",
            "normalisation": "divided by the largest value of the trial",
        },
        "kl_sigma_pixels": settings.sigma,
        "sauc": {"seed": settings.seed, "splits": SPLITS, "other_frames": OTHER_FRAMES},
        "protocol": settings.protocol.as_dict(),
        "playback": "recorded frames; no no-op start and no FIRE, whatever the protocol says",
        "overall": _overall(scores),
        "trials": [_trial_summary(trial) for trial in scores],
        "skipped": [_skipped_summary(trial) for trial in skipped if not trial.absent],
        "absent": [trial.ref.number for trial in skipped if trial.absent],
    }


def _overall(scores: Sequence[TrialScores]) -> dict[str, Any]:
    """Statistics over the frames of all trials together."""
    figures = {}
    for name in METRICS:
        values = [getattr(trial.metrics, name) for trial in scores]
        dropped: Counter[str] = Counter()
        for trial in scores:
            dropped.update(trial.metrics.dropped[name])
        figures[name] = statistics(np.concatenate(values)) | {"dropped": dict(dropped)}
    decisions = sum(len(trial.frame_numbers) for trial in scores)
    return {"trials": len(scores), "decisions": decisions, "metrics": figures}


def _trial_summary(trial: TrialScores) -> dict[str, Any]:
    return {
        "trial_number": trial.ref.number,
        "name": trial.ref.name,
        "game": trial.ref.game,
        "subject": trial.ref.subject,
        "decisions": len(trial.frame_numbers),
        "fixations": int(trial.num_fixations.sum()),
        "metrics": {
            name: statistics(getattr(trial.metrics, name))
            | {"dropped": trial.metrics.dropped[name]}
            for name in METRICS
        },
        "audit": asdict(trial.audit),
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


def _csv_rows(trial: TrialScores) -> Iterable[list[Any]]:
    columns = [getattr(trial.metrics, name).tolist() for name in METRICS]
    for decision, values in enumerate(zip(*columns, strict=True)):
        yield [
            trial.ref.number,
            decision,
            int(trial.frame_numbers[decision]),
            int(trial.num_fixations[decision]),
            *("" if np.isnan(value) else repr(value) for value in values),
        ]


def _write_csv(path: Path, scores: Iterable[TrialScores]) -> None:
    with atomic_path(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for trial in scores:
            writer.writerows(_csv_rows(trial))


def write_report(
    directory: Path,
    scores: Sequence[TrialScores],
    skipped: Sequence[SkippedTrial],
    settings: BenchmarkSettings,
    provenance: Mapping[str, Any],
) -> list[Path]:
    """Write `RESULT_FILES` into `directory`, each whole or not at all; `scores` is not empty."""
    paths = [directory / name for name in RESULT_FILES]
    title = f"{provenance.get('network', 'attention')} on {settings.protocol.env_id}"
    figure = benchmark_figure(scores, settings, title)
    with atomic_path(paths[0]) as partial:
        partial.write_bytes(pickled_records(scores))
    write_json(paths[1], benchmark_summary(scores, skipped, settings, provenance))
    _write_csv(paths[2], scores)
    with atomic_path(paths[3]) as partial:
        figure.savefig(partial, format="png", dpi=120)
    return paths
