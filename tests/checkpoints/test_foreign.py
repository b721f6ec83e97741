"""Model files of others: what is admitted, and one clear error for everything else."""

import builtins
import collections
import contextlib
import os
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_saliency.checkpoints import foreign
from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.checkpoints.pickles import RefusedPickleError, read_plain_pickle
from fl_saliency.errors import FileFormatError
from tests.fuzz import damaged, fuzz

DATA = Path(__file__).parent / "data"
ORIGINAL = Path(__file__).parents[1] / "golden" / "original_run" / "model.pkl"
VALUES: dict[str, Any] = {
    "a": np.arange(6, dtype="f4").reshape(2, 3),
    "f": np.asfortranarray(np.arange(6, dtype="f8").reshape(2, 3)),
    "s": np.float32(2),
    "z": np.zeros((0, 3), "f4"),
    "big": np.arange(3, dtype="f4"),
    "i": np.arange(4),
    "l": [1, 2.5, "x", None, True],
}


def assert_same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_same(found[key], wanted[key])
    elif isinstance(wanted, list | tuple):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, np.ndarray | np.generic):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        assert np.array_equal(found, wanted)
    else:
        assert found == wanted


def refused(path: Path) -> str:
    """The one line with which `path` is refused."""
    with pytest.raises(FileFormatError) as caught:
        load_foreign(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert len(text.removeprefix(str(path))) < 200
    return text


def test_a_real_model_of_the_original_loads_in_full() -> None:
    assert_same(load_foreign(ORIGINAL), joblib.load(ORIGINAL))


@pytest.mark.parametrize("name", ["joblib_0_13.pkl", "joblib_0_13_zlib.pkl", "pickle_3.pkl"])
def test_files_of_joblib_0_13_and_pickle_load_in_native_byte_order(name: str) -> None:
    assert_same(load_foreign(DATA / name), VALUES)


def test_a_list_of_joblib_0_13_loads() -> None:
    assert_same(load_foreign(DATA / "joblib_0_13_list.pkl"), list(VALUES.values())[:3])


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)])
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_files_of_todays_joblib_load(tmp_path: Path, compress: Any, protocol: int) -> None:
    path = tmp_path / "model.pkl"
    joblib.dump(VALUES, path, compress=compress, protocol=protocol)
    assert_same(load_foreign(path), VALUES)


def test_an_ordered_dict_loads_as_a_dict_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    joblib.dump(collections.OrderedDict(b=np.ones(2), a=np.zeros(1)), path)
    assert_same(load_foreign(path), {"b": np.ones(2), "a": np.zeros(1)})


def test_an_array_that_is_pickled_once_and_used_twice_loads_twice(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    array = np.arange(4.0)
    path.write_bytes(pickle.dumps([array, (array,)]))
    assert_same(load_foreign(path), [array, (array,)])


def test_loaded_arrays_can_be_written_to() -> None:
    model = load_foreign(DATA / "joblib_0_13.pkl")
    assert isinstance(model, dict)
    model["a"][0, 0] = 5.0


# What is no model at all.

NOT_MODELS = {
    "empty": (b"", "empty"),
    "html": (b"\n<!DOCTYPE html><html>404</html>", "HTML"),
    "bare_html": (b"<HTML><body>", "HTML"),
    "xml": (b"<?xml version='1.0'?><Error/>", "XML"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git-LFS"),
    "zip": (b"PK\x03\x04rest", "zip"),
    "hdf5": (b"\x89HDF\r\n\x1a\n", "HDF5"),
    "ancient_joblib": (b"ZF0x10", "older than 0.10"),
    "text": (b"hello, world", "not a model file"),
    "x_text": (b"xyz is not zlib", "not a model file"),
    "bz_text": (b"BZ is not bzip2", "not a model file"),
    "protocol_0": (b"cos\nsystem\n(S'true'\ntR.", "not a model file"),
    "only_a_header": (b"\x80\x03", "truncated"),
    "half_a_gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "truncated"),
}


@pytest.mark.parametrize("name", NOT_MODELS)
def test_a_file_that_is_no_model_is_named_for_what_it_is(tmp_path: Path, name: str) -> None:
    content, word = NOT_MODELS[name]
    path = tmp_path / "model.pkl"
    path.write_bytes(content)
    assert word in refused(path)


def test_missing_folder_and_fifo_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "absent.pkl")
    assert "folder" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(tmp_path / "pipe")
    assert "cannot read" in refused(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["joblib_0_13.pkl", "joblib_0_13_zlib.pkl", "pickle_3.pkl"])
def test_a_file_cut_anywhere_is_called_truncated(tmp_path: Path, name: str) -> None:
    content = (DATA / name).read_bytes()
    path = tmp_path / "model.pkl"
    for size in range(2, len(content), 2):
        path.write_bytes(content[:size])
        assert "truncated" in refused(path), size


def test_sizes_are_bounded_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "MAX_BYTES", 1000)
    path = tmp_path / "model.pkl"
    path.write_bytes(b"\x80\x03" + b"N" * 999 + b".")
    assert "more than the 1000" in refused(path)
    path.write_bytes(zlib.compress(b"\x80\x03" + b"\0" * 100_000))
    assert path.stat().st_size < 1000
    assert "unpacks to more than" in refused(path)


# Hostile files. `BOOM` runs if anything in a file is ever called.


class _Boom:
    """Leaves a mark when it is called."""

    ran = False

    def __call__(self, *arguments: object) -> None:
        _Boom.ran = True


BOOM = _Boom()


class _Calls:
    """Pickles as a call of `function(*arguments)`."""

    def __init__(self, function: Any, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def code(function: Any, *arguments: object, protocol: int = 3) -> bytes:
    return pickle.dumps({"ppo2_model/pi/w:0": _Calls(function, *arguments)}, protocol)


def short(text: str) -> bytes:
    raw = text.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


PROTO = b"\x80\x03"
DTYPE = b"cnumpy\ndtype\n" + short("f4") + b"K\x00K\x01\x87R"
WRAPPER = b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81"


def wrapped(shape: bytes, dtype: bytes = DTYPE, data: bytes = b"\0" * 8) -> bytes:
    """A joblib array of `shape` and `dtype` (pickle code), followed by `data`."""
    state = {"subclass": b"cnumpy\nndarray\n", "shape": shape, "order": short("C"), "dtype": dtype}
    items = b"".join(short(key) + value for key, value in state.items())
    return PROTO + WRAPPER + b"}(" + items + b"ub" + data + b"."


def long1(number: int) -> bytes:
    raw = pickle.encode_long(number)
    return b"\x8a" + bytes([len(raw)]) + raw


HOSTILE: dict[str, tuple[bytes, str]] = {
    "os.system": (code(os.system, "exit 3"), "system"),
    "eval": (code(builtins.eval, "BOOM()"), "eval"),
    "eval_protocol_4": (code(builtins.eval, "BOOM()", protocol=4), "eval"),
    "exec_protocol_2": (code(builtins.exec, "BOOM()", protocol=2), "exec"),
    "getattr": (code(builtins.getattr, "", "join"), "getattr"),
    "nested_reduce": (code(os.path.join, _Calls(os.system, "true")), "join"),
    "own_class": (pickle.dumps([BOOM]), "_Boom"),
    "np_load": (code(np.load, "/etc/passwd"), "load"),
    "object_array": (pickle.dumps(np.array([_Calls(os.system, "true")], object)), "type 'O8'"),
    "copyreg": (PROTO + b"ccopyreg\n_reconstructor\n.", "_reconstructor"),
    "joblib_that_opens_files": (PROTO + b"cjoblib.numpy_pickle_compat\nNDArrayWrapper\n.", "NDArr"),
    "dotted_name": (b"\x80\x04\x8c\x05numpy\x8c\x0adtype.type\x93.", "dtype.type"),
    "newline_in_name": (b"\x80\x04\x8c\x05a\n\x1b[b\x8c\x01c\x93.", "asks for"),
    "name_that_is_no_text": (b"\x80\x04K\x01K\x02\x93.", "damaged"),
    "inst": (PROTO + b"(" + short("true") + b"ios\nsystem\n.", "instruction"),
    "obj": (PROTO + b"(cnumpy\ndtype\no.", "instruction"),
    "newobj_ex": (PROTO + b"cnumpy\ndtype\n)}\x92.", "instruction"),
    "persistent_id": (PROTO + b"Pname\n.", "instruction"),
    "extension": (PROTO + b"\x82\x01.", "instruction"),
    "bytearray_of_a_terabyte": (PROTO + b"\x96" + struct.pack("<Q", 1 << 40) + b".", "instruction"),
    "text_of_4_gigabytes": (PROTO + b"X\xff\xff\xff\xff.", "truncated"),
    "frame_of_an_exabyte": (b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b".", "truncated"),
    "memo_far_out": (PROTO + b"cnumpy\nndarray\nr\xff\xff\xff\xff.", "refused"),
    "array_of_a_terabyte": (wrapped(long1(1 << 38) + b"\x85"), "needs 1099511627776 bytes"),
    "shape_that_overflows": (wrapped(long1(1 << 32) * 2 + b"\x86"), "needs"),
    "negative_shape": (wrapped(long1(-1) + b"\x85"), "shape"),
    "shape_of_true": (wrapped(b"\x88\x85"), "shape"),
    "shape_of_text": (wrapped(short("ab")), "shape"),
    "many_dimensions": (wrapped(b"(" + b"K\x01" * 40 + b"t"), "shape"),
    "objects_in_joblib": (wrapped(b"K\x01\x85", DTYPE.replace(b"f4", b"O8")), "type 'O8'"),
    "no_bytes_each": (wrapped(b"K\x01\x85", DTYPE.replace(b"f4", b"V0")), "type 'V0'"),
    "structured": (PROTO + b"cnumpy\ndtype\n](" + short("a") + b"e\x85R.", "type list"),
    "array_without_dtype": (wrapped(b"K\x01\x85", b"K\x01"), "without a type"),
    "subclass": (
        PROTO + WRAPPER + b"}" + short("subclass") + b"cnumpy\ndtype\nsb.",
        "subclass of numpy.ndarray",
    ),
    "reconstruct_of_dtype": (
        PROTO + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\nK\x00\x85C\x01b\x87R.",
        "subclass of numpy.ndarray",
    ),
    "array_without_data": (
        PROTO + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R.",
        "expected arrays and containers",
    ),
    "ndarray_called": (PROTO + b"cnumpy\nndarray\n" + long1(1 << 40) + b"\x85R.", "call"),
    "call_of_a_text": (PROTO + short("true") + b")R.", "a call"),
    "state_for_a_class": (PROTO + WRAPPER[:-2] + b"}b.", "state for"),
    "state_for_a_list": (PROTO + b"]}b.", "state for"),
    "object_of_a_list": (PROTO + b"])\x81.", "no array"),
    "items_for_a_list": (PROTO + b"]K\x00K\x01s.", "items for a list"),
    "odd_items": (PROTO + b"}(K\x00u.", "damaged"),
    "unhashable_key": (PROTO + b"}]K\x01s.", "as key"),
    "unhashable_ordered_key": (PROTO + b"ccollections\nOrderedDict\n]]K\x01\x86a\x85R.", "as key"),
    "list_in_itself": (PROTO + b"]q\x00h\x00a.", "nested too deep"),
    "deep": (PROTO + b"]" * 500 + b"a" * 499 + b".", "nested too deep"),
    # Every level holds the one before twice: 2**60 elements to whoever walks them all.
    "doubling_tuple_as_key": (
        PROTO + b"}K\x01" + b"q\x00h\x00\x86" * 60 + b"K\x01s.",
        "a tuple as key",
    ),
    "doubling_lists": (PROTO + b"K\x01" + b"q\x00h\x00\x86" * 60 + b".", "nested too deep"),
    "wide_doubling": (
        PROTO + b"K\x01" + (b"q\x00(" + b"h\x00" * 100 + b"t") * 6 + b".",
        "nested too deep",
    ),
    "too_many_instructions": (PROTO + b"}" * 1_000_001 + b".", "instructions"),
    "stack_underflow": (PROTO + b"R.", "damaged"),
    "memo_unknown": (PROTO + b"h\x05.", "damaged"),
    "no_such_instruction": (PROTO + b"\xfe.", "instruction"),
    "future_protocol": (b"\x80\x77.", "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(os, "system", BOOM)
    monkeypatch.setattr(builtins, "BOOM", BOOM, raising=False)
    content, word = HOSTILE[name]
    path = tmp_path / "model.pkl"
    path.write_bytes(content)
    assert word in refused(path)
    assert not _Boom.ran


def test_the_hostile_files_would_run_in_a_plain_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "BOOM", BOOM, raising=False)
    try:
        pickle.loads(HOSTILE["eval"][0])
        assert _Boom.ran
    finally:
        _Boom.ran = False


def test_code_in_the_object_array_of_a_joblib_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    joblib.dump({"w": np.array([_Calls(os.system, "true")], object)}, path)
    assert "type 'O8'" in refused(path)


def test_wrapped_arrays_of_the_tests_are_well_formed(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(wrapped(b"K\x02\x85"))
    assert_same(load_foreign(path), np.zeros(2, "f4"))


@fuzz(150)
@given(st.binary(max_size=80))
def test_any_bytes_load_or_are_refused(noise: bytes) -> None:
    for content in (PROTO + noise, b"\x80\x04" + noise):
        with contextlib.suppress(RefusedPickleError):
            read_plain_pickle(content)


@pytest.mark.parametrize(
    "name", ["joblib_0_13.pkl", "joblib_0_13_list.pkl", "joblib_0_13_zlib.pkl", "pickle_3.pkl"]
)
@fuzz(150)
@given(data=st.data())
def test_a_damaged_file_loads_or_is_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(data.draw(damaged((DATA / name).read_bytes(), most=6)))
    with contextlib.suppress(FileFormatError):
        load_foreign(path)


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)])
@fuzz(60)
@given(data=st.data())
def test_a_damaged_file_of_todays_joblib_loads_or_is_refused(
    tmp_path: Path, compress: Any, data: st.DataObject
) -> None:
    path = tmp_path / "model.pkl"
    joblib.dump(VALUES, path, compress=compress)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    with contextlib.suppress(FileFormatError):
        load_foreign(path)
