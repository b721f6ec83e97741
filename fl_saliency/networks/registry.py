"""The table of networks: one row holds all that belongs to one, and users may add rows."""

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fl_saliency.base import AttentionGeometry, Pooling
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.networks.blocks import Tensor

__all__ = [
    "Builder",
    "NetworkSpec",
    "get_network",
    "import_extra",
    "network_names",
    "register",
]

Builder: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""obs (symbolic uint8 [B, 84, 84, 4]) -> latent [B, 512], attention [B, h, w, 1] or None."""


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """One row of the table."""

    name: str
    build: Builder
    geometry: AttentionGeometry | None
    """How its attention lies over the input; None for a network without attention."""
    source: str
    """Where the network is described."""
    note: str = ""
    """What a reader of its maps or scores should know."""
    pooling: Pooling | None = None
    """How it pools its features over space before the fully connected layer, if it does."""


_TABLE: dict[str, NetworkSpec] = {}


def register(
    name: str,
    *,
    geometry: AttentionGeometry | None,
    source: str,
    note: str = "",
    pooling: Pooling | None = None,
) -> Callable[[Builder], Builder]:
    """Add a row: `@register("my_net", geometry=AttentionGeometry(...), source="...")`.

    The builder then trains, loads and scores like the built-in ones. A name that is taken by
    another builder is an InputError.
    """

    def add(build: Builder) -> Builder:
        if name in _TABLE:
            raise InputError(f"network {name!r} is registered already; choose another name")
        _TABLE[name] = NetworkSpec(
            name=name, build=build, geometry=geometry, source=source, note=note, pooling=pooling
        )
        return build

    return add


def network_names() -> list[str]:
    """Every registered name, in the order of registration."""
    return list(_TABLE)


def get_network(name: str) -> NetworkSpec:
    """The row of `name`, or an InputError that names the nearest."""
    if name not in _TABLE:
        raise unknown_choice("network", name, _TABLE)
    return _TABLE[name]


def import_extra(modules: Iterable[str]) -> None:
    """Import users' modules (`--extra-import my_nets`) so that their `@register` rows exist.

    They are found in the current folder too, wherever the command itself lies.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    for module in modules:
        if not all(part.isidentifier() for part in module.split(".")):
            raise InputError(
                f"--extra-import {module!r}: expected the name of a module, such as my_nets"
            )
        try:
            importlib.import_module(module)
        except InputError:
            raise
        except (Exception, SystemExit) as error:  # a script of theirs may end in sys.exit
            cause = f"{type(error).__name__}: {error}"
            raise InputError(f"--extra-import {module}: cannot import it ({cause})") from error
