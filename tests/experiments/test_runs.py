"""Run directories: their layout, and a config.json that is right or refused with one line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fl_saliency.errors import FileFormatError, InputError
from fl_saliency.experiments.runs import (
    MAX_CONFIG_BYTES,
    RunDir,
    game_name,
    read_config,
    run_path,
    write_config,
)

EXAMPLE = Path(__file__).parents[1] / "golden" / "train_example"


def test_the_layout_is_the_originals() -> None:
    run = RunDir(Path())
    tree = [line.split()[0] for line in (EXAMPLE / "tree.txt").read_text().splitlines()]
    files = [run.config, run.model, run.progress, run.log, run.logs / "0.7.monitor.csv"]
    assert {f"./{path}" for path in files} <= set(tree)
    assert any(line.startswith(f"./{run.tensorboard}/events.out.tfevents.") for line in tree)


def test_monitor_files_of_a_run_are_found_in_its_logs() -> None:
    run = RunDir(EXAMPLE.parent / "original_run")
    assert len(run.monitors()) == 8
    with pytest.raises(FileFormatError, match=r"no \*\.monitor\.csv"):
        RunDir(EXAMPLE).monitors()


@pytest.mark.parametrize(
    ("env_name", "game"),
    [
        ("BreakoutNoFrameskip-v4", "Breakout"),
        ("ALE/MsPacman-v5", "MsPacman"),
        ("Breakout-ramNoFrameskip-v4", "Breakout"),
        ("PongDeterministic-v0", "Pong"),
        ("Pong-v4", "Pong"),
        ("my_game", "my_game"),
    ],
)
def test_the_game_is_read_off_the_env_id(env_name: str, game: str) -> None:
    assert game_name(env_name) == game
    usual = run_path(Path("runs"), env_name, "cnn", 3)
    assert usual == Path("runs") / f"{game}.cnn" / "3"


def test_a_written_config_reads_back_equal(tmp_path: Path) -> None:
    config = {
        "env_name": "PongNoFrameskip-v4",
        "network": "cnn",
        "train_seed": 3,
        "num_timesteps": 1024,
        "gamma": 0.99,
        "protocol": {"frame_skip": 4},
        "versions": {"numpy": "2"},
        "git_commit": None,
    }
    write_config(tmp_path, config)
    assert read_config(tmp_path) == config


def test_the_published_layout_is_read() -> None:
    assert read_config(EXAMPLE) == {
        "env_name": "BreakoutNoFrameskip-v4",
        "network": "cnn_sparse_fls",
    }


GOOD: dict[str, Any] = {"env_name": "PongNoFrameskip-v4", "network": "cnn"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: not valid JSON"),
        ('{"env_name":\n oops}', "line 2: not valid JSON"),
        ("[]", "expected an object, found a list"),
        ("null", "expected an object, found null"),
        ("[" * 100_000, "cannot read it"),
        ("{}", "'env_name' and 'network' missing"),
        (json.dumps({"network": "cnn"}), "'env_name' missing"),
        (json.dumps(GOOD | {"network": ["cnn"]}), "'network' is a list, expected a text"),
        (json.dumps(GOOD | {"env_name": None}), "'env_name' is null, expected a text"),
        (json.dumps(GOOD | {"env_name": " "}), "'env_name' is empty"),
        (json.dumps(GOOD | {"train_seed": "1"}), "'train_seed' is a text, expected a whole"),
        (json.dumps(GOOD | {"train_seed": True}), "'train_seed' is true or false"),
        (json.dumps(GOOD | {"num_timesteps": 1e6}), "'num_timesteps' is a number, expected a"),
        (
            json.dumps(GOOD | {"extra_import": "my_nets"}),
            "'extra_import' is a text, expected a list",
        ),
        (json.dumps(GOOD | {"protocol": "v4"}), "'protocol' is a text, expected an object"),
    ],
)
def test_a_wrong_config_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        read_config(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "config.json"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_config_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="not JSON text"):
        read_config(tmp_path)


def test_what_is_no_plain_file_or_far_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    os.mkfifo(path)
    with pytest.raises(FileFormatError, match="expected a file, found a folder or a device"):
        read_config(tmp_path)
    path.unlink()
    path.write_text(" " * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(FileFormatError, match="1048577 bytes, more than the 1048576"):
        read_config(tmp_path)


def test_a_missing_run_or_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such run directory"):
        read_config(tmp_path / "absent")
    with pytest.raises(InputError, match=r"config\.json: not found"):
        read_config(tmp_path)
