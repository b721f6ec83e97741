"""Small runs that tests share."""

import json
from pathlib import Path
from typing import Any

import pytest

from fl_saliency.base import write_json
from fl_saliency.checkpoints.baselines import write_model
from fl_saliency.networks.policy import build_policy, get_arrays

__all__ = ["make_run", "read_strict_json"]


def make_run(
    directory: Path,
    *,
    network: str = "cnn_daqn",
    env_name: str = "BreakoutNoFrameskip-v4",
    num_actions: int = 4,
    seed: int = 0,
) -> Path:
    """A run directory in the published layout (config.json, model.pkl) with initial weights."""
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / "config.json", {"env_name": env_name, "network": network})
    weights = get_arrays(build_policy(network, num_actions, seed=seed))
    zeros = {name: array * 0 for name, array in weights.items()}
    write_model(
        directory / "model.pkl",
        trainable=weights,
        adam_m=zeros,
        adam_v=zeros,
        beta1_power=0.9,
        beta2_power=0.999,
    )
    return directory


def read_strict_json(path: Path) -> Any:
    """What is in JSON file `path`; a NaN or an infinity, which are no JSON, fails the test."""

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is no strict JSON")

    return json.loads(path.read_text(), parse_constant=refuse)
