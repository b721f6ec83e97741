"""The picture of an intervention: both branches step by step, what differs, policy and value."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from fl_saliency.base import BoolArray, FloatArray, UInt8Array
from fl_saliency.experiments.intervention.branches import Branch, Branches
from fl_saliency.experiments.intervention.changes import Maps, StepChange
from fl_saliency.experiments.intervention.edits import Edits, Region
from fl_saliency.render import palette
from fl_saliency.render.overlay import normalise, upscale

__all__ = ["COLUMNS", "Film", "filmstrip"]

COLUMNS = 8
"""Decisions that are shown as pictures; of more, some at even distances."""


_NAMES = ("original", "intervened")
_COLOURS = (palette.BLUE, palette.VERMILION)
_FADED = 0.35
_SMALL = 7


@dataclass(frozen=True, kw_only=True)
class Film:
    """What the picture shows."""

    title: str
    at: int
    """Number of the branching decision."""
    edits: Edits
    keep: bool
    """Whether the edits of the picture stay."""
    branches: Branches
    maps: tuple[Maps, Maps]
    """Of the original and of the intervened branch."""
    changes: Sequence[StepChange]
    action_names: Sequence[str]

    @property
    def both(self) -> tuple[Branch, Branch]:
        """The branches in the order of the rows."""
        return self.branches.original, self.branches.intervened

    @property
    def length(self) -> int:
        """Decisions of the longer branch."""
        return max(len(branch.steps) for branch in self.both)

    @property
    def columns(self) -> list[int]:
        """The decisions that are shown as pictures, counted from the branching one."""
        count = min(COLUMNS, self.length)
        return [int(step) for step in np.linspace(0, self.length - 1, count).round()]


def filmstrip(film: Film) -> Figure:
    """Rows: original, intervened and difference (once a method), policies, value and KL."""
    columns = film.columns
    methods: list[str | None] = [*film.maps[0]] or [None]
    rows = 3 * len(methods)
    heights = [2.45 * rows + 2.1, 2.3]
    width = max(8.0, 1.0 + 1.55 * len(columns))
    figure = Figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    halves = figure.add_gridspec(2, 1, height_ratios=heights)
    strip, curves = figure.add_subfigure(halves[0]), figure.add_subfigure(halves[1])
    grid = strip.add_gridspec(rows + 1, len(columns), height_ratios=[2.45] * rows + [1.5])
    for block, method in enumerate(methods):
        _draw_block(strip, grid, 3 * block, film, method)
    for place, step in enumerate(columns):
        _draw_policies(strip.add_subplot(grid[rows, place]), film, step, is_first=place == 0)
    legend = _legend(has_maps=bool(film.maps[0]))
    strip.legend(handles=legend, loc="outside lower center", ncols=6, fontsize="small")
    _draw_curves(curves, film)
    figure.suptitle(film.title, fontsize="medium")
    return figure


def _draw_block(
    figure: SubFigure, grid: GridSpec, top: int, film: Film, method: str | None
) -> None:
    """The three rows of one method, or of the bare screens."""
    what = "screens" if method is None else method
    labels = [f"{name}\n{what}" for name in _NAMES] + [f"difference\n{_scale(film, method)}"]
    rows = [[_lit(film, row, method, step) for step in film.columns] for row in range(len(_NAMES))]
    rows.append(_differences(film, method))
    for row, (pictures, label) in enumerate(zip(rows, labels, strict=True)):
        for place, (step, picture) in enumerate(zip(film.columns, pictures, strict=True)):
            axes = figure.add_subplot(grid[top + row, place])
            _show(axes, picture)
            _label(axes, is_left=place == 0, is_low=row == 2, text=label)
            if row == 2:
                _head_of_difference(axes, film, method, step)
            else:
                _head(axes, film, row, step)
            if row == 1 and picture is not None:
                _mark(axes, film, step)


def _show(axes: Axes, picture: UInt8Array | None) -> None:
    if picture is None:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "the game\nis over", ha="center", transform=axes.transAxes)
    else:
        axes.imshow(picture, interpolation="nearest")


def _label(axes: Axes, *, is_left: bool, is_low: bool, text: str) -> None:
    """Coordinates along the outer edges, in the pixels in which regions are named."""
    axes.tick_params(labelsize=_SMALL, labelleft=is_left, labelbottom=is_low)
    axes.set_xticks([0, 50, 100, 150])
    axes.set_yticks([0, 50, 100, 150, 200])
    if is_left:
        axes.set_ylabel(f"{text}\ny (pixels)", fontsize="small")
    if is_low:
        axes.set_xlabel("x (pixels)", fontsize="small")


def _head(axes: Axes, film: Film, row: int, step: int) -> None:
    """Decision, action, value and what followed, above a picture."""
    branch = film.both[row]
    lines = [f"decision {film.at + step}"] if row == 0 else []
    if step < len(branch.steps):
        found = branch.steps[step]
        lines.append(f"{film.action_names[found.action]}, V {found.value:.3f}")
        after = [f"reward {found.reward:+g}"] if found.reward else []
        after += [found.end.replace("_", " ")] if found.end else []
        lines += [", ".join(after)] if after else []
    axes.set_title("\n".join(lines), fontsize=_SMALL + 1, color=_COLOURS[row])


def _head_of_difference(axes: Axes, film: Film, method: str | None, step: int) -> None:
    if step >= len(film.changes):
        return
    change = film.changes[step]
    if not change.sees_difference:
        text = "sees the same"
    elif method is None:
        text = "sees a difference"
    else:
        r = change.maps[method].one_minus_r
        text = "1 - r undefined" if r is None else f"1 - r {r:.2g}"
    axes.set_title(text, fontsize=_SMALL + 1)


def _mark(axes: Axes, film: Film, step: int) -> None:
    """Frames around what was changed in the picture that the agent was shown."""
    if step and not film.keep:
        return
    for region in film.edits.masks:
        _frame(axes, region, "-")
    for move in film.edits.moves:
        _frame(axes, move.region, ":")
        _frame(axes, move.target, "-")
        ends = (_centre(move.region), _centre(move.target))
        axes.add_patch(FancyArrowPatch(*ends, color="white", arrowstyle="->", mutation_scale=8))


def _frame(axes: Axes, region: Region, style: str) -> None:
    corner = (region.x - 0.5, region.y - 0.5)
    axes.add_patch(
        Rectangle(
            corner, region.width, region.height, fill=False, edgecolor="white", linestyle=style
        )
    )


def _centre(region: Region) -> tuple[float, float]:
    return region.x + region.width / 2 - 0.5, region.y + region.height / 2 - 0.5


def _lit(film: Film, row: int, method: str | None, step: int) -> UInt8Array | None:
    """The screen of one branch, yellow where its map is high; None after the game's end."""
    steps = film.both[row].steps
    if step >= len(steps):
        return None
    screen = steps[step].screen
    if method is None:
        return screen
    highest = max(float(maps[method].max(initial=0)) for maps in film.maps)
    weight = 0.75 * upscale(normalise(film.maps[row][method][step], highest), screen.shape[:2])
    return _mixed(screen, palette.YELLOW, weight)


def _differences(film: Film, method: str | None) -> list[UInt8Array | None]:
    """Faded screens, white where they differ, and in colour where a map has more or less."""
    shown: list[UInt8Array | None] = []
    scale = _largest_difference(film, method)
    for step in film.columns:
        if step >= len(film.changes):
            shown.append(None)
            continue
        before, after = (branch.steps[step].screen for branch in film.both)
        picture = _faded(after)
        picture[_thick((before != after).any(axis=-1))] = 255
        if method is not None:
            change = normalise(_share_change(film, method, step), scale)
            weight = upscale(change, after.shape[:2])
            picture = _mixed(picture, palette.VERMILION, 0.85 * weight.clip(0, 1))
            picture = _mixed(picture, palette.SKY_BLUE, 0.85 * (-weight).clip(0, 1))
        shown.append(picture)
    return shown


def _largest_difference(film: Film, method: str | None) -> float:
    if method is None:
        return 0.0
    steps = range(len(film.changes))
    return max(float(np.abs(_share_change(film, method, step)).max()) for step in steps)


def _scale(film: Film, method: str | None) -> str:
    """What the full colour of a method's differences stands for."""
    if method is None:
        return "of the screens"
    peak = max(
        float(_share(maps[method][step]).max())
        for maps, branch in zip(film.maps, film.both, strict=True)
        for step in range(len(branch.steps))
    )
    part = 100 * _largest_difference(film, method) / (peak or 1.0)
    return f"{method}\nfull colour: {part:.2g} %\nof its peak"


def _share(grid: FloatArray) -> FloatArray:
    """A map that sums to 1, or is all 0, float64."""
    levels = np.asarray(grid, np.float64)
    return np.asarray(levels / (levels.sum() or 1.0))


def _share_change(film: Film, method: str, step: int) -> FloatArray:
    """Intervened map less original map, each summing to 1 (or all 0), float64 [84, 84]."""
    before, after = (_share(maps[method][step]) for maps in film.maps)
    return np.asarray(after - before)


def _faded(screen: UInt8Array) -> UInt8Array:
    grey = cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY) * _FADED
    return np.repeat(grey.astype(np.uint8)[..., None], 3, axis=-1)


def _thick(mask: BoolArray) -> BoolArray:
    """`mask` [H, W] with its neighbours: a ball of a few pixels would not be seen."""
    return np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0)


def _mixed(picture: UInt8Array, colour: str, weight: FloatArray) -> UInt8Array:
    """`picture` [H, W, 3] drawn towards `colour` by `weight` [H, W], 0 to 1."""
    share, levels = weight[..., None], 255 * np.array(to_rgb(colour))
    return np.rint(picture * (1 - share) + levels * share).astype(np.uint8)


def _draw_policies(axes: Axes, film: Film, step: int, *, is_first: bool) -> None:
    """The policies of both branches as bars; the action that was played has a full colour."""
    for row, branch in enumerate(film.both):
        if step >= len(branch.steps):
            continue
        found = branch.steps[step]
        places = np.arange(len(found.policy)) + 0.4 * (row - 0.5)
        bars = axes.bar(places, found.policy, width=0.4, color=_COLOURS[row], alpha=0.45)
        bars[found.action].set_alpha(1.0)
    axes.set_ylim(0, 1)
    axes.set_xticks(range(len(film.action_names)), film.action_names, rotation=90, fontsize=_SMALL)
    axes.tick_params(axis="y", labelsize=_SMALL, labelleft=is_first)
    if step < len(film.changes):
        axes.set_title(f"KL {film.changes[step].kl:.2g}", fontsize=_SMALL + 1)
    if is_first:
        axes.set_ylabel("probability\n(full colour: played)", fontsize="small")


def _draw_curves(figure: SubFigure, film: Film) -> None:
    """Value and KL over all decisions."""
    values, divergence = figure.subplots(1, 2)
    for branch, name, colour, mark in zip(film.both, _NAMES, _COLOURS, "os", strict=True):
        steps = range(film.at, film.at + len(branch.steps))
        points = [step.value for step in branch.steps]
        values.plot(steps, points, color=colour, marker=mark, markersize=4, label=name)
    values.set(xlabel="decision", ylabel="value V")
    values.legend(fontsize="small")
    steps = range(film.at, film.at + len(film.changes))
    divergence.bar(steps, [change.kl for change in film.changes], color=palette.GREY)
    divergence.set(xlabel="decision", ylabel="KL of the policies (nats)")
    for axes in (values, divergence):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(visible=True, alpha=0.3)


def _legend(*, has_maps: bool) -> list[Patch]:
    entries = list(zip(_COLOURS, _NAMES, strict=True))
    if has_maps:
        entries += [
            (palette.YELLOW, "map"),
            (palette.VERMILION, "more of the map here after the edit"),
            (palette.SKY_BLUE, "less"),
        ]
    entries.append(("white", "screens differ"))
    return [
        Patch(facecolor=colour, edgecolor=palette.GREY, label=label) for colour, label in entries
    ]
