"""A run directory, ours or the original's, as an Agent with its protocol."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import file_sha256
from fl_saliency.checkpoints.baselines import match_variables, read_model
from fl_saliency.envs.protocol import Protocol, resolve_protocol
from fl_saliency.errors import FileFormatError, InputError
from fl_saliency.experiments.runs import RunDir, read_config
from fl_saliency.networks.policy import OBSERVATION_SHAPE, build_policy, named_variables, set_arrays
from fl_saliency.networks.registry import get_network
from fl_saliency.seeding import check_seed, stream

__all__ = ["LoadedRun", "load_run", "trained_protocol"]


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """A trained agent and what its run directory says of it."""

    agent: PolicyAgent
    config: dict[str, Any]
    protocol: Protocol
    """The protocol that it was trained under; Baselines' own where config.json has none."""
    model_sha256: str
    """Of the file model.pkl."""

    @property
    def identity(self) -> dict[str, Any]:
        """What two jobs on the same agent have in common, as JSON types."""
        return {
            "env_name": self.config["env_name"],
            "network": self.config["network"],
            "protocol": self.protocol.as_dict(),
            "model_sha256": self.model_sha256,
        }


def load_run(directory: Path, *, seed: int) -> LoadedRun:
    """Load model.pkl of `directory` into the network that its config.json names.

    `seed` seeds the agent's action sampling. Every variable is matched by name and shape. Modules
    that config.json names are not imported (a stranger's file must not run code): a network of
    one's own is registered by `--extra-import` before.
    Raises InputError or FileFormatError, naming the file and what is wrong.
    """
    check_seed("--eval-seed", seed)
    config = read_config(directory)
    protocol = trained_protocol(RunDir(directory).config, config)
    path = RunDir(directory).model
    arrays = read_model(path)
    model = build_policy(config["network"], protocol.num_actions)
    expected = [(item.name, item.shape) for item in named_variables(model)]
    set_arrays(model, match_variables(arrays, expected, path))
    return LoadedRun(
        agent=PolicyAgent(model, stream("policy", seed)),
        config=config,
        protocol=protocol,
        model_sha256=file_sha256(path),
    )


def trained_protocol(path: Path, config: dict[str, Any]) -> Protocol:
    """The protocol in config.json `path`; Baselines' own where it has none.

    Raises FileFormatError, naming the file, also for a network that is not known.
    """
    try:
        get_network(config["network"])
        by_name = resolve_protocol(config["env_name"])
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error
    if not config.get("protocol"):
        return by_name
    try:
        protocol = Protocol.from_dict(config["protocol"])
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error
    if protocol.game != by_name.game:
        raise FileFormatError(
            f"{path}: env_name {config['env_name']!r} and protocol ({protocol.game}) name two games"
        )
    if protocol.observation_shape != OBSERVATION_SHAPE:
        raise FileFormatError(
            f"{path}: protocol: observations of {protocol.observation_shape}, "
            f"expected {OBSERVATION_SHAPE}"
        )
    return protocol
