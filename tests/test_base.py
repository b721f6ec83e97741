"""Shared ground: atomic files, strict JSON, output folders, errors that name the nearest, seeds."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.base import atomic_path, prepare_output_dir, strict_json, write_json
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


def test_an_output_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    assert prepare_output_dir(path) == path
    assert prepare_output_dir(path) == path
    assert not list(path.iterdir())


def test_an_output_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").touch()
    with pytest.raises(InputError, match=r"found 'model\.pkl' in it"):
        prepare_output_dir(tmp_path)
    assert prepare_output_dir(tmp_path, keep=("model.pkl",)) == tmp_path


def test_a_file_in_place_of_the_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a folder, found a file"):
        prepare_output_dir(tmp_path / "file")
    with pytest.raises(InputError, match="cannot write there"):
        prepare_output_dir(tmp_path / "file" / "below")


def test_an_output_folder_that_cannot_be_written_is_refused() -> None:
    # A file system that nobody can write to, root included.
    with pytest.raises(InputError, match="cannot write there"):
        prepare_output_dir(Path("/proc/fl-saliency"))


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
