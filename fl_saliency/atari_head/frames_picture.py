"""Frames that show how good and bad a method is: its best, median and worst one, with the gaze."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fl_saliency.atari_head.scores import Example, MethodScores, TrialScores
from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.render import palette

__all__ = ["frames_figure"]

_PLACES = {1: ("only",), 2: ("best", "worst"), 3: ("best", "median", "worst")}
"""What the frames of a method are, by their number."""
_DIM = 0.65
"""Brightness of the screen behind the map."""


def frames_figure(scores: Sequence[TrialScores], title: str) -> Figure:
    """A row for each of the agent's methods, on the first trial that keeps frames of them."""
    trial = next((each for each in scores if any(m.frames for m in each.methods)), scores[0])
    methods = [method for method in trial.methods if method.frames]
    figure = Figure(figsize=(8, 1.2 + 3.5 * max(1, len(methods))), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(
        f"{title}\ntrial {trial.ref.number}: where each method fits the gaze, and where it fails",
        fontsize="medium",
    )
    axes = figure.subplots(max(1, len(methods)), 3, squeeze=False)
    for panel in axes.flat:
        panel.set_axis_off()
    if not methods:
        axes[0, 1].text(0.5, 0.5, "no map of the agent has an NSS", ha="center")
    for row, method in zip(axes, methods, strict=False):
        _draw_method(row, method)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=2)
    return figure


def _draw_method(row: Sequence[Axes], method: MethodScores) -> None:
    for panel, place, example in zip(row, _PLACES[len(method.frames)], method.frames, strict=False):
        nss, sauc = (values[example.decision] for values in (method.paper.nss, method.paper.sauc))
        shown = "undefined" if np.isnan(sauc) else f"{sauc:.2f}"
        panel.set_title(
            f"{method.name}: {place}\nframe {example.frame_number}, NSS {nss:.2f}, sAUC {shown}",
            fontsize="small",
        )
        _draw(panel, example)


def _draw(axes: Axes, example: Example) -> None:
    """The map as light over the grey screen, with its 50 % contour, and the gaze."""
    light = example.saliency / example.saliency.max()
    axes.imshow(_lit(_grey(example.picture), light), interpolation="nearest")
    if light.min() < 0.5:
        axes.contour(light, levels=[0.5], colors=palette.YELLOW, linewidths=1)
    rows, columns = np.nonzero(example.fixations.counts())
    size = 26 if len(rows) < 50 else 9
    axes.scatter(
        columns, rows, s=size, color=palette.VERMILION, edgecolors="white", linewidths=size / 40
    )


def _grey(picture: UInt8Array) -> FloatArray:
    """[H, W] in 0..1 of [H, W, 3] RGB or [H, W]."""
    levels = picture if picture.ndim == 2 else picture @ np.array([0.299, 0.587, 0.114])
    return np.asarray(levels / 255)


def _lit(grey: FloatArray, light: FloatArray) -> FloatArray:
    """grey [H, W] dimmed, light [H, W] laid over it in the map's colour: RGB [H, W, 3] in 0..1."""
    alpha = 0.75 * light[..., None]
    return np.asarray(
        (1 - alpha) * _DIM * grey[..., None] + alpha * np.array(to_rgb(palette.YELLOW))
    )


def _legend() -> list[Line2D]:
    lit = Line2D([], [], color=palette.YELLOW, linewidth=5, label="map (line: 50 % of its maximum)")
    gaze = Line2D(
        [],
        [],
        color=palette.VERMILION,
        marker="o",
        markeredgecolor="grey",
        linestyle="",
        label="gaze on the frames that the agent saw",
    )
    return [lit, gaze]
