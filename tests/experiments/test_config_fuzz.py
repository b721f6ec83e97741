"""config.json of a stranger: whatever it holds, it is read or refused with one error."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_saliency.envs.protocol import Protocol
from fl_saliency.errors import FileFormatError, InputError
from fl_saliency.experiments.configs import TrainConfig
from fl_saliency.experiments.load import load_run
from fl_saliency.experiments.runs import read_config
from tests.fuzz import damaged, fuzz, json_values

PROTOCOL = Protocol(env_id="BreakoutNoFrameskip-v4", game="breakout").as_dict()
WRITTEN = json.dumps(
    {**TrainConfig(network="cnn_daqn").as_dict(), "protocol": PROTOCOL}, indent=4
).encode()
CONFIG: dict[str, Any] = json.loads(WRITTEN)


def changed(entries: dict[str, Any], extra: str) -> st.SearchStrategy[dict[str, Any]]:
    """`entries` with some values replaced, added or left out."""
    names = st.sampled_from([*entries, extra])
    absent = st.just(...)
    changes = st.dictionaries(names, json_values() | absent, min_size=1, max_size=3)
    return changes.map(
        lambda new: {key: value for key, value in (entries | new).items() if value is not ...}
    )


def read(folder: Path, content: bytes) -> None:
    """Read `content` as config.json: it is right, or refused."""
    (folder / "config.json").write_bytes(content)
    with contextlib.suppress(FileFormatError):
        config = read_config(folder)
        assert config["env_name"].strip()
        assert config["network"].strip()


def refused(folder: Path, config: dict[str, Any]) -> None:
    """Load the run of `config`, which has no model.pkl: in the end it is always an InputError."""
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError):
        load_run(folder, seed=0)


@fuzz(150)
@given(data=damaged(WRITTEN, most=6))
def test_a_damaged_config_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    read(tmp_path, data)


@fuzz(100)
@given(data=st.binary(max_size=100) | json_values().map(lambda value: json.dumps(value).encode()))
def test_any_bytes_and_any_json_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    read(tmp_path, data)


@fuzz(150)
@given(config=changed(CONFIG, "surplus"))
def test_any_entries_are_loaded_or_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    refused(tmp_path, config)


@fuzz(150)
@given(protocol=changed(PROTOCOL, "surplus"))
def test_any_protocol_is_loaded_or_refused(tmp_path: Path, protocol: dict[str, Any]) -> None:
    refused(tmp_path, CONFIG | {"protocol": protocol})


@fuzz(150)
@given(config=changed(CONFIG, "surplus"))
def test_a_run_is_continued_with_right_settings_or_refused(config: dict[str, Any]) -> None:
    with contextlib.suppress(FileFormatError):
        settings = TrainConfig.from_dict(config, Path("config.json"))
        assert settings.num_envs >= 1


def test_the_undamaged_config_is_read_in_full(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(WRITTEN)
    assert read_config(tmp_path) == CONFIG
    assert TrainConfig.from_dict(CONFIG, tmp_path).network == "cnn_daqn"
