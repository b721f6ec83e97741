"""Makes the files of the bad input matrix: each function leaves something in a folder.

`run` is a run directory, `gaze` a folder of Atari-HEAD; commands are run in the folder above them.
"""

import json
import os
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from fl_saliency.experiments.configs import TrainConfig
from tests.atari_head import makers
from tests.golden.weights import golden_weights

Build = Callable[[Path], None]

GOLDEN = Path(__file__).parents[1] / "golden"
MODEL = GOLDEN / "original_run" / "model.pkl"
CONFIG = {"env_name": "BreakoutNoFrameskip-v4", "network": "cnn_daqn"}
PROTOCOL = {"env_id": "BreakoutNoFrameskip-v4", "game": "breakout"}
LONG = "x" * 300
"""A name that no file system takes."""

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
HTML = "<!DOCTYPE html><html>404</html>"


# --- folders and modules ------------------------------------------------------------------------


def a_file(folder: Path) -> None:
    """`file`, where a folder is expected."""
    (folder / "file").write_text("mine")


def full_folder(folder: Path) -> None:
    """`full`, a folder that holds something."""
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").write_text("mine")


def empty_folder(folder: Path) -> None:
    """`empty`, a folder that holds nothing."""
    (folder / "empty").mkdir()


def locked_folder(folder: Path) -> None:
    """`locked`, a folder that nobody but root may write to."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (folder / "locked").mkdir(mode=0o500)


def modules(folder: Path) -> None:
    """Modules for --extra-import, none of which can be imported."""
    (folder / "bad_syntax.py").write_text("def (:\n")
    (folder / "bad_lines.py").write_text("raise ValueError('two\\nlines')\n")
    (folder / "bad_exit.py").write_text("raise SystemExit('gone')\n")
    (folder / "bad_name.py").write_text(
        "from fl_saliency.networks.registry import register\n"
        "register('cnn', geometry=None, source='')(lambda obs: (obs, None))\n"
    )


# --- run directories ----------------------------------------------------------------------------


def good_run(folder: Path) -> None:
    """`run`, a run directory that is right: cnn_daqn on Breakout, as the original wrote it."""
    (folder / "run").mkdir()
    (folder / "run" / "config.json").write_text(json.dumps(CONFIG))
    shutil.copyfile(MODEL, folder / "run" / "model.pkl")


def with_results(folder: Path) -> None:
    """Results in the run directory, of an evaluation and of a gaze score."""
    (folder / "run" / "results.json").write_text("{}")
    (folder / "run" / "saliency.json").write_text("{}")


def no_config(folder: Path) -> None:
    (folder / "run" / "config.json").unlink()


def config_folder(folder: Path) -> None:
    no_config(folder)
    (folder / "run" / "config.json").mkdir()


def config_text(text: str | bytes) -> Build:
    """A config.json of this text."""

    def build(folder: Path) -> None:
        data = text.encode() if isinstance(text, str) else text
        (folder / "run" / "config.json").write_bytes(data)

    return build


def config(**changes: Any) -> Build:
    """A config.json with these entries; None removes one."""
    entries = {key: value for key, value in (CONFIG | changes).items() if value is not None}
    return config_text(json.dumps(entries))


def protocol(**changes: Any) -> Build:
    """A config.json whose protocol has these entries."""
    return config(protocol=PROTOCOL | changes)


def no_model(folder: Path) -> None:
    (folder / "run" / "model.pkl").unlink()


def model_folder(folder: Path) -> None:
    no_model(folder)
    (folder / "run" / "model.pkl").mkdir()


def model_bytes(content: str | bytes) -> Build:
    """A model.pkl of this content."""

    def build(folder: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (folder / "run" / "model.pkl").write_bytes(data)

    return build


def model_cut(folder: Path) -> None:
    path = folder / "run" / "model.pkl"
    path.write_bytes(path.read_bytes()[:5000])


def model_of(value: Any) -> Build:
    """A model.pkl that holds `value`."""
    return model_bytes(pickle.dumps(value, protocol=3))


def model_with_nan(folder: Path) -> None:
    variables = joblib.load(MODEL)
    variables["ppo2_model/pi/b:0"][0] = np.nan
    joblib.dump(variables, folder / "run" / "model.pkl")


def cnn_run(folder: Path) -> None:
    """`run` with a model of `cnn`, which has no attention."""
    variables = json.loads((GOLDEN / "networks.json").read_text())["networks"]["cnn"]
    shapes = [(item["name"], tuple(item["shape"])) for item in variables["trainable_variables_n4"]]
    joblib.dump(golden_weights(shapes), folder / "run" / "model.pkl")
    config(network="cnn")(folder)


class _Calls:
    """Pickles as a call of `function(*arguments)`."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


def model_that_runs_code(folder: Path) -> None:
    """Unpickling it would make the file `ran`."""
    evil = _Calls(os.system, f"touch {folder / 'ran'}")
    (folder / "run" / "model.pkl").write_bytes(pickle.dumps({"w": evil}))


# --- Atari-HEAD ---------------------------------------------------------------------------------


def good_gaze(folder: Path) -> None:
    """`gaze`, a folder with one trial of Breakout, number 7, in the flat layout."""
    makers.write_flat(folder / "gaze")


def gaze_text(name: str, content: str | bytes) -> Build:
    """A file of the gaze folder; `{name}` in `name` is the trial's."""

    def build(folder: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (folder / "gaze" / name.format(name=makers.NAME)).write_bytes(data)

    return build


def meta(content: str | bytes) -> Build:
    return gaze_text("meta_data.csv", content)


def labels(content: str | bytes) -> Build:
    return gaze_text("{name}.txt", content)


def archive(content: str | bytes) -> Build:
    return gaze_text("{name}.tar.bz2", content)


def no_meta(folder: Path) -> None:
    (folder / "gaze" / "meta_data.csv").unlink()


def no_labels(folder: Path) -> None:
    (folder / "gaze" / f"{makers.NAME}.txt").unlink()


def no_archive(folder: Path) -> None:
    (folder / "gaze" / f"{makers.NAME}.tar.bz2").unlink()


def damaged_frame(folder: Path) -> None:
    """The trial unpacked, and one of its frames is no picture."""
    path = folder / "gaze" / f"{makers.NAME}.tar.bz2"
    with tarfile.open(path) as tar:
        tar.extractall(folder / "gaze", filter="data")
    path.unlink()
    (folder / "gaze" / makers.NAME / "RZ_42_3.png").write_bytes(b"junk")


def link_archive(folder: Path) -> None:
    with tarfile.open(folder / "gaze" / f"{makers.NAME}.tar.bz2", "w:bz2") as tar:
        link = makers.member("RZ_42_1.png", kind=tarfile.SYMTYPE, target="/etc/passwd")
        tar.addfile(link)


def game_zip(content: bytes) -> Build:
    """A zip of the game in place of the flat trial."""

    def build(folder: Path) -> None:
        no_labels(folder)
        no_archive(folder)
        (folder / "gaze" / "breakout.zip").write_bytes(content)

    return build


def foreign_download(folder: Path) -> None:
    """`out` holds a meta_data.csv that the server does not have."""
    (folder / "out").mkdir()
    (folder / "out" / "meta_data.csv").write_text("another")


def begun_run(**changes: Any) -> Build:
    """The config.json in `out` of a run that `fls train` began, with `changes`."""

    def build(folder: Path) -> None:
        config = TrainConfig(
            network="cnn_daqn", env_workers=0, num_envs=2, num_steps=8, num_timesteps=16
        )
        (folder / "out").mkdir()
        text = json.dumps({**config.as_dict(), **changes})
        (folder / "out" / "config.json").write_text(text)

    return build
