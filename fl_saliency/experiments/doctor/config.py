"""config.json, and what it says of the other files of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from fl_saliency.agents.ppo2.config import count_updates
from fl_saliency.envs.protocol import Protocol, mismatches
from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.configs import TrainConfig, unknown_keys
from fl_saliency.experiments.doctor.report import Report, count
from fl_saliency.experiments.load import trained_protocol
from fl_saliency.experiments.runs import read_config
from fl_saliency.networks.policy import build_policy, named_variables
from fl_saliency.networks.registry import network_names

__all__ = ["Expected", "examine_config"]

_Variables: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""TensorFlow-1 names and shapes."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What config.json says of the other files; None where it does not say it."""

    env_name: str | None = None
    settings: TrainConfig | None = None
    """None for the published layout, which has no settings of training."""
    protocol: Protocol | None = None
    variables: _Variables | None = None

    @property
    def updates(self) -> int | None:
        """Updates of the whole run."""
        if self.settings is None:
            return None
        return count_updates(self.settings.num_timesteps, self.settings.batch_size)


def examine_config(report: Report) -> Expected:
    """config.json is valid, known and consistent; returns what follows from it."""
    with report.reading("config.json"):
        config = read_config(report.directory)
        settings = _settings(report, config)
        protocol = _protocol(report, config, settings)
        report.ok("config.json", _described(config, settings))
        variables = None if protocol is None else _built(config["network"], protocol.num_actions)
        return Expected(
            env_name=config["env_name"], settings=settings, protocol=protocol, variables=variables
        )
    return Expected()


def _described(config: Mapping[str, Any], settings: TrainConfig | None) -> str:
    agent = f"{config['env_name']}, {config['network']}"
    if settings is None:
        return f"{agent}, published layout"
    updates = settings.num_timesteps // settings.batch_size
    return (
        f"{agent}, seed {settings.train_seed}, {count(updates, 'update')} "
        f"of {settings.batch_size} timesteps"
    )


def _settings(report: Report, config: Mapping[str, Any]) -> TrainConfig | None:
    """The settings of training, if config.json has them."""
    unknown = unknown_keys(config)
    if unknown:
        report.note("config.json", f"unknown keys: {', '.join(map(repr, unknown))}")
    with report.reading("config.json") as path:
        known = {name: value for name, value in config.items() if name not in unknown}
        settings = TrainConfig.from_dict(known, path)
        settings.check()
        if config.keys() >= {"num_timesteps", "num_envs", "num_steps"}:
            return settings
    return None


def _protocol(
    report: Report, config: dict[str, Any], settings: TrainConfig | None
) -> Protocol | None:
    """The protocol of training; None if game or network are not known."""
    network, modules = config["network"], config.get("extra_import")
    if modules and network not in network_names():
        text = f"network {network!r} is not known; --extra-import {' '.join(map(str, modules))}"
        report.note("config.json", f"{text} may add it")
        return None
    with report.reading("config.json") as path:
        protocol = trained_protocol(path, config)
        if settings is not None and not config.get("protocol"):
            report.note("config.json", "no protocol in it: that of its env id is taken")
        elif settings is not None:
            differences = mismatches(protocol, settings.protocol(settings.env_name))
            if differences:
                raise FileFormatError(f"its protocol is not that of its flags: {differences[0]}")
        return protocol
    return None


@cache
def _built(network: str, num_actions: int) -> _Variables:
    model = build_policy(network, num_actions)
    return tuple((item.name, item.shape) for item in named_variables(model))
