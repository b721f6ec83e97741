"""Maps of several methods over recorded states, saved as they are computed: the job goes on."""

import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fl_saliency.base import Agent, FloatArray, strict_json, write_json
from fl_saliency.errors import FileFormatError, JobError
from fl_saliency.folders import check_same_job
from fl_saliency.playback.states import Moment, States, reserve
from fl_saliency.saliency.methods import SaliencyMethod
from fl_saliency.saliency.options import MAP_SHAPE

__all__ = ["MapJob", "Maps", "outputs"]

CHUNK = 32
"""States computed, and saved, at a time."""
_JOB = "job.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Maps:
    """A method's maps of T states."""

    name: str
    target: str
    maps: FloatArray
    """float32 [T, 84, 84] >= 0, of no fixed scale."""
    seconds: float
    """What computing them took, in this and earlier runs of the job."""


class MapJob:
    """A folder with recorded states and the maps computed so far."""

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        """`job` is what two runs must have in common for one to go on with the other's maps.

        Raises InputError if what is in `folder` is another job's.
        """
        self.folder = folder
        self._job = strict_json(dict(job))
        self._check()

    def _check(self) -> None:
        path = self.folder / _JOB
        if not path.exists():
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = None
        check_same_job(self.folder, before, self._job)

    def states(self, moments: Callable[[], Iterable[Moment]], count: int) -> States:
        """The states recorded before, or up to `count` of what `moments()` gives."""
        self.folder.mkdir(exist_ok=True)
        write_json(self.folder / _JOB, self._job)
        try:
            return States.open(self.folder)
        except FileFormatError:
            return States.record(self.folder, moments(), count)

    def maps(
        self,
        method: SaliencyMethod,
        states: States,
        *,
        progress: Callable[[int], object] = lambda number: None,
    ) -> Maps:
        """The maps of all `states`, going on behind those that are saved; `progress` counts states.

        Raises JobError for a map that is not finite, naming its state.
        """
        path = self._maps(method.name)
        done, seconds = self._reached(method.name)
        progress(done)
        mode = "r+" if done else "w+"
        maps = np.lib.format.open_memmap(
            path, mode=mode, dtype=np.float32, shape=(len(states), *MAP_SHAPE)
        )
        for batch in states.batches(CHUNK):
            if batch.start < done:
                continue
            begun = time.monotonic()
            found = _checked(method, states, batch)
            reserve(maps, batch.start, batch.stop)
            maps[batch] = found
            maps.flush()
            seconds += time.monotonic() - begun
            self._save(method.name, batch.stop, seconds)
            progress(batch.stop - batch.start)
        return Maps(
            name=method.name, target=method.target, maps=np.load(path, "r"), seconds=seconds
        )

    def _reached(self, name: str) -> tuple[int, float]:
        try:
            reached = json.loads(self._progress(name).read_text(encoding="utf-8"))
            return int(reached["states"]), float(reached["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0.0

    def _save(self, name: str, states: int, seconds: float) -> None:
        write_json(self._progress(name), {"states": states, "seconds": seconds})

    def discard(self, name: str) -> None:
        """Give up a method's maps, which are needed no more."""
        self._maps(name).unlink(missing_ok=True)
        self._progress(name).unlink(missing_ok=True)

    def _maps(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def _progress(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def remove(self) -> None:
        """The job is done: nothing of this is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _checked(method: SaliencyMethod, states: States, batch: slice) -> FloatArray:
    maps = method.maps(np.asarray(states.observations[batch]), np.asarray(states.actions[batch]))
    for row in np.flatnonzero(~np.isfinite(maps).all(axis=(1, 2))):
        raise JobError(
            f"method {method.name!r}: the map of state {batch.start + row} is not finite"
        )
    return maps


def outputs(agent: Agent, states: States) -> tuple[FloatArray, FloatArray]:
    """What the agent says in each state: scores float32 [T, actions] and values float32 [T]."""
    scores, values = [], []
    for batch in states.batches(256):
        obs = np.asarray(states.observations[batch])
        scores.append(agent.scores(obs))
        values.append(agent.value(obs))
    return np.concatenate(scores), np.concatenate(values)
