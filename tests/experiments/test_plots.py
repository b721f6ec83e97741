"""The learning curve: what is drawn is what the monitor files hold."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.plots import curve_figure, mean_return, plot_curve
from fl_saliency.logs.readers import monitor_files, read_monitors

LOGS = Path(__file__).parents[1] / "golden" / "original_run" / "logs"


def only_axes(games: pd.DataFrame, title: str = "") -> Axes:
    (axes,) = curve_figure(games, title).axes
    return axes


def run_dir(folder: Path, config: dict[str, object]) -> Path:
    shutil.copytree(LOGS, folder / "logs")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_points_are_the_games_and_the_line_is_their_running_mean() -> None:
    games = read_monitors(monitor_files(LOGS))
    axes = only_axes(games)
    points = np.asarray(axes.collections[0].get_offsets())
    assert points.tolist() == games[["steps", "r"]].values.tolist()
    line = axes.lines[0].get_xydata()
    assert np.array_equal(line[:, 0], games["steps"])
    assert line[-1, 1] == pytest.approx(0.7058823529411765)


def test_the_mean_is_over_the_last_hundred_games() -> None:
    returns = np.arange(250.0) ** 2
    means = mean_return(pd.DataFrame({"r": returns}))
    assert means[0] == 0
    assert means[3] == pytest.approx(14 / 4)
    assert means[249] == pytest.approx(returns[150:].mean())


def test_axes_name_their_units() -> None:
    axes = only_axes(read_monitors(monitor_files(LOGS)), "Breakout")
    assert axes.get_xlabel() == "timesteps (agent steps)"
    assert axes.get_ylabel() == "whole-game return (raw score)"
    assert axes.get_title() == "Breakout"


def test_a_run_without_finished_games_says_so() -> None:
    games = read_monitors(monitor_files(LOGS)).iloc[:0]
    axes = only_axes(games)
    assert [text.get_text() for text in axes.texts] == ["no game has finished"]
    assert not axes.lines


@pytest.mark.parametrize(
    ("config", "title"),
    [
        ({"train_seed": 7}, "Breakout, cnn_daqn, seed 7"),
        ({}, "Breakout, cnn_daqn, seed 03"),
    ],
)
def test_a_runs_title_is_game_network_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, object], title: str
) -> None:
    titles = []

    def spy(games: pd.DataFrame, text: str) -> object:
        titles.append(text)
        return curve_figure(games, text)

    monkeypatch.setattr("fl_saliency.experiments.plots.curve_figure", spy)
    named = {"env_name": "BreakoutNoFrameskip-v4", "network": "cnn_daqn", **config}
    run = run_dir(tmp_path / "03", named)
    plot_curve(run, run / "curve.png")
    plot_curve(run, run / "curve.png", title="mine")
    assert titles == [title, "mine"]


def test_the_picture_is_a_png_with_the_line_in_it(tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    plot_curve(monitor_files(LOGS), path, title="Breakout")
    picture = cv2.imread(str(path))
    assert picture is not None
    assert picture.shape == (600, 960, 3)
    vermilion = (picture[:, :, ::-1] == (0xD5, 0x5E, 0x00)).all(axis=2)
    assert vermilion.any(axis=0).sum() > 300
    assert [item.name for item in tmp_path.iterdir()] == ["curve.png"]


def test_a_broken_monitor_file_leaves_the_old_picture(tmp_path: Path) -> None:
    run = run_dir(tmp_path / "1", {"env_name": "PongNoFrameskip-v4", "network": "cnn"})
    (run / "curve.png").write_bytes(b"old")
    (run / "logs" / "0.3.monitor.csv").write_text("torn\n")
    with pytest.raises(FileFormatError, match=r"0\.3\.monitor\.csv, line 1"):
        plot_curve(run, run / "curve.png")
    assert (run / "curve.png").read_bytes() == b"old"


def test_plotting_leaves_pyplot_alone() -> None:
    script = "import sys, fl_saliency.experiments.plots; print('matplotlib.pyplot' in sys.modules)"
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
