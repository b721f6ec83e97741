"""Pictures of runs: the learning curve, whole-game returns over agent steps."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fl_saliency.base import atomic_path
from fl_saliency.experiments.runs import RunDir, game_name, read_config
from fl_saliency.logs.readers import read_monitors
from fl_saliency.render import palette

__all__ = ["WINDOW", "curve_figure", "mean_return", "plot_curve", "plot_returns"]

WINDOW = 100
"""Games in the running mean, as in the log's eprewmean."""


def plot_curve(source: Path | Sequence[Path], path: Path, *, title: str | None = None) -> None:
    """Draw the learning curve of `source`, a run directory or monitor files, to PNG file `path`.

    The title is `title`, or game, network and seed of the run directory. Written atomically.
    Raises `FileFormatError` for broken files; a run without a finished game gives a picture that
    says so.
    """
    if isinstance(source, Path):
        files = RunDir(source).monitors()
        heading = _run_title(source) if title is None else title
    else:
        files = list(source)
        heading = title or ""
    figure = curve_figure(read_monitors(files), heading)
    with atomic_path(path) as partial:
        figure.savefig(partial, format="png", dpi=120)


def _run_title(directory: Path) -> str:
    config = read_config(directory)
    seed = config.get("train_seed", directory.name)
    return f"{game_name(config['env_name'])}, {config['network']}, seed {seed}"


def mean_return(games: pd.DataFrame) -> pd.Series:
    """Mean of the last 100 returns (fewer at the start) after each game of `games`."""
    return games["r"].rolling(WINDOW, min_periods=1).mean()


def curve_figure(games: pd.DataFrame, title: str) -> Figure:
    """The learning curve of `games` (as `read_monitors` gives them)."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_xlabel("timesteps (agent steps)")
    axes.set_ylabel("whole-game return (raw score)")
    axes.set_title(title)
    axes.grid(visible=True, alpha=0.3)
    if games.empty:
        axes.text(0.5, 0.5, "no game has finished", ha="center", transform=axes.transAxes)
        return figure
    steps = games["steps"].to_numpy()
    axes.scatter(
        steps, games["r"], s=12, color=palette.SKY_BLUE, alpha=0.5, linewidths=0, label="one game"
    )
    axes.plot(
        steps,
        mean_return(games).to_numpy(),
        color=palette.VERMILION,
        label=f"mean of last {WINDOW} games",
    )
    axes.legend(loc="upper left")
    return figure


def plot_returns(returns: Sequence[float], path: Path, *, title: str) -> None:
    """Write a picture of whole-game `returns` (raw scores): a histogram with its mean."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel="whole-game return (raw score)", ylabel="games")
    axes.hist(list(returns), bins="auto", color=palette.SKY_BLUE)
    mean = sum(returns) / len(returns) if returns else float("nan")
    axes.axvline(mean, color=palette.VERMILION, label=f"mean {mean:.1f} of {len(returns)} games")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    with atomic_path(path) as partial:
        figure.savefig(partial, dpi=120)
