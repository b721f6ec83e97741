"""Model files of OpenAI Baselines (`model.pkl`) to arrays and back, under TensorFlow-1 names.

Source: OpenAI Baselines, `save_variables` and `load_variables`. Nothing is ever half-restored:
every variable is matched by name and shape, or the load fails and names the variable.
"""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import joblib.numpy_pickle
import numpy as np
import numpy.typing as npt

from fl_saliency.base import atomic_path
from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.errors import FileFormatError

__all__ = [
    "BETA1",
    "BETA2",
    "AdamSlots",
    "Float32Array",
    "ModelArrays",
    "adam_slots",
    "match_variables",
    "read_model",
    "slot_names",
    "write_model",
]

Float32Array: TypeAlias = npt.NDArray[np.float32]

BETA1 = "beta1_power:0"
BETA2 = "beta2_power:0"

_Scalar = np.float32(0).__reduce__()[0]


@dataclass(frozen=True, kw_only=True)
class ModelArrays:
    """The arrays of a model.pkl, float32, as the file has them: nothing is checked against a net.

    `names` holds one TensorFlow-1 name per array, or None for the old list form, whose arrays are
    in the order of the variables.
    """

    arrays: tuple[Float32Array, ...]
    names: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class AdamSlots:
    """State of the optimizer (TensorFlow 1's Adam), keyed by the name of the trained variable."""

    m: Mapping[str, Float32Array]
    """First moments (`.../Adam:0`), in the variable's shape."""
    v: Mapping[str, Float32Array]
    """Second moments (`.../Adam_1:0`), in the variable's shape."""
    beta1_power: float
    """beta1 to the power of 1 + the number of steps taken."""
    beta2_power: float
    """beta2 to the power of 1 + the number of steps taken."""


def slot_names(name: str) -> tuple[str, str]:
    """Names of the two Adam slots of variable `name`: `a/w:0` has `a/w/Adam:0`, `a/w/Adam_1:0`."""
    base = name.removesuffix(":0")
    return f"{base}/Adam:0", f"{base}/Adam_1:0"


def read_model(path: Path) -> ModelArrays:
    """The arrays of `path`, a model.pkl in dict form or in the old list form.

    Raises `FileFormatError` (see `load_foreign`) and for values that are not finite floats.
    """
    model = load_foreign(path)
    if isinstance(model, dict):
        names = tuple(str(name) for name in model)
        values = list(model.values())
    elif isinstance(model, list | tuple):
        names, values = None, list(model)
    else:
        raise FileFormatError(
            f"{path}: holds a {type(model).__name__}, expected a dict (or list) of arrays"
        )
    if not values:
        raise FileFormatError(f"{path}: holds no variables")
    labels = names or tuple(f"number {index}" for index in range(len(values)))
    arrays = tuple(_float32(path, *item) for item in zip(labels, values, strict=True))
    return ModelArrays(arrays=arrays, names=names)


def _float32(path: Path, name: str, value: object) -> Float32Array:
    if not isinstance(value, np.ndarray | np.floating | float):
        raise FileFormatError(
            f"{path}: variable {name!r} is a {type(value).__name__}, expected an array of floats"
        )
    array = np.asarray(value)
    if array.dtype.kind != "f":
        raise FileFormatError(
            f"{path}: variable {name!r} is of type {array.dtype}, expected floats"
        )
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    if not np.isfinite(array).all():
        raise FileFormatError(
            f"{path}: variable {name!r} holds NaN or infinity; the training that wrote it diverged"
        )
    return array


def match_variables(
    arrays: ModelArrays, expected: Sequence[tuple[str, tuple[int, ...]]], path: Path
) -> dict[str, Float32Array]:
    """`arrays` by name: every variable in `expected` (name, TensorFlow-1 shape), in that order.

    Where the file holds the optimizer's state, all its slots follow under their own names
    (`adam_slots` takes them apart). Raises `FileFormatError` naming the first variable of `path`
    that is missing, surplus or of a wrong shape; optimizer slots are all there or none.
    """
    shapes = dict(expected)
    slots = _slot_shapes(expected)
    found = _named(arrays, tuple(shapes), tuple(slots), path)
    if found.keys() & slots.keys():
        shapes |= slots
    for name in shapes:
        if name not in found:
            raise FileFormatError(f"{path}: variable {name!r} is missing; {_ANOTHER}")
    for name in found:
        if name not in shapes:
            raise FileFormatError(f"{path}: unexpected variable {name!r}; {_ANOTHER}")
    for name, shape in shapes.items():
        _check_shape(path, name, found[name].shape, tuple(shape))
    return {name: found[name] for name in shapes}


_ANOTHER = "is it a model of another network?"


def _slot_shapes(expected: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the optimizer's variables, in the order that the original has."""
    slots: dict[str, tuple[int, ...]] = {BETA1: (), BETA2: ()}
    for name, shape in expected:
        slots |= dict.fromkeys(slot_names(name), shape)
    return slots


def _named(
    arrays: ModelArrays, trainable: tuple[str, ...], slots: tuple[str, ...], path: Path
) -> dict[str, Float32Array]:
    names = arrays.names
    if names is None:
        have, wanted, full = len(arrays.arrays), len(trainable), len(trainable) + len(slots)
        if have not in (wanted, full):
            raise FileFormatError(
                f"{path}: a list of {have} arrays, expected {wanted} (or {full} with the "
                f"optimizer's); {_ANOTHER}"
            )
        names = (trainable + slots)[:have]
    return dict(zip(names, arrays.arrays, strict=True))


def _check_shape(path: Path, name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if found == wanted:
        return
    is_head = name.endswith("/pi/w:0") and len(found) == len(wanted) == 2
    if is_head and found[0] == wanted[0]:
        raise FileFormatError(f"{path}: model has {found[1]} actions, the game has {wanted[1]}")
    raise FileFormatError(
        f"{path}: variable {name!r} has shape {list(found)}, expected {list(wanted)}"
    )


def adam_slots(matched: Mapping[str, Float32Array]) -> AdamSlots | None:
    """The optimizer's state in what `match_variables` returned; None where the file had none."""
    if BETA1 not in matched:
        return None
    names = [name for name in matched if slot_names(name)[0] in matched]
    return AdamSlots(
        m={name: matched[slot_names(name)[0]] for name in names},
        v={name: matched[slot_names(name)[1]] for name in names},
        beta1_power=float(matched[BETA1]),
        beta2_power=float(matched[BETA2]),
    )


def write_model(
    path: Path,
    *,
    trainable: Mapping[str, npt.NDArray[Any]],
    adam_m: Mapping[str, npt.NDArray[Any]],
    adam_v: Mapping[str, npt.NDArray[Any]],
    beta1_power: float,
    beta2_power: float,
) -> None:
    """Write a model.pkl that the original loads: all its global variables, float32, in its order.

    `trainable` is in creation order under TensorFlow-1 names and shapes; `adam_m` and `adam_v`
    have the same keys and shapes (`ValueError` otherwise). Written atomically.
    """
    model: dict[str, Any] = {name: _plain(value) for name, value in trainable.items()}
    model[BETA1], model[BETA2] = np.float32(beta1_power), np.float32(beta2_power)
    if not trainable.keys() == adam_m.keys() == adam_v.keys():
        raise ValueError("trainable, adam_m and adam_v differ in their keys")
    for name, value in trainable.items():
        for slot, moment in zip(slot_names(name), (adam_m[name], adam_v[name]), strict=True):
            if moment.shape != value.shape:
                raise ValueError(f"{slot} has shape {moment.shape}, expected {value.shape}")
            model[slot] = _plain(moment)
    with atomic_path(path) as partial, partial.open("wb") as file:
        _OldJoblibPickler(file, protocol=3).dump(model)


def _plain(value: npt.NDArray[Any]) -> Float32Array:
    return np.ascontiguousarray(value, np.float32).reshape(value.shape)


class _OldJoblibPickler(joblib.numpy_pickle.NumpyPickler):
    """Writes what joblib 0.13 with NumPy 1.16 reads: no padding, and NumPy's module of that time.

    joblib 1.2 put padding before each array, which older ones take for data; NumPy 2 moved
    `numpy.core`, whose two names for pickles are still there.
    """

    def _create_array_wrapper(self, array: npt.NDArray[Any]) -> Any:
        wrapper = super()._create_array_wrapper(array)
        del wrapper.numpy_array_alignment_bytes
        return wrapper

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if obj is not _Scalar:
            super().save_global(obj, name)
            return
        self.write(pickle.GLOBAL + b"numpy.core.multiarray\nscalar\n")
        self.memoize(obj)
