"""Finished trials of an unfinished benchmark, each saved whole, so that they are scored once."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fl_saliency.atari_head.audit import TrialAudit
from fl_saliency.atari_head.reader import TrialRef
from fl_saliency.atari_head.scores import Example, MethodScores, TrialScores
from fl_saliency.base import FloatArray, strict_json
from fl_saliency.checkpoints.snapshots import (
    Snapshot,
    find_snapshots,
    read_snapshot,
    remove_leftovers,
    write_snapshot,
)
from fl_saliency.errors import FileFormatError
from fl_saliency.folders import check_same_job
from fl_saliency.metrics.fixation import Fixations
from fl_saliency.metrics.mit import MIT_METRICS, MitScores
from fl_saliency.metrics.paper import METRICS, SequenceScores

__all__ = ["TrialStore", "trial_files"]

Arrays: TypeAlias = Mapping[str, Any]
State: TypeAlias = Mapping[str, Any]
Dropped: TypeAlias = dict[str, dict[str, int]]


class TrialStore:
    """A folder with a snapshot per scored trial, numbered by trial."""

    def __init__(self, folder: Path, job: Mapping[str, Any], refs: Sequence[TrialRef]) -> None:
        """`job` is what two benchmarks must have in common to share scores.

        `refs` are all trials of this one: a trial's mean gaze is that of the others.
        """
        self._folder = folder
        self._job = strict_json(dict(job))
        self._refs = {ref.number: ref for ref in refs}
        self._files = {ref.number: trial_files(ref) for ref in refs if not ref.absent}

    def find(self) -> dict[int, TrialScores]:
        """The trials that are scored; damaged ones and those whose gaze differs are removed.

        Raises InputError if those that are there were scored under another job.
        """
        remove_leftovers(self._folder)
        found = {}
        for path in find_snapshots(self._folder):
            try:
                snapshot = read_snapshot(path)
            except FileFormatError:
                continue  # it is scored again
            check_same_job(self._folder, snapshot.state.get("job"), self._job)
            ref = self._refs.get(snapshot.index)
            if ref is not None and snapshot.state.get("trials") == self._identity(ref):
                found[ref.number] = _scores(snapshot, ref)
            else:
                shutil.rmtree(path)
        return found

    def add(self, scores: TrialScores) -> None:
        """Save one scored trial."""
        arrays: dict[str, Any] = {
            "frame_numbers": scores.frame_numbers,
            "num_fixations": scores.num_fixations,
        }
        state = {
            "job": self._job,
            "trials": self._identity(scores.ref),
            "prior": scores.prior,
            "audit": strict_json(asdict(scores.audit)),
            "example": _add_example(arrays, "example", scores.example),
            "methods": [_add_method(arrays, each) for each in scores.methods],
        }
        snapshot = Snapshot(index=scores.ref.number, arrays=arrays, state=state)
        write_snapshot(self._folder, snapshot, keep=len(find_snapshots(self._folder)) + 1)

    def remove(self) -> None:
        """The job is done: nothing of this is needed any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _identity(self, ref: TrialRef) -> dict[str, Any]:
        """What a trial's scores hang on: its own files, and those of the other trials' gaze."""
        others = {str(n): files for n, files in self._files.items() if n != ref.number}
        return {"own": trial_files(ref), "others": others}


def trial_files(ref: TrialRef) -> dict[str, Any]:
    """What a trial is known by: its name and the sizes of its files."""
    return {"name": ref.name, "labels": _size(ref, ref.labels), "archive": _size(ref, ref.archive)}


def _size(ref: TrialRef, path: Path | None) -> int | None:
    place = ref.container or path
    return place.stat().st_size if place is not None and place.is_file() else None


def _add_example(arrays: dict[str, Any], name: str, example: Example) -> dict[str, Any]:
    """Enter an example's arrays under `name`/; returns the rest of it."""
    arrays[f"{name}/picture"] = example.picture
    arrays[f"{name}/saliency"] = example.saliency
    arrays[f"{name}/fixations"] = example.fixations.pixels
    return {
        "decision": int(example.decision),
        "frame_number": int(example.frame_number),
        "shape": list(example.fixations.shape),
    }


def _example(arrays: Arrays, name: str, state: State) -> Example:
    rows, columns = state["shape"]
    return Example(
        decision=state["decision"],
        frame_number=state["frame_number"],
        picture=arrays[f"{name}/picture"],
        saliency=arrays[f"{name}/saliency"],
        fixations=Fixations((rows, columns), arrays[f"{name}/fixations"]),
    )


def _add_method(arrays: dict[str, Any], scores: MethodScores) -> dict[str, Any]:
    """Enter a method's arrays under its name; returns the rest of it."""
    name = scores.name
    arrays[f"{name}/num_fixations"] = scores.num_fixations
    return {
        "name": name,
        "target": scores.target,
        "paper": _add_scores(arrays, f"{name}/paper", scores.paper, METRICS),
        "mit": _add_scores(arrays, f"{name}/mit", scores.mit, MIT_METRICS),
        "shifted": {
            str(shift): _add_scores(arrays, f"{name}/shifted {shift}", each, METRICS)
            for shift, each in scores.shifted.items()
        },
        "frames": [
            _add_example(arrays, f"{name}/frames {place}", example)
            for place, example in enumerate(scores.frames)
        ],
    }


def _add_scores(
    arrays: dict[str, Any], name: str, scores: SequenceScores | MitScores, metrics: Sequence[str]
) -> dict[str, Any]:
    """Enter the metrics as float64 [M, T] under `name`; returns why values are missing."""
    arrays[name] = np.stack([getattr(scores, metric) for metric in metrics])
    return scores.dropped


def _method(arrays: Arrays, state: State) -> MethodScores:
    name = state["name"]

    def paper(key: str, dropped: Dropped) -> SequenceScores:
        return SequenceScores(**_by_name(METRICS, arrays[key]), dropped=dropped)

    return MethodScores(
        name=name,
        target=state["target"],
        num_fixations=arrays[f"{name}/num_fixations"],
        paper=paper(f"{name}/paper", state["paper"]),
        mit=MitScores(**_by_name(MIT_METRICS, arrays[f"{name}/mit"]), dropped=state["mit"]),
        shifted={
            int(shift): paper(f"{name}/shifted {shift}", dropped)
            for shift, dropped in state["shifted"].items()
        },
        frames=tuple(
            _example(arrays, f"{name}/frames {place}", each)
            for place, each in enumerate(state["frames"])
        ),
    )


def _by_name(metrics: Sequence[str], values: FloatArray) -> dict[str, FloatArray]:
    return dict(zip(metrics, values, strict=True))


def _scores(snapshot: Snapshot, ref: TrialRef) -> TrialScores:
    arrays, state = snapshot.arrays, snapshot.state
    try:
        return TrialScores(
            ref=ref,
            methods=tuple(_method(arrays, each) for each in state["methods"]),
            frame_numbers=arrays["frame_numbers"],
            num_fixations=arrays["num_fixations"],
            prior=state["prior"],
            audit=TrialAudit(**state["audit"]),
            example=_example(arrays, "example", state["example"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"snapshot of trial {ref.number}: not of a benchmark") from error
