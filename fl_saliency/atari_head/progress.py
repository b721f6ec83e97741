"""Finished trials of an unfinished benchmark, each saved whole, so that they are scored once."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fl_saliency.atari_head.audit import TrialAudit
from fl_saliency.atari_head.benchmark import Example, TrialScores
from fl_saliency.atari_head.reader import TrialRef
from fl_saliency.base import strict_json
from fl_saliency.checkpoints.snapshots import (
    Snapshot,
    find_snapshots,
    read_snapshot,
    remove_leftovers,
    write_snapshot,
)
from fl_saliency.errors import FileFormatError, InputError
from fl_saliency.metrics.fixation import Fixations
from fl_saliency.metrics.paper import METRICS, SequenceScores

__all__ = ["TrialStore"]


class TrialStore:
    """A folder with a snapshot per scored trial, numbered by trial."""

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        """`job` is what two benchmarks must have in common to share scores."""
        self._folder = folder
        self._job = strict_json(dict(job))

    def find(self, refs: Sequence[TrialRef]) -> dict[int, TrialScores]:
        """The trials of `refs` that are scored; damaged ones are left out.

        Raises InputError if those that are there were scored under another job.
        """
        remove_leftovers(self._folder)
        by_number = {ref.number: ref for ref in refs}
        found = {}
        for path in find_snapshots(self._folder):
            try:
                snapshot = read_snapshot(path)
            except FileFormatError:
                continue  # it is scored again
            if snapshot.state.get("job") != self._job:
                raise InputError(
                    f"{self._folder}: an unfinished benchmark with other settings; "
                    "add --overwrite to begin anew, or give another --output-dir"
                )
            ref = by_number.get(snapshot.index)
            if ref is not None and snapshot.state.get("trial") == _identity(ref):
                found[ref.number] = _scores(snapshot, ref)
        return found

    def add(self, scores: TrialScores) -> None:
        """Save one scored trial."""
        example = scores.example
        arrays = {name: getattr(scores.metrics, name) for name in METRICS} | {
            "frame_numbers": scores.frame_numbers,
            "num_fixations": scores.num_fixations,
            "example/picture": example.picture,
            "example/saliency": example.saliency,
            "example/fixations": example.fixations.pixels,
        }
        state = {
            "job": self._job,
            "trial": _identity(scores.ref),
            "dropped": scores.metrics.dropped,
            "audit": strict_json(asdict(scores.audit)),
            "example": {
                "decision": int(example.decision),
                "frame_number": int(example.frame_number),
                "shape": list(example.fixations.shape),
            },
        }
        snapshot = Snapshot(index=scores.ref.number, arrays=arrays, state=state)
        write_snapshot(self._folder, snapshot, keep=len(find_snapshots(self._folder)) + 1)

    def remove(self) -> None:
        """The job is done: nothing of this is needed any more."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _identity(ref: TrialRef) -> dict[str, Any]:
    """What a trial is known by: its name and the sizes of its files."""
    return {"name": ref.name, "labels": _size(ref, ref.labels), "archive": _size(ref, ref.archive)}


def _size(ref: TrialRef, path: Path | None) -> int | None:
    place = ref.container or path
    return place.stat().st_size if place is not None and place.is_file() else None


def _scores(snapshot: Snapshot, ref: TrialRef) -> TrialScores:
    arrays, state = snapshot.arrays, snapshot.state
    try:
        example = state["example"]
        rows, columns = example["shape"]
        return TrialScores(
            ref=ref,
            metrics=SequenceScores(
                **{name: arrays[name] for name in METRICS}, dropped=state["dropped"]
            ),
            frame_numbers=arrays["frame_numbers"],
            num_fixations=arrays["num_fixations"],
            audit=TrialAudit(**state["audit"]),
            example=Example(
                decision=example["decision"],
                frame_number=example["frame_number"],
                picture=arrays["example/picture"],
                saliency=arrays["example/saliency"],
                fixations=Fixations((rows, columns), arrays["example/fixations"]),
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"snapshot of trial {ref.number}: not of a benchmark") from error
