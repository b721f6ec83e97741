"""A whole directory: whether it is ours, what is in it, and what jobs left beside their files."""

from pathlib import Path

import numpy as np

from fl_saliency.errors import InputError
from fl_saliency.experiments.configs import PARTIAL, RESULT_FILES
from fl_saliency.experiments.doctor.evaluation import examine_evaluation
from fl_saliency.experiments.doctor.files import (
    COMPARISON_FILES,
    GAZE_FILES,
    GAZE_PARTIAL,
    LABORATORY_FILES,
    RUN_FILES,
    checked,
    names_in,
)
from fl_saliency.experiments.doctor.gaze import examine_gaze
from fl_saliency.experiments.doctor.laboratory import examine_laboratory
from fl_saliency.experiments.doctor.report import Finding, Report
from fl_saliency.experiments.doctor.run import examine_run
from fl_saliency.folders import LOCK, lock_owner

__all__ = ["check_directory", "examine"]


def check_directory(directory: Path) -> frozenset[str]:
    """The names in `directory`; `InputError` unless it is a folder with something of ours in it."""
    try:
        names = frozenset(path.name for path in directory.iterdir())
    except FileNotFoundError as error:
        raise InputError(f"{directory}: no such folder") from error
    except OSError as error:
        raise InputError(f"{directory}: cannot read it ({error.strerror})") from error
    results = (*RESULT_FILES, *GAZE_FILES, *LABORATORY_FILES)
    if names.isdisjoint((*RUN_FILES, *results, PARTIAL, GAZE_PARTIAL, LOCK)):
        below = [path for depth in ("*", "*/*") for path in directory.glob(f"{depth}/config.json")]
        hint = f"; did you mean {min(below).parent}?" if below else ""
        raise InputError(
            f"{directory}: expected a run directory (config.json, model.pkl) or results "
            f"(results.json, saliency.json), found neither{hint}"
        )
    return names


def examine(directory: Path) -> list[Finding]:
    """Everything that can be said of run directory or results folder `directory`, file by file.

    Modules that its config.json names are not imported: a user's own network must have been
    registered before. Raises `InputError` for a folder that is neither (see `check_directory`).
    """
    names = check_directory(directory)
    report = Report(directory=directory.absolute(), shown=directory, names=names)
    report.at_work = _examine_lock(report)
    with np.errstate(all="ignore"):
        if not names.isdisjoint(RUN_FILES):
            examine_run(report)
        else:
            report.ok(".", "a folder of results")
        examine_evaluation(report)
        examine_gaze(report)
        examine_laboratory(report)
    _note_leftovers(report)
    return report.findings()


def _examine_lock(report: Report) -> bool:
    """Whether a job holds the folder; says which, or that one was killed in it."""
    if LOCK not in report.names:
        return False
    with report.reading(LOCK) as path:
        if owner := lock_owner(checked(path).parent):
            report.note(LOCK, f"being written now: {owner}")
            return True
        report.note(LOCK, "left by a job that was killed; harmless")
    return False


def _note_leftovers(report: Report) -> None:
    """Files under temporary names: a job was killed while it wrote them."""
    laboratory = [name for record, others in LABORATORY_FILES.items() for name in (record, *others)]
    known = (*RUN_FILES, "curve.png", *RESULT_FILES, *GAZE_FILES, *COMPARISON_FILES, *laboratory)
    hidden = [name for name in report.names if name.startswith(tuple(f".{n}." for n in known))]
    with report.reading("logs") as path:
        hidden += [f"logs/{name}" for name in names_in(path) if name.startswith(".progress.csv.")]
    if not report.at_work:
        for name in sorted(hidden):
            report.note(name, "left by a job that was killed; can be removed")
