"""The plots of a report: randomisation, insertion and deletion, parts, agreement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fl_saliency.experiments.sanity import BASELINES
from fl_saliency.experiments.sanity.bootstrap import Interval
from fl_saliency.experiments.sanity.checks import CELLS, Findings
from fl_saliency.experiments.sanity.parts import PARTS, PartsFinding
from fl_saliency.experiments.sanity.randomisation import Kind, StageFinding
from fl_saliency.experiments.sanity.verdicts import THRESHOLD
from fl_saliency.render import palette

__all__ = [
    "agreement_figure",
    "insertion_deletion_figure",
    "new_figure",
    "randomisation_figure",
    "zeroing_figure",
]

_COLOURS = (
    palette.BLUE,
    palette.VERMILION,
    palette.GREEN,
    palette.PURPLE,
    palette.ORANGE,
    palette.SKY_BLUE,
    palette.BLACK,
)
_MARKERS = "osD^vPX"
_GREYS = {"centre": (0, (5, 2)), "random": (0, (1, 2))}
_PART_LOOKS = {
    "high": (palette.VERMILION, "o"),
    "random": (palette.GREY, "x"),
    "low": (palette.BLUE, "s"),
}
_MEASURES = {
    "spearman": "Spearman's rank correlation",
    "spearman_nonzero": "the same, where not both are 0",
    "ssim": "SSIM",
    "hog": "Pearson's r of HOG features",
}
_KINDS = {"cascading": "one layer after the other", "independent": "each layer alone"}


@dataclass(frozen=True, kw_only=True)
class _Look:
    colour: str
    line: Any
    marker: str


def _looks(findings: Findings) -> dict[str, _Look]:
    """Method -> how it is drawn, in all plots alike; the baselines grey and broken."""
    looks = {
        name: _Look(
            colour=_COLOURS[place % len(_COLOURS)], line="-", marker=_MARKERS[place % len(_MARKERS)]
        )
        for place, name in enumerate(findings.methods)
    }
    return looks | {n: _Look(colour=palette.GREY, line=_GREYS[n], marker=".") for n in BASELINES}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that needs no display."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _legend(figure: Figure, looks: Mapping[str, _Look]) -> None:
    handles = [
        Line2D([], [], color=look.colour, linestyle=look.line, marker=look.marker, label=name)
        for name, look in looks.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(handles)))


def _error(found: Interval) -> tuple[float, list[list[float]]]:
    """The mean and the lengths of the bars below and above it; NaN where undefined."""
    mean = float("nan") if found.mean is None else found.mean
    low, high = (mean if end is None else end for end in (found.low, found.high))
    return mean, [[mean - low], [high - mean]]


# --- randomisation ---


def randomisation_figure(findings: Findings) -> Figure:
    """Similarity to the trained network's maps, stage by stage: a row a kind of stage."""
    figure = new_figure(14.5, 8.2)
    axes = figure.subplots(2, len(_MEASURES), squeeze=False, sharey=True)
    looks = _looks(findings)
    kinds: tuple[Kind, Kind] = ("cascading", "independent")
    for row, kind in zip(axes, kinds, strict=True):
        chosen = [finding for finding in findings.stages if finding.stage.kind == kind]
        for place, measure in zip(row, _MEASURES, strict=True):
            _similarity(place, chosen, measure, looks, kind)
        row[0].set_ylabel(f"{_KINDS[kind]}\nsimilarity to the trained network's map")
    for place, label in zip(axes[0], _MEASURES.values(), strict=True):
        place.set_title(label)
    figure.suptitle(
        "Parameter randomisation: a map that shows what was learned must change "
        f"(mean of {findings.states} states, 95 % interval)"
    )
    _legend(figure, looks)
    return figure


def _similarity(
    axes: Axes,
    chosen: Sequence[StageFinding],
    measure: str,
    looks: Mapping[str, _Look],
    kind: Kind,
) -> None:
    is_cascade = kind == "cascading"
    layers = [finding.stage.layer for finding in chosen]
    for number, (name, look) in enumerate(looks.items()):
        found = [_error(finding.methods[name][measure]) for finding in chosen]
        # Beside each other, so that intervals can be told apart.
        shift = (number - (len(looks) - 1) / 2) * (0.03 if is_cascade else 0.12)
        x, y = np.arange(1, len(found) + 1) + shift, [mean for mean, _ in found]
        bars = np.concatenate([bar for _, bar in found], axis=1)
        if is_cascade:
            x, y, bars = np.insert(x, 0, shift), [1.0, *y], np.insert(bars, 0, 0, axis=1)
        axes.errorbar(
            x,
            y,
            yerr=bars,
            color=look.colour,
            linestyle=look.line if is_cascade else "none",
            marker=look.marker,
            markersize=5,
            linewidth=1.5,
        )
    if is_cascade:
        axes.set_xticks(range(len(layers) + 1), ["trained", *(f"+ {name}" for name in layers)])
        axes.set_xlabel("re-drawn so far, from the output down")
        if measure == "spearman":
            axes.axhline(THRESHOLD, color="black", linewidth=0.8, linestyle=":")
            place = (len(layers) + 0.2, THRESHOLD - 0.02)
            axes.annotate("to pass, end below", place, ha="right", va="top", fontsize="small")
    else:
        axes.set_xticks(range(1, len(layers) + 1), layers)
        axes.set_xlabel("the one layer re-drawn")
    axes.tick_params(axis="x", rotation=30)
    axes.grid(axis="y", alpha=0.3)


# --- insertion and deletion ---


def insertion_deletion_figure(findings: Findings) -> Figure:
    """Curves of the logit and the probability, and how much better than a random order they are."""
    figure = new_figure(14, 8.6)
    axes = figure.subplots(2, 3, width_ratios=(1, 1, 0.8))
    looks = _looks(findings)
    better = {"deletion": "a faster fall is better", "insertion": "a faster rise is better"}
    for row, kind in zip(axes, better, strict=True):
        for place, number in zip(row, ("logit", "probability"), strict=False):
            _curves(place, findings, f"{kind}_{number}", looks)
            place.set_title(f"{kind}: {better[kind]}")
        row[0].set_ylabel("logit of the chosen action\n(0: all blurred, 1: whole picture)")
        row[1].set_ylabel("its probability\n(less that of the blurred picture)")
        _gains(row[2], findings, f"{kind}_logit", looks)
        row[2].set_title(f"{kind}: gain over a random order")
    figure.suptitle(
        "Insertion and deletion: do the pixels that a map ranks first decide what the agent does? "
        f"(mean of {findings.states} states, 95 % interval)"
    )
    _legend(figure, looks)
    return figure


def _curves(axes: Axes, findings: Findings, name: str, looks: Mapping[str, _Look]) -> None:
    for method, look in looks.items():
        found = findings.curves[name][method]
        share = 100 * np.asarray(found.share)
        axes.plot(share, found.mean, color=look.colour, linestyle=look.line)
        axes.fill_between(share, found.low, found.high, color=look.colour, alpha=0.12, linewidth=0)
    is_deletion = name.startswith("deletion")
    axes.set_xlabel(f"pixels {'blurred' if is_deletion else 'put in'}, % of the picture")
    axes.grid(alpha=0.3)


def _gains(axes: Axes, findings: Findings, name: str, looks: Mapping[str, _Look]) -> None:
    """Area under the logit's curve against that of a random order, a line a method."""
    shown = [method for method in findings.names if method != "random"]
    for place, method in enumerate(shown):
        mean, bars = _error(findings.curves[name][method].over_random)
        look = looks[method]
        axes.errorbar(mean, place, xerr=bars, color=look.colour, marker=look.marker, capsize=3)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel("gain in area; above 0 is better")
    axes.grid(axis="x", alpha=0.3)


# --- parts ---


def zeroing_figure(findings: Findings) -> Figure:
    """What the highest, the lowest and a random tenth of each map change when taken away."""
    names = list(findings.parts["logit"])
    figure = new_figure(13.5, 1.8 + 0.5 * len(names))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1, 0.8))
    labels = {
        "logit": "|change of the chosen action's logit|",
        "kl": "KL(policy || policy without the part), nats",
    }
    for place, (effect, label) in zip(axes, labels.items(), strict=False):
        for row, name in enumerate(names):
            _part_dots(place, row, findings.parts[effect][name])
        place.set_xlabel(label)
        place.set_xlim(left=0)
        place.xaxis.set_major_formatter(lambda value, tick: f"{value:.2g}")
        place.xaxis.set_major_locator(MaxNLocator(5))
    for row, name in enumerate(names):
        _ratio(axes[2], row, findings.parts["logit"][name].ratio)
    axes[2].axvline(1, color="black", linewidth=0.8)
    axes[2].set_xscale("log")
    axes[2].set_xlabel("highest / lowest tenth, logit")
    axes[0].set_yticks(range(len(names)), [_part_label(name) for name in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for place in axes:
        place.grid(axis="x", alpha=0.3)
    handles = [
        Line2D([], [], color=_PART_LOOKS[part][0], marker=_PART_LOOKS[part][1], label=label)
        for part, label in zip(
            ("high", "random", "low"),
            ("highest tenth of the map", "a tenth at random", "lowest tenth"),
            strict=True,
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    figure.suptitle(
        "High against low: does what a map ranks highest matter more than what it ranks lowest? "
        f"(mean of {findings.states} states, 95 % interval)"
    )
    return figure


def _part_label(name: str) -> str:
    return "attention, its cells\nset to 0" if name == CELLS else f"{name}, blurred"


def _part_dots(axes: Axes, row: int, found: PartsFinding) -> None:
    for part, shift in zip(PARTS, (-0.18, 0.18, 0), strict=True):
        mean, bars = _error(getattr(found, part))
        colour, marker = _PART_LOOKS[part]
        axes.errorbar(mean, row + shift, xerr=bars, color=colour, marker=marker, markersize=5)


def _ratio(axes: Axes, row: int, found: Interval) -> None:
    if found.mean is None:
        where = ("axes fraction", "data")
        axes.annotate("the lowest tenth changes nothing", (0.03, row), xycoords=where, va="center")
    elif found.mean > 0:
        # An end that is not known is left open.
        low, high = (found.mean if end is None else end for end in (found.low, found.high))
        bars = [[found.mean - low], [high - found.mean]]
        axes.errorbar(found.mean, row, xerr=bars, color="black", marker="o", capsize=3)


# --- agreement ---


def agreement_figure(findings: Findings) -> Figure:
    """A matrix of mean rank correlations, with their intervals."""
    names = findings.agreement.names
    size = 2.2 + 1.25 * len(names)
    figure = new_figure(size + 0.8, size)
    axes = figure.subplots()
    pairs = findings.agreement.pairs
    means = np.array([[_error(pairs[a][b])[0] for b in names] for a in names])
    image = axes.imshow(means, cmap="PuOr", vmin=-1, vmax=1)
    for row, first in enumerate(names):
        for column, second in enumerate(names):
            colour = "white" if abs(means[row, column]) > 0.6 else "black"
            axes.annotate(
                _cell(pairs[first][second], diagonal=row == column),
                (column, row),
                ha="center",
                va="center",
                color=colour,
            )
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), [_ranked(findings, name) for name in names])
    axes.set_title(
        "Agreement: mean Spearman correlation of the maps\n"
        f"({findings.states} states, 95 % interval)"
    )
    figure.colorbar(image, ax=axes, label="Spearman's rank correlation", shrink=0.8)
    return figure


def _cell(found: Interval, *, diagonal: bool) -> str:
    if found.mean is None:
        return "un-\ndefined"
    if diagonal or found.low is None or found.high is None:
        return f"{found.mean:.2f}"
    # Adding 0 makes a rounded -0.00 an ordinary 0.
    mean, low, high = (round(number, 2) + 0 for number in (found.mean, found.low, found.high))
    return f"{mean:.2f}\n[{low:.2f}, {high:.2f}]"


def _ranked(findings: Findings, name: str) -> str:
    rank = findings.agreement.ranks.get(name)
    return name if rank is None else f"{name}\nrank {rank}"
