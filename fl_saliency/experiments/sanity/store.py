"""Arrays of an unfinished job, each set of them written once it is whole."""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fl_saliency.base import FloatArray, atomic_path

__all__ = ["Store"]


class Store:
    """A folder, which must be there, with an npz file for each set of arrays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def arrays(
        self, name: str, compute: Callable[[], Mapping[str, FloatArray]]
    ) -> dict[str, FloatArray]:
        """The arrays kept as `name`, or what `compute` gives, which is then kept."""
        path = self._folder / f"{name}.npz"
        if (found := _read(path)) is not None:
            return found
        arrays = dict(compute())
        with atomic_path(path) as partial:
            np.savez(partial, **arrays)  # type: ignore[arg-type]
        return arrays


def _read(path: Path) -> dict[str, FloatArray] | None:
    """What is whole in `path`; None if nothing is."""
    try:
        # Opened here: of a file that is no zip, NumPy would leave closing to chance.
        with path.open("rb") as file, np.load(file) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
