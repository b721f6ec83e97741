"""Results of a gaze score, finished or not."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fl_saliency.base import FloatArray
from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.doctor.files import (
    COMPARISON_FILES,
    GAZE_FILES,
    GAZE_PARTIAL,
    checked,
    examine_snapshots,
    read_json,
    require,
)
from fl_saliency.experiments.doctor.pictures import examine_picture
from fl_saliency.experiments.doctor.report import Report, count, is_close
from fl_saliency.logs.textfile import whole_lines
from fl_saliency.metrics.mit import MIT_METRICS
from fl_saliency.metrics.paper import METRICS

__all__ = ["examine_gaze"]

_GAZE_COLUMNS = ("trial", "decision", "frame", "n_fixations", *METRICS)
_METHOD_COLUMNS = (*_GAZE_COLUMNS[:4], "method", *METRICS, *(f"mit_{m}" for m in MIT_METRICS))
"""Where several methods are compared; saliency.pkl is of the first one."""

_Trials: TypeAlias = Sequence[tuple[int, Mapping[str, FloatArray]]]
"""Number and metrics of each trial."""


def examine_gaze(report: Report) -> None:
    """What `fls benchmark` or the original leaves, or what is saved of an unfinished one."""
    present = report.names.intersection(GAZE_FILES)
    if GAZE_PARTIAL in report.names:
        with report.reading(GAZE_PARTIAL):
            saved = count(len(examine_snapshots(report, GAZE_PARTIAL)), "scored trial")
            text = f"an unfinished benchmark: {saved} saved; the same command goes on"
            report.note(GAZE_PARTIAL, text)
    trials = _examine_trials(report) if "saliency.pkl" in present else None
    if "saliency.json" in present:
        _examine_summary(report, trials)
    if "saliency.csv" in present:
        _examine_table(report, trials)
    for name in ("saliency.png", *COMPARISON_FILES):
        examine_picture(report, name)
    # The original leaves saliency.pkl alone.
    if present - {"saliency.pkl"} and not (GAZE_PARTIAL in report.names or report.at_work):
        require(report, GAZE_FILES)


def _examine_trials(report: Report) -> _Trials | None:
    """The trials in saliency.pkl, if it is whole."""
    with report.reading("saliency.pkl") as path:
        records: Any = load_foreign(path)
        trials = [(record["trial_number"], _metrics(record["metrics"])) for record in records]
        total = sum(len(metrics[METRICS[0]]) for _, metrics in trials)
        text = f"{count(len(trials), 'trial')}, {count(total, 'decision')}"
        report.ok("saliency.pkl", text)
        return trials
    return None


def _metrics(values: Mapping[str, Any]) -> dict[str, FloatArray]:
    """A trial's metrics, float64 [T] each."""
    metrics: dict[str, FloatArray] = {
        name: np.asarray(values[name], np.float64) for name in METRICS
    }
    shapes = {array.shape for array in metrics.values()}
    if len(shapes) != 1 or any(len(shape) != 1 for shape in shapes):
        raise FileFormatError("metrics of different lengths")
    return metrics


def _examine_summary(report: Report, trials: _Trials | None) -> None:
    """saliency.json is strict, and its figures are those of saliency.pkl."""
    part = "saliency.json"
    with report.reading(part) as path:
        summary = read_json(path)
        found = summary["trials"]
        if trials is None:
            report.ok(part, count(len(found), "trial"))
            return
        if [trial["trial_number"] for trial in found] != [number for number, _ in trials]:
            raise FileFormatError("not the trials of saliency.pkl")
        for trial, (number, metrics) in zip(found, trials, strict=True):
            for name in METRICS:
                if not _is_summary(trial["metrics"][name], metrics[name]):
                    report.bad(part, f"trial {number}: {name} is not that of saliency.pkl")
        report.ok(part, "as saliency.pkl")


def _is_summary(figures: Mapping[str, Any], values: FloatArray) -> bool:
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if finite.size else None
    return figures["n"] == finite.size and is_close(figures["mean"], mean)


def _examine_table(report: Report, trials: _Trials | None) -> None:
    """saliency.csv has a row per decision, with the values of saliency.pkl."""
    part = "saliency.csv"
    with report.reading(part) as path:
        header, *rows = [tuple(row) for row in csv.reader(whole_lines(checked(path)))]
        if header == _METHOD_COLUMNS:
            rows = [(*row[:4], *row[5:8]) for row in rows if row[4:5] == rows[0][4:5]]
        elif header != _GAZE_COLUMNS:
            raise FileFormatError(f"line 1: expected {','.join(_GAZE_COLUMNS)}")
        if trials is None:
            report.ok(part, count(len(rows), "row"))
            return
        expected = [row for number, metrics in trials for row in _decisions(number, metrics)]
        for line, (row, wanted) in enumerate(zip(rows, expected, strict=False), start=2):
            if (row[:2], row[4:]) != wanted:
                raise FileFormatError(f"line {line}: not that of saliency.pkl")
        if len(rows) != len(expected):
            raise FileFormatError(f"{len(rows)} rows, saliency.pkl has {len(expected)} decisions")
        report.ok(part, "as saliency.pkl")


def _decisions(
    number: int, metrics: Mapping[str, FloatArray]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """A trial's rows in saliency.csv, without the columns that saliency.pkl does not have."""
    columns = zip(*(metrics[name].tolist() for name in METRICS), strict=True)
    for decision, values in enumerate(columns):
        shown = tuple("" if math.isnan(value) else repr(value) for value in values)
        yield (str(number), str(decision)), shown
