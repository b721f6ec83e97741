"""The picture of a benchmark: each metric's distribution per trial, and one frame with its gaze."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fl_saliency.atari_head.scores import Example, TrialScores
from fl_saliency.atari_head.settings import BenchmarkSettings
from fl_saliency.base import FloatArray
from fl_saliency.render import palette

__all__ = ["benchmark_figure"]


_PANELS = (
    ("nss", "NSS (z-score, higher is better)", 0.0),
    ("sauc", "shuffled AUC (higher is better)", 0.5),
    ("kldiv", "KL(gaze || map) (nats, lower is better)", None),
)
"""Metric, label of its axis, its value at chance."""
_LEVELS = (0.5, 0.7, 0.9)
"""Contours, as shares of the example's largest value."""


def benchmark_figure(
    scores: Sequence[TrialScores], settings: BenchmarkSettings, title: str
) -> Figure:
    """A box per metric and trial (middle half, median, 5 to 95 % whiskers), and an example."""
    figure = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2)
    for panel, (metric, label, chance) in zip(axes.flat, _PANELS, strict=False):
        values = [getattr(trial.metrics, metric) for trial in scores]
        _boxes(panel, values, [str(trial.ref.number) for trial in scores])
        panel.set_ylabel(label)
        if chance is not None:
            panel.axhline(chance, color=palette.GREY, linestyle="--", linewidth=1, label="chance")
            panel.legend(loc="upper right", fontsize="small")
    name = scores[0].methods[0].name
    _draw_example(axes[1, 1], scores[0].example, scores[0].ref.number, name)
    stage = "84x84 input" if settings.processed else "210x160 screen"
    figure.suptitle(f"{title}: {name} against gaze ({stage}, gaze alignment: {settings.alignment})")
    return figure


def _boxes(axes: Axes, values: Sequence[FloatArray], labels: Sequence[str]) -> None:
    finite = [row[np.isfinite(row)] for row in values]
    filled = [place for place, row in enumerate(finite) if row.size]
    if filled:
        axes.boxplot(
            [finite[place] for place in filled],
            positions=filled,
            widths=0.4,
            whis=(5, 95),
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": palette.SKY_BLUE, "alpha": 0.6},
            medianprops={"color": palette.VERMILION, "linewidth": 2},
        )
    else:
        axes.text(0.5, 0.5, "undefined on every frame", ha="center", transform=axes.transAxes)
    axes.set_xticks(range(len(labels)), labels, rotation=90 if len(labels) > 8 else 0)
    axes.set_xlim(-0.75, len(labels) - 0.25)
    axes.set_xlabel("trial (box: middle half of its frames; whiskers: 5 to 95 %)")
    axes.grid(visible=True, axis="y", alpha=0.3)


def _draw_example(axes: Axes, example: Example, trial: int, name: str) -> None:
    axes.imshow(example.picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    saliency = example.saliency
    contours = Line2D(
        [], [], color=palette.SKY_BLUE, label=f"{name}:\n50, 70, 90 %\nof its maximum"
    )
    if np.isfinite(saliency).all() and saliency.min() < 0.5 * saliency.max():
        levels = np.array(_LEVELS) * saliency.max()
        axes.contour(saliency, levels=levels, colors=palette.SKY_BLUE, linewidths=1.5)
    rows, columns = np.nonzero(example.fixations.counts())
    points = axes.scatter(
        columns,
        rows,
        s=16,
        color=palette.VERMILION,
        edgecolors="white",
        linewidths=0.4,
        label="gaze",
    )
    # Beside the picture: on it, the legend would hide the game. The panel is wider than the screen.
    axes.set_anchor("W")
    legend = axes.legend(
        handles=[contours, points], loc="upper left", bbox_to_anchor=(1, 1), fontsize="small"
    )
    legend.set_in_layout(False)
    axes.set_title(f"trial {trial}, frame {example.frame_number}", fontsize="medium")
    axes.set_xlabel("x (pixels)")
    axes.set_ylabel("y (pixels)")
