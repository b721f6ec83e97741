"""What speed must not cost: returns of `cnn` and of SB3's PPO over the same number of timesteps.

Each trains once on Breakout (8 envs, seed 1). What is compared is the mean return of the last 100
games. Hours: ours goes on where it was if it is interrupted, SB3's run begins anew.
"""

import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.environments import environment
from benchmarks.harness import ROOT, THIS_PYTHON, Settings, Table, report, run_process
from fl_saliency.experiments.plots import mean_return
from fl_saliency.logs.readers import monitor_files, read_monitors
from fl_saliency.render import palette

GAME = "BreakoutNoFrameskip-v4"
SEED = 1
BATCH = 1024
SHOWN = 200
"""Rows of a curve in the committed file."""
CURVES = ROOT / "benchmarks" / "results" / "learning_curves.csv"
PICTURE = ROOT / "docs" / "images" / "learning.png"
COLOURS = (palette.VERMILION, palette.BLUE)


def run(settings: Settings) -> list[Table]:
    """Table `learning`, the curves and their picture."""
    timesteps = settings.pick(1_000_000, 4 * BATCH) // BATCH * BATCH
    work = ROOT / "out" / f"learning-{timesteps}"
    games = {
        "cnn": read_monitors(monitor_files(_ours(work / "ours", timesteps))),
        "SB3 PPO": read_monitors(monitor_files(_sb3(work / "sb3", timesteps, settings))),
    }
    curves = {name: curve(found, timesteps) for name, found in games.items()}
    if not settings.quick:
        parts = [table.assign(contender=name) for name, table in curves.items()]
        pd.concat(parts).round(3).to_csv(CURVES, index=False)
        picture(curves).savefig(PICTURE, dpi=120)
    rows: list[list[Any]] = [
        [name, timesteps, len(found), round(float(found["r"].tail(100).mean()), 1)]
        for name, found in games.items()
    ]
    return [
        Table(
            name="learning",
            title=f"Breakout, whole games, raw score, seed {SEED} each",
            columns=["", "timesteps", "games", "mean return of the last 100"],
            rows=rows,
        )
    ]


def _ours(folder: Path, timesteps: int) -> Path:
    report(f"cnn, {timesteps} timesteps")
    run_process(
        [
            *(THIS_PYTHON, ROOT / "train_baselines.py", "--network", "cnn", "--env-name", GAME),
            *("--train-seed", SEED, "--num-timesteps", timesteps),
            *("--output-dir", folder, "--resume"),
        ],
        stdout=sys.stderr,
    )
    return folder / "logs"


def _sb3(folder: Path, timesteps: int, settings: Settings) -> Path:
    done = folder / "done"
    if not done.is_file():
        report(f"SB3 PPO, {timesteps} timesteps")
        folder.mkdir(parents=True, exist_ok=True)
        script = ROOT / "benchmarks" / "peers" / "sb3_train.py"
        python = environment("sb3", settings.peers)
        run_process(
            [python, script, "--updates", timesteps // BATCH, "--monitor-dir", folder],
            stdout=sys.stderr,
        )
        done.touch()
    return folder


def curve(games: pd.DataFrame, timesteps: int) -> pd.DataFrame:
    """Mean return of the last 100 games over timesteps, thinned to `SHOWN` rows.

    A peer's monitor counts emulator frames where ours counts steps, so each game's place is its
    part of all that was played.
    """
    place = games["steps"] / max(1, games["steps"].iloc[-1]) * timesteps
    table = pd.DataFrame({"timesteps": place.round(), "mean_return": mean_return(games)})
    return table.iloc[:: math.ceil(len(table) / SHOWN)]


def picture(curves: dict[str, pd.DataFrame]) -> Figure:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel="timesteps (agent steps)", ylabel="mean return of the last 100 games (raw)")
    axes.set_title(f"Breakout, seed {SEED} each")
    axes.grid(visible=True, alpha=0.3)
    for (name, table), colour in zip(curves.items(), COLOURS, strict=True):
        axes.plot(table["timesteps"], table["mean_return"], color=colour, label=name)
    axes.legend(loc="upper left")
    return figure
