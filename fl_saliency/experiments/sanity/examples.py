"""The picture that everyone knows of parameter randomisation: maps that change, or do not."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.experiments.sanity.checks import Findings
from fl_saliency.experiments.sanity.figures import new_figure

__all__ = ["examples_figure"]


def examples_figure(findings: Findings, screen: UInt8Array, frame: UInt8Array) -> Figure:
    """A row a method: its map of one state, trained, and after each stage of the cascade.

    screen RGB uint8 [H, W, 3] and frame uint8 [84, 84] (the newest) are of that state. Each map is
    drawn from 0 to its own largest value.
    """
    cascade = [f.stage for f in findings.stages if f.stage.kind == "cascading"]
    columns = {"trained": "trained", **{s.name: f"+ {s.layer}" for s in cascade}}
    names = findings.names
    size = (1.15 * (len(columns) + 1) + 1, 1.25 * len(names) + 1)
    figure = new_figure(*size)
    axes = figure.subplots(len(names), len(columns) + 1, squeeze=False)
    for row, name in enumerate(names):
        _show_state(axes[row, 0], (screen, frame)[row] if row < 2 else None, row)
        axes[row, 0].set_ylabel(name.replace("_", "\n"), rotation=0, ha="right", va="center")
        for place, (stage, label) in zip(axes[row, 1:], columns.items(), strict=True):
            _show_map(place, findings.examples[stage][name])
            if row == 0:
                place.set_title(label, fontsize="medium")
    figure.suptitle(
        f"State {findings.example + 1} of {findings.states} (the middle one, not a chosen one): "
        "maps as layers are re-drawn, from the output down"
    )
    return figure


def _show_state(axes: Axes, picture: UInt8Array | None, row: int) -> None:
    if picture is None:  # the place is kept, for the method's name beside it
        axes.spines[:].set_visible(False)
    else:
        axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axes.set_title({0: "screen", 1: "input"}.get(row, ""), fontsize="medium")
    _bare(axes)


def _show_map(axes: Axes, grid: FloatArray) -> None:
    low, high = 0.0, float(grid.max())
    axes.imshow(grid, cmap="inferno", vmin=low, vmax=high if high > 0 else 1)
    if np.ptp(grid) == 0:
        axes.annotate("constant", (0.5, 0.5), xycoords="axes fraction", color="white", ha="center")
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
