"""A stranger's run directory names modules to import: no command imports them of itself."""

import json
import sys
from pathlib import Path

import pytest

from fl_saliency.cli.main import main
from fl_saliency.experiments.configs import TrainConfig
from fl_saliency.networks.registry import import_extra
from tests.cli import bad_files as made

SMALL = TrainConfig(
    network="cnn_daqn", num_envs=1, num_steps=8, num_timesteps=8, num_minibatches=1, env_workers=0
)
COMMANDS = {
    "train": ("--resume", "--output-dir", "run"),
    "run": ("--experiment-dir", "run", "--num-env", "1", "--max-eplen", "20", "--env-workers", "0"),
    "benchmark": ("--experiment-dir", "run", "--atari-head-dir", "gaze"),
}


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the hostile module would make; its run and the module are where we are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    made.good_run(tmp_path)
    made.good_gaze(tmp_path)
    config = {**SMALL.as_dict(), "extra_import": ["hostile_module"]}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    sys.modules.pop("hostile_module", None)
    marker = tmp_path / "ran"
    (tmp_path / "hostile_module.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    return marker


@pytest.mark.parametrize("command", COMMANDS)
def test_modules_that_a_config_names_are_not_imported(command: str, marker: Path) -> None:
    status = main([command, *COMMANDS[command]])
    assert not marker.exists()
    assert status == 0 or command == "train"


def test_the_module_is_one_that_would_run(marker: Path) -> None:
    import_extra(["hostile_module"])
    assert marker.exists()
