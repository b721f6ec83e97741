"""`fls networks`: the table of networks with parameter counts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fl_saliency.cli.common import run_command, start_tensorflow
from fl_saliency.errors import InputError

__all__ = ["NetworksConfig", "main"]

_MOST_ACTIONS = 1000
"""Far more than any game's; the head of a much wider policy would not fit the memory."""


@dataclass(frozen=True, kw_only=True)
class NetworksConfig:
    """What to list."""

    actions: int = 4
    """Number of actions of the policy head (4 in Breakout, 9 in Ms. Pac-Man)."""
    json: bool = False
    """Print JSON instead of a table."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""


def main(argv: Sequence[str] | None = None, *, prog: str = "fls networks") -> int:
    """Print the table; returns the exit status."""
    return run_command(
        NetworksConfig,
        _list,
        argv,
        prog=prog,
        description="List the networks: parameters, attention and its geometry, source.",
    )


def _list(config: NetworksConfig) -> int:
    if not 1 <= config.actions <= _MOST_ACTIONS:
        raise InputError(f"--actions {config.actions}: expected from 1 to {_MOST_ACTIONS}")
    start_tensorflow()
    from fl_saliency.networks.registry import import_extra, network_names

    import_extra(config.extra_import)
    rows = [_row(name, config.actions) for name in network_names()]
    print(json.dumps(rows, indent=4) if config.json else _table(rows, config.actions))
    return 0


def _row(name: str, actions: int) -> dict[str, Any]:
    from fl_saliency.networks.policy import build_policy, count_parameters
    from fl_saliency.networks.registry import get_network

    spec = get_network(name)
    model = build_policy(name, actions)
    geometry = spec.geometry
    return {
        "name": name,
        "parameters": count_parameters(model),
        "attention": list(model.outputs[3].shape[1:]) if geometry else None,
        "receptive_field": geometry.receptive_field if geometry else None,
        "stride": geometry.stride if geometry else None,
        "padding": geometry.padding if geometry else None,
        "source": spec.source,
        "note": spec.note,
    }


def _table(rows: list[dict[str, Any]], actions: int) -> str:
    lines = [
        f"{'network':<28}{f'parameters ({actions} actions)':>24}  {'attention':<11}"
        f"{'field/stride/padding':<22}source"
    ]
    for row in rows:
        shape = "x".join(map(str, row["attention"])) if row["attention"] else "none"
        cells = (row["receptive_field"], row["stride"], row["padding"])
        geometry = "/".join(map(str, cells)) if row["attention"] else ""
        lines.append(
            f"{row['name']:<28}{row['parameters']:>24,}  {shape:<11}{geometry:<22}{row['source']}"
        )
    return "\n".join(lines)
