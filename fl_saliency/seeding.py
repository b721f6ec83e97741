"""Randomness from one seed: every random stream of a job is named and derived, none is global."""

import numpy as np

from fl_saliency.errors import InputError

__all__ = ["check_seed", "derive_seed", "stream"]

_STREAMS = {"weights": 0, "policy": 1, "minibatches": 2, "env": 3, "metrics": 4, "saliency": 5}


def check_seed(name: str, value: int) -> int:
    """Return `value` if it is a seed (0 <= value < 2**31), or raise `InputError` naming `name`."""
    if not 0 <= value < 2**31:
        raise InputError(f"{name} {value}: expected a seed from 0 to {2**31 - 1}")
    return value


def _sequence(name: str, seed: int, *index: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(_STREAMS[name], *index))


def stream(name: str, seed: int, *index: int) -> np.random.Generator:
    """The generator of stream `name` (a key of `_STREAMS`)."""
    return np.random.default_rng(_sequence(name, seed, *index))


def derive_seed(name: str, seed: int, *index: int) -> int:
    """A seed (0 <= s < 2**31) for a library that wants an integer, from the same tree."""
    return int(_sequence(name, seed, *index).generate_state(1)[0] >> 1)
