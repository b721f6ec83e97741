"""The golden weights: variable i is drawn from RandomState(1000 + i) (see golden/README)."""

from collections.abc import Sequence

import numpy as np

__all__ = ["golden_weights"]


def golden_weights(
    variables: Sequence[tuple[str, tuple[int, ...]]], base: int = 1000
) -> dict[str, np.ndarray]:
    """Arrays by name for `variables` (name, shape) in model.pkl's order."""
    arrays = {}
    for index, (name, shape) in enumerate(variables):
        scale = 0.05 if name.endswith("/w:0") else 0.01
        draw = np.random.RandomState(base + index).standard_normal(shape) * scale
        arrays[name] = draw.astype(np.float32)
    return arrays
