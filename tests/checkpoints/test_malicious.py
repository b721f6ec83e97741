"""Pickles that run code in Python's reader and in joblib's: ours refuses each, and runs nothing.

Each payload makes one file, its marker. That it would is shown by loading it in another process.
"""

import argparse
import builtins
import bz2
import functools
import gzip
import io
import logging
import lzma
import operator
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import timeit
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from fl_saliency.checkpoints import foreign
from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.errors import FileFormatError

Payload = Callable[[str], bytes]
"""The pickle that makes the file of this name."""


# --- pickles of objects -------------------------------------------------------------------------


class Calls:
    """Pickles as a call of `function(*arguments)`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


def code(marker: str) -> str:
    return f"open({marker!r}, 'w').close()"


def calling(function: Any, *arguments: Any, protocol: int = 4) -> Payload:
    """A call within a model; `{}` in a text argument, or in a list of them, is the marker."""

    def filled(argument: Any, marker: str) -> Any:
        if isinstance(argument, str):
            return argument.replace("{}", marker).replace("{code}", code(marker))
        return [filled(a, marker) for a in argument] if type(argument) is list else argument

    def build(marker: str) -> bytes:
        call = Calls(function, *(filled(argument, marker) for argument in arguments))
        return pickle.dumps({"ppo2_model/pi/w:0": call}, protocol)

    return build


def hidden_in(place: Callable[[Calls], Any]) -> Payload:
    """A call somewhere within an object, as joblib writes it."""

    def build(marker: str) -> bytes:
        out = io.BytesIO()
        joblib.dump(place(Calls(builtins.eval, code(marker))), out)
        return out.getvalue()

    return build


def as_object_array(call: Calls) -> Any:
    return {"w": np.array([call], object)}


def as_metadata(call: Calls) -> Any:
    return {"w": np.dtype("f4", metadata={"note": call})}


def within_a_pickle(marker: str) -> bytes:
    inner = pickle.dumps(Calls(builtins.eval, code(marker)))
    return pickle.dumps([Calls(pickle.loads, inner)])


def lazily(marker: str) -> bytes:
    """Calls only admitted-looking containers: the last one draws from a map over a function."""
    return pickle.dumps(Calls(list, Calls(map, os.system, [f"touch {marker}"])))


def by_a_partial(marker: str) -> bytes:
    return pickle.dumps(Calls(operator.call, functools.partial(os.system, f"touch {marker}")))


def by_joblib(marker: str) -> bytes:
    return pickle.dumps(Calls(joblib.dump, 0, marker))


# --- pickles written by hand --------------------------------------------------------------------


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


EVAL = b"cbuiltins\neval\n"
SYSTEM = b"cposix\nsystem\n"


def by_hand(protocol: int, *parts: bytes) -> Payload:
    """The parts as they are, with `CODE` and `TOUCH` for texts that make the marker."""

    def build(marker: str) -> bytes:
        body = b"".join(parts)
        body = body.replace(b"CODE", text(code(marker))).replace(b"TOUCH", text(f"touch {marker}"))
        return b"\x80" + bytes([protocol]) + body.replace(b"MARKER", text(marker)) + b"."

    return build


GOOD = pickle.dumps({"w": np.ones(2, "f4")}, 3)[2:-1]
WRAPPER = b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81"

PAYLOADS: dict[str, Payload] = {
    "os.system": calling(os.system, "touch {}"),
    "os.system, protocol 2": calling(os.system, "touch {}", protocol=2),
    "os.mkdir": calling(os.mkdir, "{}"),
    "eval": calling(builtins.eval, "{code}"),
    "exec": calling(builtins.exec, "{code}"),
    "exec, protocol 5": calling(builtins.exec, "{code}", protocol=5),
    "open": calling(builtins.open, "{}", "w"),
    "subprocess.Popen": calling(subprocess.Popen, ["touch", "{}"]),
    "subprocess.run": calling(subprocess.run, ["touch", "{}"]),
    "subprocess.getoutput": calling(subprocess.getoutput, "touch {}"),
    "timeit": calling(timeit.timeit, "{code}", "pass", timeit.default_timer, 1),
    "logging.FileHandler": calling(logging.FileHandler, "{}"),
    "numpy.memmap": calling(np.memmap, "{}", "u1", "w+", 0, 1),
    "numpy.savetxt": calling(np.savetxt, "{}", [1.0]),
    "joblib.dump": by_joblib,
    "functools.partial": by_a_partial,
    "a map that is drawn from": lazily,
    "a pickle within the pickle": within_a_pickle,
    "in an array of objects": hidden_in(as_object_array),
    "in the metadata of a dtype": hidden_in(as_metadata),
    "posix.system by name": by_hand(3, SYSTEM, b"TOUCH\x85R"),
    "before a model that is right": by_hand(3, EVAL, b"CODE\x85R0", GOOD),
    "as the key of a dict": by_hand(3, b"}", EVAL, b"CODE\x85RK\x01s"),
    "memo: a function fetched again": by_hand(3, SYSTEM, b"q\x000h\x00TOUCH\x85R"),
    "memo: a function far out": by_hand(
        3, SYSTEM, b"r\xff\x00\x00\x000j\xff\x00\x00\x00TOUCH\x85R"
    ),
    "memo: a name made of fetched texts": by_hand(
        4, text("builtins"), b"\x940", text("eval"), b"\x940h\x00h\x01\x93CODE\x85R"
    ),
    "memo: an admitted name replaced": by_hand(
        3, b"cnumpy\ndtype\nq\x000", EVAL, b"q\x000h\x00CODE\x85R"
    ),
    "names from short texts": by_hand(4, b"\x8c\x05posix\x8c\x06system\x93TOUCH\x85R"),
    "a dotted name": by_hand(
        4,
        *(text("pathlib"), text("Path.touch"), b"\x93"),
        *(text("pathlib"), text("Path"), b"\x93MARKER\x85R\x85R"),
    ),
    "Python 2's names": by_hand(2, b"c__builtin__\neval\nCODE\x85R"),
    "Python 2's modules": by_hand(2, b"ccommands\ngetoutput\nTOUCH\x85R"),
    "INST": by_hand(3, b"(TOUCHiposix\nsystem\n"),
    "OBJ": by_hand(3, b"(", SYSTEM, b"TOUCHo"),
    "EXT1": by_hand(3, b"\x82\x4dTOUCH\x85R"),
    "EXT2": by_hand(3, b"\x83\x4d\x00TOUCH\x85R"),
    "EXT4": by_hand(3, b"\x84\x4d\x00\x00\x00TOUCH\x85R"),
    "BUILD: a __setstate__ that BUILD calls": by_hand(
        3, b"cargparse\nNamespace\n)R}", text("__setstate__"), EVAL, b"sbCODEb"
    ),
    "BUILD: in the state of an array's wrapper": by_hand(
        3, WRAPPER, b"}", text("shape"), EVAL, b"CODE\x85Rsb"
    ),
    "BUILD: as the subclass of an array": by_hand(
        3, WRAPPER, b"}", text("subclass"), EVAL, b"CODE\x85Rsb"
    ),
}

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda content: content,
    "zlib": zlib.compress,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lzma": functools.partial(lzma.compress, format=lzma.FORMAT_ALONE),
}

LOAD_ALL = """
import copyreg, joblib, pathlib, sys
copyreg.add_extension("posix", "system", 0x4d)
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pkl")):
    try:
        joblib.load(path)
    except Exception:
        pass
"""


def test_every_payload_would_run_in_a_plain_reader(tmp_path: Path) -> None:
    markers = {name: tmp_path / f"{index}.ran" for index, name in enumerate(PAYLOADS)}
    for name, payload in PAYLOADS.items():
        markers[name].with_suffix(".pkl").write_bytes(payload(str(markers[name])))
    command = [sys.executable, "-W", "ignore", "-c", LOAD_ALL, str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert [name for name, marker in markers.items() if not marker.exists()] == []


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_is_refused_and_does_not_run(name: str, compression: str, tmp_path: Path) -> None:
    marker, path = tmp_path / "ran", tmp_path / "model.pkl"
    path.write_bytes(COMPRESSIONS[compression](PAYLOADS[name](str(marker))))
    with pytest.raises(FileFormatError) as caught:
        load_foreign(path)
    assert not marker.exists()
    assert str(caught.value).startswith(f"{path}: refused: ")
    assert "\n" not in str(caught.value)


# What runs nothing by itself, but has no place in a model.
ODD: dict[str, bytes] = {
    "a persistent id": b"\x80\x03Pname\n.",
    "a persistent id from the stack": b"\x80\x03K\x01Q.",
    "_codecs.encode": b"\x80\x02c_codecs\nencode\n" + text("x") + text("latin1") + b"\x86R.",
    "a masked array": pickle.dumps(np.ma.masked_array([1.0]), 4),
    "an array in a mapped file": pickle.dumps(Calls(np.memmap, "/etc/hostname"), 4),
    "a wrapper for a matrix": b"\x80\x03"
    + WRAPPER
    + b"}"
    + text("subclass")
    + b"cnumpy\nmatrix\nsb.",
    "a wrapper for a wrapper": b"\x80\x03"
    + WRAPPER
    + b"}"
    + text("subclass")
    + WRAPPER[:-2]
    + b"sb.",
    "a namespace": pickle.dumps(argparse.Namespace(a=1), 4),
    "a path": pickle.dumps(pathlib.PurePosixPath("/etc/passwd"), 4),
    "a set": pickle.dumps({1, 2}, 4),
    "a complex number": pickle.dumps(1j, 4),
    "an array of dates": pickle.dumps(np.zeros(2, "M8[s]"), 4),
    "a dtype with fields": pickle.dumps(np.zeros(2, [("a", "f4")]), 4),
}


@pytest.mark.parametrize("name", ODD)
def test_what_no_model_holds_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(ODD[name])
    with pytest.raises(FileFormatError, match="refused: "):
        load_foreign(path)


@pytest.mark.parametrize("compression", list(COMPRESSIONS)[1:])
def test_a_bomb_is_refused_before_it_fills_the_memory(
    compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "MAX_BYTES", 10_000)
    path = tmp_path / "model.pkl"
    path.write_bytes(COMPRESSIONS[compression](b"\x80\x03" + bytes(1_000_000)))
    assert path.stat().st_size < 10_000
    with pytest.raises(FileFormatError, match="unpacks to more than the 10000 bytes"):
        load_foreign(path)


def test_an_lzma_file_that_claims_a_huge_dictionary_is_refused(tmp_path: Path) -> None:
    content = bytearray(COMPRESSIONS["lzma"](b"\x80\x03N."))
    content[1:5] = struct.pack("<I", 1 << 31)
    path = tmp_path / "model.pkl"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="not a model file, or a damaged one"):
        load_foreign(path)
