"""Maps of several methods drawn over recorded states: a video, and a page of stills."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fl_saliency.base import FloatArray, UInt8Array, atomic_path
from fl_saliency.experiments.maps import Maps
from fl_saliency.playback.states import States
from fl_saliency.render import heat
from fl_saliency.render.heat import OverlayStyle
from fl_saliency.render.overlay import upscale
from fl_saliency.render.video import VideoWriter

__all__ = ["Overlays"]

_STILLS = 4
"""Rows of the page of stills."""


class Overlays:
    """Pictures of `states` with the `maps` of each method, scaled alike in all of them."""

    def __init__(
        self,
        states: States,
        maps: Sequence[Maps],
        captions: Callable[[int], str],
        style: OverlayStyle,
    ) -> None:
        """`captions` gives the text of a state: its action, value and score."""
        self._states = states
        self._maps = maps
        self._captions = captions
        self._style = style
        self._tint = heat.Tint(style)
        self._scales = {item.name: _scale(item.maps, states, style.smooth) for item in maps}

    def picture(self, state: int, item: Maps) -> UInt8Array:
        """The screen of `state` under a method's map, uint8 [H, W, 3]."""
        screen = np.asarray(self._states.screens[state])
        return self._tint(screen, self._shown(state, item, screen.shape[:2]))

    def _shown(self, state: int, item: Maps, shape: tuple[int, ...]) -> FloatArray:
        """A map in 0..1 over the screen, [H, W]."""
        smoothed = heat.smooth(np.asarray(item.maps[state : state + 1]), self._style.smooth)[0]
        unit = np.minimum(smoothed / self._scales[item.name], 1)
        return np.clip(upscale(unit, (shape[0], shape[1])), 0, 1)

    def video(self, path: Path, *, progress: Callable[[int], object] = lambda n: None) -> None:
        """Write an H.264 video of all states to `path`, whole or not at all (JobError)."""
        height, width, _ = self._frame(0).shape
        with VideoWriter(path, width, height, self._style.fps, "libx264") as writer:
            for state in range(len(self._states)):
                writer.add(self._frame(state))
                progress(1)

    def _frame(self, state: int) -> UInt8Array:
        pictures = {"screen": np.asarray(self._states.screens[state])}
        pictures |= {_title(item): self.picture(state, item) for item in self._maps}
        return heat.panels(pictures, [self._captions(state)])

    def stills(self, path: Path, title: str) -> None:
        """Write a page of states at equal distances, a row each, a column a method, as PNG."""
        # Not the first state: little has happened there.
        rows = np.linspace(0, len(self._states) - 1, _STILLS + 1).round().astype(int)[1:]
        rows = np.unique(rows)
        columns = len(self._maps) + 1
        figure = Figure(figsize=(1.9 * columns + 0.6, 2.75 * len(rows) + 0.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(rows), columns, squeeze=False)
        for line, state in zip(axes, rows.tolist(), strict=True):
            _show(line[0], np.asarray(self._states.screens[state]), "screen")
            line[0].set_ylabel(f"state {state}\n{self._captions(state)}".replace("  ", "\n"))
            for place, item in zip(line[1:], self._maps, strict=True):
                _show(place, self.picture(state, item), _title(item))
        figure.suptitle(title)
        with atomic_path(path) as partial:
            figure.savefig(partial, format="png", dpi=100)


def _title(item: Maps) -> str:
    return item.name if item.target == "none" else f"{item.name} of {item.target}"


def _scale(maps: FloatArray, states: States, sigma: float) -> float:
    """One scale for all maps of a method, from each state's largest value."""
    maxima = [heat.smooth(np.asarray(maps[b]), sigma).max(axis=(1, 2)) for b in states.batches(256)]
    return heat.fixed_scale(np.concatenate(maxima))


def _show(axes: Axes, picture: UInt8Array, title: str) -> None:
    axes.imshow(picture, interpolation="nearest")
    axes.set_title(title, fontsize="small")
    axes.set_xticks([])
    axes.set_yticks([])
