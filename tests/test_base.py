"""Shared ground: atomic files, strict JSON, errors that name the nearest, seeds."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.base import atomic_path, file_sha256, strict_json, write_json
from fl_saliency.errors import InputError, MissingExtraError, unknown_choice
from fl_saliency.seeding import check_seed, derive_seed, stream


def test_an_atomic_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")

    def fail_halfway() -> None:
        with atomic_path(target) as partial:
            partial.write_text("half")
            assert partial.suffix == ".txt"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert target.read_text() == "old"
    with atomic_path(target) as partial:
        partial.write_text("new")
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_strict_json_has_no_nan_and_no_foreign_types(tmp_path: Path) -> None:
    value = {
        "nan": math.nan,
        "inf": [np.float32(np.inf)],
        "array": np.array([[1.5, np.nan]]),
        "path": tmp_path,
        1: (np.int64(3), True, None),
    }
    assert strict_json(value) == {
        "nan": None,
        "inf": [None],
        "array": [[1.5, None]],
        "path": str(tmp_path),
        "1": [3, True, None],
    }
    write_json(tmp_path / "x.json", value)
    assert json.loads((tmp_path / "x.json").read_text())["nan"] is None


def test_the_sha256_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert file_sha256(tmp_path / "abc").startswith("ba7816bf8f01cfea414140de5dae2223")


def test_an_unknown_choice_names_the_nearest_or_all() -> None:
    assert "did you mean 'beta'?" in str(unknown_choice("letter", "bta", ["alpha", "beta"]))
    assert "choose one of: alpha, beta" in str(unknown_choice("letter", "9", ["beta", "alpha"]))


def test_a_missing_extra_says_what_to_install() -> None:
    error = MissingExtraError("torch", "reading .pt files")
    assert str(error) == "reading .pt files needs an extra: pip install '.[torch]' in the checkout"
    assert error.exit_status == 2


def test_streams_differ_by_name_seed_and_index_and_repeat() -> None:
    draws = [
        stream("env", 1).random(),
        stream("env", 2).random(),
        stream("policy", 1).random(),
        stream("env", 1, 0).random(),
        stream("env", 1, 1).random(),
    ]
    assert len(set(draws)) == len(draws)
    assert stream("env", 1, 1).random() == draws[-1]
    assert 0 <= derive_seed("env", 1, 2, 3) < 2**31
    assert derive_seed("env", 1, 2, 3) == derive_seed("env", 1, 2, 3)


@pytest.mark.parametrize("value", [-1, 2**31])
def test_a_seed_out_of_range_names_its_flag(value: int) -> None:
    with pytest.raises(InputError, match=f"--train-seed {value}: expected a seed"):
        check_seed("--train-seed", value)
