"""The picture of a comparison: every method's NSS and shuffled AUC, the agent's above baselines."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fl_saliency.atari_head.settings import BenchmarkSettings
from fl_saliency.render import palette

__all__ = ["methods_figure"]

_LOOKS = {
    "bound": (palette.GREEN, "D"),
    "agent": (palette.BLUE, "o"),
    "baseline": (palette.GREY, "s"),
}
"""Colour and marker of each kind, in the order of the groups."""
_KINDS = {
    "bound": "upper bound: other gaze of the same moment",
    "agent": "saliency methods",
    "baseline": "baselines, which know nothing of the agent",
}
_PANELS = (
    ("nss", "NSS (z-score at the gaze, higher is better)", 0.0),
    ("sauc", "shuffled AUC (higher is better)", 0.5),
)
"""Metric, label of its axis, its value at chance."""

Summary = Mapping[str, Any]


def methods_figure(methods: Sequence[Summary], settings: BenchmarkSettings, title: str) -> Figure:
    """A row for each of `methods` (as saliency.json has them): the mean and its 95 % interval."""
    rows = _sorted(methods)
    figure = Figure(figsize=(11, 2.2 + 0.42 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    for panel, (metric, label, chance) in zip(
        figure.subplots(1, 2, sharey=True), _PANELS, strict=True
    ):
        for place, row in enumerate(rows):
            _draw_row(panel, place, row, metric)
        panel.axvline(chance, color="black", linestyle="--", linewidth=1)
        panel.set_xlabel(f"{label}\ndashed: chance")
        panel.grid(visible=True, axis="x", alpha=0.3)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.margins(x=0.16)
    panel.set_yticks(range(len(rows)), [_label(row) for row in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    figure.legend(handles=_legend(rows), loc="outside lower center", ncols=3, fontsize="small")
    stage = "84x84 input" if settings.processed else "210x160 screen"
    figure.suptitle(
        f"{title}: saliency against gaze\n"
        f"({stage}, gaze alignment: {settings.alignment}, convention: paper; bars: 95 % interval "
        "of the mean)",
        fontsize="medium",
    )
    return figure


def _sorted(methods: Sequence[Summary]) -> list[Summary]:
    """By kind, then from the best NSS to the worst; undefined last."""

    def key(row: Summary) -> tuple[int, float]:
        mean = row["paper"]["nss"]["mean"]
        return list(_LOOKS).index(row["kind"]), float("inf") if mean is None else -mean

    return sorted(methods, key=key)


def _label(row: Summary) -> str:
    return row["name"] if row["target"] == "none" else f"{row['name']} ({row['target']})"


def _draw_row(axes: Axes, place: int, row: Summary, metric: str) -> None:
    figures = row["paper"][metric]
    colour, marker = _LOOKS[row["kind"]]
    mean = figures["mean"]
    if mean is None:
        text = "undefined (constant map)" if "constant_map" in figures["dropped"] else "undefined"
        axes.annotate(
            text,
            (0.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            **_text(colour),
        )
        return
    low, high = figures["interval95"] or (mean, mean)
    axes.plot((low, high), (place, place), color=colour, linewidth=3, alpha=0.5)
    axes.plot(mean, place, marker, color=colour, markersize=8)
    axes.annotate(
        f"{mean:.2f}",
        (max(high, mean), place),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        **_text(colour),
    )


def _text(colour: str) -> dict[str, Any]:
    """Small, on white: the line of chance must not cross a number."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    return {"color": colour, "fontsize": "small", "bbox": box}


def _legend(rows: Sequence[Summary]) -> list[Line2D]:
    present = {row["kind"] for row in rows}
    return [
        Line2D([], [], color=colour, marker=marker, linewidth=3, label=_KINDS[kind])
        for kind, (colour, marker) in _LOOKS.items()
        if kind in present
    ]
