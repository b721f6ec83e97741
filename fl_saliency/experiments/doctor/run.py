"""A run directory: its model, how far the run has come, and whether all of it is there."""

import shlex
from collections.abc import Mapping

import numpy as np

from fl_saliency.base import FloatArray
from fl_saliency.checkpoints.baselines import adam_slots, match_variables, read_model
from fl_saliency.experiments.doctor.checkpoints import Saved, compare_sizes, examine_checkpoints
from fl_saliency.experiments.doctor.config import Expected, examine_config
from fl_saliency.experiments.doctor.logs import examine_logs
from fl_saliency.experiments.doctor.pictures import examine_picture
from fl_saliency.experiments.doctor.report import Report, count

__all__ = ["examine_run"]


def examine_run(report: Report) -> None:
    """Model, checkpoints and logs are whole, agree, and are complete if the run is finished."""
    expected = examine_config(report)
    weights = _examine_model(report, expected) if "model.pkl" in report.names else None
    saved = examine_checkpoints(report, expected)
    compare_sizes(report, saved)
    rows = examine_logs(report, expected, saved)
    examine_picture(report, "curve.png")
    if expected.settings is not None:
        _examine_end(report, expected, saved, rows)
        _compare_weights(report, expected, saved, weights)
    elif report.is_bad("config.json"):
        report.ok(".", "a run directory")
    else:
        report.ok(".", "a run directory of the published layout")
        if "model.pkl" not in report.names:
            report.bad("model.pkl", "missing")


def _examine_model(report: Report, expected: Expected) -> dict[str, FloatArray] | None:
    """The weights in model.pkl, if they are those of the network."""
    with report.reading("model.pkl") as path:
        model = read_model(path)
        if expected.variables is None:
            report.ok("model.pkl", f"{count(len(model.arrays), 'array')} of a network not known")
            return None
        matched = match_variables(model, expected.variables, path)
        weights: dict[str, FloatArray] = {name: matched[name] for name, _ in expected.variables}
        size = sum(array.size for array in weights.values())
        text = f"{count(len(weights), 'variable')}, {count(size, 'parameter')}"
        if adam_slots(matched) is None:
            report.note("model.pkl", f"{text}, without the optimizer's state")
        else:
            report.ok("model.pkl", f"{text}, with the optimizer's state")
        return weights
    return None


def _compare_weights(
    report: Report,
    expected: Expected,
    saved: Saved,
    weights: Mapping[str, FloatArray] | None,
) -> None:
    """model.pkl of a finished run is what its last checkpoint holds."""
    state = saved.state
    if weights is None or state is None or state.update != expected.updates or report.at_work:
        return
    if any(not np.array_equal(weights[name], state.weights[name]) for name in weights):
        report.bad("model.pkl", f"not of the last update: other weights than at {state.update}")


def _examine_end(report: Report, expected: Expected, saved: Saved, rows: int | None) -> None:
    """How far the run has come, and whether what it leaves at its end is there."""
    total = expected.updates or 0
    # The last update may be logged and not yet saved: then the run is still to go on.
    done = rows if saved.last is None else saved.last
    if done is None and "logs" in report.names:
        report.note(".", "a run directory: its log does not say how far the run has come")
    elif done is None and "model.pkl" in report.names:
        report.note(".", "a run directory: the model alone, without logs and checkpoints")
    elif done is None or done < total:
        reached = max(done or 0, rows or 0)
        rest = " so far" if report.at_work else _next(report, expected, saved)
        report.note(".", f"a run directory: {reached} of {count(total, 'update')}{rest}")
    else:
        report.ok(".", f"a run directory: finished, {count(total, 'update')}")
        for name in ("model.pkl", "curve.png"):
            if name not in report.names and not report.at_work:
                report.bad(name, "missing, though the run is finished")


def _next(report: Report, expected: Expected, saved: Saved) -> str:
    """How an unfinished run can be finished."""
    if saved.state is None:
        return ", and no checkpoint from which it could go on"
    command = ["fls", "train", "--resume", "--output-dir", str(report.shown)]
    if expected.settings is not None and expected.settings.extra_import:
        command += ["--extra-import", *expected.settings.extra_import]
    return f"; {shlex.join(command)} goes on after update {saved.state.update}"
