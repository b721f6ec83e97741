"""A pickle reader that yields arrays and plain containers and can run nothing.

Source: Python's pickle documentation, "Restricting Globals"; joblib's array format. Here no global
of a file reaches NumPy or any other library: each of the few admitted names is a stand-in of this
module, and arrays are made by this module from bytes that it has counted first.
"""

import io
import math
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

__all__ = ["RefusedPickleError", "read_plain_pickle"]

MAX_INSTRUCTIONS = 1_000_000
"""A model of 74 arrays takes about 3000."""
_MAX_DEPTH = 8
_MAX_ITEMS = 100_000
_MAX_DIMENSIONS = 32
_DTYPES = frozenset({"b1", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"})


class RefusedPickleError(Exception):
    """The stream is damaged or holds what no model file has; the text says which."""


def read_plain_pickle(content: bytes) -> object:
    """The object in `content`, the bytes of a pickle or an (uncompressed) joblib file.

    Made of dict, list, tuple, str, bytes, numbers, bool, None, NumPy numeric arrays and scalars.
    Raises `RefusedPickleError` for anything else.
    """
    stream = _Stream(content)
    try:
        return _plain(_Unpickler(stream).load(), _MAX_DEPTH, [_MAX_ITEMS])
    except RefusedPickleError:
        raise
    except Exception as error:  # a damaged stream can fail in every way that a stack machine has
        if stream.tell() >= len(content):
            raise RefusedPickleError(
                "truncated or damaged: the file ends before the model does"
            ) from error
        raise RefusedPickleError(f"damaged pickle ({type(error).__name__})") from error


class _Stream(io.BytesIO):
    """The file's bytes, and a view of those that are left."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content = memoryview(content)

    def left(self) -> memoryview:
        return self.content[self.tell() :]


class _Dtype:
    """In place of numpy.dtype: a type code and a byte order, nothing that NumPy has to parse."""

    def __init__(self, code: object, align: object = False, copy: object = False) -> None:
        if not isinstance(code, str) or code not in _DTYPES:
            shown = repr(code)[:20] if isinstance(code, str) else type(code).__name__
            raise RefusedPickleError(f"refused: an array of type {shown} (expected numbers)")
        self.dtype: np.dtype[Any] = np.dtype(code)

    def restore(self, state: Any, stream: _Stream) -> None:
        """Take the byte order from `state`, dtype's pickled state."""
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """In place of an array until its data is known."""

    value: npt.NDArray[Any] | None = None


class _WrappedArray(_Array):
    """In place of joblib's NumpyArrayWrapper: attributes in the pickle, data right behind them."""

    def restore(self, state: Any, stream: _Stream) -> None:
        """Read the array that `state` describes from `stream`."""
        if state["subclass"] is not _NDARRAY:
            raise RefusedPickleError("refused: a subclass of numpy.ndarray (expected plain arrays)")
        if state.get("numpy_array_alignment_bytes") is not None:
            stream.seek(stream.read(1)[0], io.SEEK_CUR)
        fortran = state["order"] == "F"
        self.value = _array(state["dtype"], state["shape"], fortran, stream.left(), exact=False)
        stream.seek(self.value.nbytes, io.SEEK_CUR)


class _PickledArray(_Array):
    """In place of an array that NumPy pickled itself: data within the pickle."""

    def restore(self, state: Any, stream: _Stream) -> None:
        """Build the array from `state`, ndarray's pickled state (version 1)."""
        _, shape, dtype, fortran, raw = state
        if not isinstance(raw, bytes):
            raise RefusedPickleError("refused: an array of objects (expected numbers)")
        self.value = _array(dtype, shape, bool(fortran), memoryview(raw), exact=True)


def _array(
    dtype: Any, shape: Any, fortran: bool, raw: memoryview, *, exact: bool
) -> npt.NDArray[Any]:
    """An array in native byte order, copied from the head of `raw`, sizes checked first."""
    if not isinstance(dtype, _Dtype):
        raise RefusedPickleError("damaged: an array without a type")
    if not isinstance(shape, tuple) or len(shape) > _MAX_DIMENSIONS:
        raise RefusedPickleError("damaged: an array without a proper shape")
    if not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise RefusedPickleError("damaged: an array without a proper shape")
    count = math.prod(shape)
    size = count * dtype.dtype.itemsize
    if size > len(raw) or (exact and size != len(raw)):
        raise RefusedPickleError(
            f"truncated or damaged: an array needs {size} bytes, the file has {len(raw)} for it"
        )
    flat = np.frombuffer(raw[:size], dtype.dtype).astype(dtype.dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran else "C")


def _ndarray(*_: object) -> None:
    raise RefusedPickleError("refused: a call of numpy.ndarray")


_NDARRAY = _ndarray


def _reconstruct(subtype: object, shape: object, code: object) -> _PickledArray:
    if subtype is not _NDARRAY:
        raise RefusedPickleError("refused: a subclass of numpy.ndarray (expected plain arrays)")
    return _PickledArray()


def _scalar(dtype: object, raw: object) -> Any:
    if not isinstance(raw, bytes):
        raise RefusedPickleError("refused: a scalar without bytes")
    return _array(dtype, (), False, memoryview(raw), exact=True)[()]


def _ordered_dict(*pairs: Any) -> dict[str, Any]:
    items = [(key, value) for key, value in pairs[0]] if pairs else []
    for key, _ in items:
        _check_key(key)
    return dict(items)


_ADMITTED: dict[tuple[str, str], object] = {
    ("collections", "OrderedDict"): _ordered_dict,
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _WrappedArray,
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
}


class _Instructions(dict[int, Callable[[Any], None]]):
    """The admitted instructions, and a budget: one byte of file may cost a container of memory."""

    left = 0

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.left -= 1
        if self.left < 0:
            raise RefusedPickleError(f"refused: more than {MAX_INSTRUCTIONS} pickle instructions")
        return super().__getitem__(code)

    def __missing__(self, code: int) -> Callable[[Any], None]:
        raise RefusedPickleError(
            f"refused: pickle instruction {bytes([code])!r}, which no model file has"
        )


def _check_key(key: object) -> None:
    # A key is hashed: a nested tuple would be walked, however often its parts are shared.
    if type(key) is not str and type(key) is not int:
        raise RefusedPickleError(f"refused: a {type(key).__name__} as key of a dict")


# pickle's Python reader, because its table of instructions can be cut down and its memo is a dict:
# the C reader allocates what a file claims. joblib's own reader stands on the same class.
class _Unpickler(pickle._Unpickler):
    """Reads protocols 2 to 5, only with the instructions in `_OPCODES`."""

    stack: list[Any]
    pop_mark: Callable[[], list[Any]]
    readline: Callable[[], bytes]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {}

    def __init__(self, stream: _Stream) -> None:
        super().__init__(stream, fix_imports=False)
        self._stream = stream
        instructions = _Instructions(_OPCODES)
        instructions.left = MAX_INSTRUCTIONS
        self.dispatch = instructions  # type: ignore[misc]

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for `module.name`; never imports."""
        found = _ADMITTED.get((module, name))
        if found is None:
            shown = ascii(f"{module}.{name}")[:80]
            raise RefusedPickleError(
                f"refused: it asks for {shown}; a model file holds arrays and containers only"
            )
        return found

    def load_global(self) -> None:
        """GLOBAL, two lines of text: a name that the file's end cuts off is not to be looked up."""
        names = [self.readline(), self.readline()]
        if not all(name.endswith(b"\n") for name in names):
            raise EOFError
        module, name = (name[:-1].decode("utf-8") for name in names)
        self.stack.append(self.find_class(module, name))

    def load_build(self) -> None:
        """BUILD: fill a stand-in, nothing else."""
        state = self.stack.pop()
        target = self.stack[-1]
        if not isinstance(target, _Dtype | _WrappedArray | _PickledArray):
            raise RefusedPickleError(f"refused: a state for a {type(target).__name__}")
        target.restore(state, self._stream)

    def load_newobj(self) -> None:
        """NEWOBJ: joblib's wrapper is the one class that is made this way."""
        arguments = self.stack.pop()
        if self.stack[-1] is not _WrappedArray or arguments != ():
            raise RefusedPickleError("refused: an object that is no array")
        self.stack[-1] = _WrappedArray()

    def load_reduce(self) -> None:
        """REDUCE: call a stand-in, nothing else."""
        arguments = self.stack.pop()
        function = self.stack[-1]
        if not any(function is admitted for admitted in _ADMITTED.values()):
            raise RefusedPickleError("refused: a call")
        self.stack[-1] = function(*arguments)

    def load_setitem(self) -> None:
        """SETITEM into a dict under a plain key."""
        value = self.stack.pop()
        key = self.stack.pop()
        self._set([key, value])

    def load_setitems(self) -> None:
        """SETITEMS into a dict under plain keys."""
        self._set(self.pop_mark())

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict:
            raise RefusedPickleError(f"refused: items for a {type(target).__name__}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            _check_key(key)
            target[key] = value


_INHERITED = (
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE "
    "SHORT_BINUNICODE BINBYTES SHORT_BINBYTES EMPTY_DICT EMPTY_LIST EMPTY_TUPLE TUPLE TUPLE1 "
    "TUPLE2 TUPLE3 APPEND APPENDS STACK_GLOBAL BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE"
)
_OPCODES: dict[int, Callable[[Any], None]] = {
    **{
        code: pickle._Unpickler.dispatch[code]
        for code in (getattr(pickle, name)[0] for name in _INHERITED.split())
    },
    pickle.GLOBAL[0]: _Unpickler.load_global,
    pickle.BUILD[0]: _Unpickler.load_build,
    pickle.NEWOBJ[0]: _Unpickler.load_newobj,
    pickle.REDUCE[0]: _Unpickler.load_reduce,
    pickle.SETITEM[0]: _Unpickler.load_setitem,
    pickle.SETITEMS[0]: _Unpickler.load_setitems,
}


def _plain(value: Any, depth: int, budget: list[int]) -> object:
    """`value` with arrays in place of stand-ins; bounded, since shared parts can multiply."""
    budget[0] -= 1
    if depth < 0 or budget[0] < 0:
        raise RefusedPickleError("refused: containers nested too deep or too large")
    if isinstance(value, dict):
        return {key: _plain(item, depth - 1, budget) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(item, depth - 1, budget) for item in value)
    if isinstance(value, _Array) and value.value is not None:
        return value.value
    if isinstance(value, _Dtype):
        return value.dtype
    if value is None or isinstance(value, str | bytes | bool | int | float | np.generic):
        return value
    raise RefusedPickleError(f"refused: a {type(value).__name__} (expected arrays and containers)")
