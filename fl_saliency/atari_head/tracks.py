"""The maps of one method over a trial, and the gaze that they are scored against."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fl_saliency.atari_head.prior import GazePrior, gaze_density
from fl_saliency.atari_head.settings import HUMAN, MEAN_GAZE, BenchmarkSettings
from fl_saliency.base import Closing, FloatArray, IntArray, UInt8Array
from fl_saliency.metrics.fixation import Fixations
from fl_saliency.render.overlay import normalise, upscale
from fl_saliency.render.spool import ArraySpool
from fl_saliency.saliency.methods import SaliencyMethod

__all__ = ["SHIFTS", "MethodSpool", "Shifted", "Track", "gaze_track"]

SHIFTS = (-1, 1)
"""By how many frames gaze is shifted to see how much hangs on it: one earlier, one later."""

Shifted: TypeAlias = Mapping[int, Sequence[Fixations]]
"""The fixations of every decision, by shift; 0 stands for gaze as it is."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """What is scored: one method's maps over T decisions."""

    name: str
    target: str
    maps: Callable[[], Iterator[FloatArray]]
    """From the first decision on, one at a time: [H, W] over the compared frame, >= 0."""
    fixations: Shifted


class MethodSpool(Closing):
    """One method's cells over a trial, in a nameless file, and the largest value that they draw.

    Memory does not grow with the trial; the largest value normalises its maps.
    """

    def __init__(self, method: SaliencyMethod, scratch: Path | None) -> None:
        self.method = method
        self._spool = ArraySpool(scratch or Path(tempfile.gettempdir()))
        self._peak = 0.0

    def record(self, obs: UInt8Array, actions: IntArray) -> None:
        """Ask the method about obs uint8 [B, 84, 84, 4], in which `actions` int [B] were best."""
        cells = self.method.cells(obs, actions)
        drawn = self.method.draw(cells)
        finite = np.isfinite(drawn)
        self._peak = max(self._peak, float(drawn.max(where=finite, initial=0.0)))
        for each in cells:
            self._spool.append([each])

    def track(self, settings: BenchmarkSettings, fixations: Shifted) -> Track:
        """All that was recorded, as maps in 0..1 over the compared frame."""

        def maps() -> Iterator[FloatArray]:
            for (cells,) in self._spool:
                drawn = normalise(self.method.draw(cells[None]), self._peak)[0]
                yield drawn if settings.processed else upscale(drawn, settings.shape)

        return Track(
            name=self.method.name, target=self.method.target, maps=maps, fixations=fixations
        )

    def close(self) -> None:
        """Give the disk space back."""
        self._spool.close()


def gaze_track(
    name: str, prior: GazePrior, fixations: Shifted, settings: BenchmarkSettings
) -> Track:
    """The maps that are made of gaze: `mean_gaze` or `human`, scaled to a mean of 1."""
    if name == MEAN_GAZE:
        maps = prior.densities * prior.densities[0].size
        return Track(
            name=name,
            target="none",
            maps=lambda: (maps[fold] for fold in prior.fold),
            fixations=fixations,
        )
    if name != HUMAN:
        raise ValueError(f"{name!r}: expected a method that is made of gaze")
    return _human_track(fixations, settings)


def _human_track(fixations: Shifted, settings: BenchmarkSettings) -> Track:
    """A decision with one sample has no earlier half: it counts as one without gaze."""
    earlier = [_part(points, slice(None, points.total // 2)) for points in fixations[0]]
    later = {
        shift: [
            _part(points, slice(points.total // 2, None) if half.total else slice(0))
            for points, half in zip(frames, earlier, strict=True)
        ]
        for shift, frames in fixations.items()
    }

    def maps() -> Iterator[FloatArray]:
        for half in earlier:
            yield gaze_density(half.counts(), sigma=settings.sigma) * np.prod(settings.shape)

    return Track(name=HUMAN, target="none", maps=maps, fixations=later)


def _part(points: Fixations, part: slice) -> Fixations:
    """Some of the fixations, which stand in the order of time."""
    return Fixations(points.shape, points.pixels[part])
