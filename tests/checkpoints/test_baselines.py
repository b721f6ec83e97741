"""Baselines' model.pkl: the original's file in full, ours as the original would write it."""

import json
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from fl_saliency.checkpoints.baselines import (
    adam_slots,
    match_variables,
    read_model,
    slot_names,
    write_model,
)
from fl_saliency.errors import FileFormatError

GOLDEN = Path(__file__).parents[1] / "golden"
ORIGINAL = GOLDEN / "original_run" / "model.pkl"
DATA = Path(__file__).parent / "data"
NETWORKS: dict[str, Any] = json.loads((GOLDEN / "networks.json").read_text())["networks"]

Expected = list[tuple[str, tuple[int, ...]]]


def variables(network: str, actions: int = 4) -> Expected:
    rows = NETWORKS[network][f"trainable_variables_n{actions}"]
    return [(row["name"], tuple(row["shape"])) for row in rows]


SMALL: Expected = [
    ("ppo2_model/pi/c1/w:0", (2, 2, 1, 3)),
    ("ppo2_model/pi/c1/b:0", (1, 3, 1, 1)),
    ("ppo2_model/pi/w:0", (3, 4)),
]


def arrays(expected: Expected, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in expected}


def write(path: Path, expected: Expected) -> None:
    write_model(
        path,
        trainable=arrays(expected),
        adam_m=arrays(expected, 1),
        adam_v=arrays(expected, 2),
        beta1_power=0.9,
        beta2_power=0.999,
    )


def refused(path: Path, expected: Expected) -> str:
    with pytest.raises(FileFormatError) as caught:
        match_variables(read_model(path), expected, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def dump(path: Path, value: object) -> Path:
    joblib.dump(value, path)
    return path


# The original's file.


def test_the_originals_model_matches_its_network_in_full() -> None:
    matched = match_variables(read_model(ORIGINAL), variables("cnn_daqn"), ORIGINAL)
    plain = joblib.load(ORIGINAL)
    assert list(matched) == list(plain)
    assert all(np.array_equal(matched[name], plain[name]) for name in plain)
    assert all(array.dtype == np.float32 for array in matched.values())


def test_the_originals_adam_state_is_that_of_48_steps() -> None:
    """3072 timesteps are 3 updates of 4 epochs of 4 minibatches."""
    slots = adam_slots(match_variables(read_model(ORIGINAL), variables("cnn_daqn"), ORIGINAL))
    assert slots is not None
    assert slots.beta1_power == pytest.approx(0.9**49, rel=1e-5)
    assert slots.beta2_power == pytest.approx(0.999**49, rel=1e-5)
    assert list(slots.m) == list(slots.v) == [name for name, _ in variables("cnn_daqn")]
    assert slots.m["ppo2_model/pi/w:0"].shape == (512, 4)
    assert all((array >= 0).all() for array in slots.v.values())


def test_writing_the_originals_arrays_gives_the_originals_file_byte_for_byte(
    tmp_path: Path,
) -> None:
    matched = match_variables(read_model(ORIGINAL), variables("cnn_daqn"), ORIGINAL)
    slots = adam_slots(matched)
    assert slots is not None
    write_model(
        tmp_path / "model.pkl",
        trainable={name: matched[name] for name in slots.m},
        adam_m=slots.m,
        adam_v=slots.v,
        beta1_power=slots.beta1_power,
        beta2_power=slots.beta2_power,
    )
    # Today's NumPy pickles the two flags of a dtype as False, True where 1.16 wrote 0, 1.
    wanted = ORIGINAL.read_bytes().replace(b"K\x00K\x01\x87q\x0eR", b"\x89\x88\x87q\x0eR", 1)
    assert (tmp_path / "model.pkl").read_bytes() == wanted


# Ours.


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_is_written_with_the_originals_keys_in_its_order(
    tmp_path: Path, network: str
) -> None:
    path = tmp_path / "model.pkl"
    thin: Expected = [(name, (1,) * len(shape)) for name, shape in variables(network)]
    write(path, thin)
    rows = NETWORKS[network]["model_pkl_keys_in_order_n4"]
    assert list(joblib.load(path)) == [row["name"] for row in rows]


def test_types_and_shapes_are_those_of_the_originals_own_run(tmp_path: Path) -> None:
    structure = json.loads((GOLDEN / "train_example" / "model_pkl_structure.json").read_text())
    path = tmp_path / "model.pkl"
    write(path, variables("cnn_sparse_fls"))
    found = [
        (name, type(value).__name__, str(value.dtype), list(value.shape))
        for name, value in joblib.load(path).items()
    ]
    assert found == [
        (row["name"], row["type"], row["dtype"], row["shape"])
        for row in structure["entries_in_order"]
    ]


def test_a_written_model_reads_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    write(path, SMALL)
    matched = match_variables(read_model(path), SMALL, path)
    slots = adam_slots(matched)
    assert slots is not None
    for name, _ in SMALL:
        assert np.array_equal(matched[name], arrays(SMALL)[name])
        assert np.array_equal(slots.m[name], arrays(SMALL, 1)[name])
        assert np.array_equal(slots.v[name], arrays(SMALL, 2)[name])
    assert slots.beta1_power == np.float32(0.9)


def test_arrays_in_other_layouts_and_types_are_written_by_value(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    given = {"w:0": np.arange(6.0).reshape(2, 3).T, "b:0": np.float64(2.5).reshape(())}
    zero = {name: np.zeros_like(value) for name, value in given.items()}
    write_model(path, trainable=given, adam_m=zero, adam_v=zero, beta1_power=1, beta2_power=1)
    model = joblib.load(path)
    assert np.array_equal(model["w:0"], given["w:0"])
    assert model["w:0"].dtype == np.float32
    assert model["w:0"].flags.c_contiguous
    assert model["b:0"].shape == ()


def test_writing_refuses_slots_of_other_variables_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    model = arrays(SMALL)
    with pytest.raises(ValueError, match="keys"):
        write_model(path, trainable=model, adam_m=model, adam_v={}, beta1_power=1, beta2_power=1)
    flat = {name: value.ravel() for name, value in model.items()}
    with pytest.raises(ValueError, match="Adam_1:0 has shape"):
        write_model(path, trainable=model, adam_m=model, adam_v=flat, beta1_power=1, beta2_power=1)
    assert list(tmp_path.iterdir()) == []


# Matching.


def test_a_model_without_optimizer_state_matches(tmp_path: Path) -> None:
    path = dump(tmp_path / "model.pkl", arrays(SMALL))
    matched = match_variables(read_model(path), SMALL, path)
    assert list(matched) == [name for name, _ in SMALL]
    assert adam_slots(matched) is None


def test_variables_are_matched_by_name_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    model = arrays(SMALL)
    path = dump(tmp_path / "model.pkl", dict(reversed(model.items())))
    matched = match_variables(read_model(path), SMALL, path)
    assert list(matched) == [name for name, _ in SMALL]
    assert all(np.array_equal(matched[name], model[name]) for name in model)


def test_a_renamed_variable_fails_by_name(tmp_path: Path) -> None:
    model = arrays(SMALL)
    model["ppo2_model/pi/conv1/w:0"] = model.pop("ppo2_model/pi/c1/w:0")
    path = dump(tmp_path / "model.pkl", model)
    assert "'ppo2_model/pi/c1/w:0' is missing" in refused(path, SMALL)


def test_a_surplus_variable_fails_by_name(tmp_path: Path) -> None:
    path = dump(tmp_path / "model.pkl", arrays(SMALL) | {"ppo2_model/pi/h9/w:0": np.ones(1)})
    assert "unexpected variable 'ppo2_model/pi/h9/w:0'" in refused(path, SMALL)


def test_a_variable_of_another_shape_fails_with_both_shapes(tmp_path: Path) -> None:
    model = arrays(SMALL)
    model["ppo2_model/pi/c1/b:0"] = model["ppo2_model/pi/c1/b:0"].reshape(3)
    path = dump(tmp_path / "model.pkl", model)
    assert "'ppo2_model/pi/c1/b:0' has shape [3], expected [1, 3, 1, 1]" in refused(path, SMALL)


def test_another_action_count_is_said_as_such() -> None:
    message = refused(ORIGINAL, variables("cnn_daqn", 9))
    assert "model has 4 actions, the game has 9" in message


def test_a_model_of_another_network_fails() -> None:
    assert "'ppo2_model/pi/c1/w:0' has shape" in refused(ORIGINAL, variables("cnn_dense_fls"))
    assert "'ppo2_model/pi/h1/h1/w:0' is missing" in refused(
        ORIGINAL, variables("cnn_sparse_fls_x3")
    )
    assert "unexpected variable 'ppo2_model/pi/h1/w:0'" in refused(ORIGINAL, variables("cnn"))


@pytest.mark.parametrize("lost", ["beta2_power:0", *slot_names("ppo2_model/pi/w:0")])
def test_half_of_the_optimizer_state_is_an_error(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "model.pkl"
    write(path, SMALL)
    model = joblib.load(path)
    del model[lost]
    dump(path, model)
    assert f"{lost!r} is missing" in refused(path, SMALL)


def test_a_slot_of_another_shape_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    write(path, SMALL)
    model = joblib.load(path)
    slot = slot_names("ppo2_model/pi/w:0")[1]
    model[slot] = model[slot].T
    assert f"{slot!r} has shape [4, 3], expected [3, 4]" in refused(dump(path, model), SMALL)


# The old list form.


@pytest.mark.parametrize("with_slots", [False, True])
def test_the_list_form_matches_by_order(tmp_path: Path, with_slots: bool) -> None:
    path = tmp_path / "model.pkl"
    write(path, SMALL)
    model = joblib.load(path)
    size = len(model) if with_slots else len(SMALL)
    dump(path, list(model.values())[:size])
    matched = match_variables(read_model(path), SMALL, path)
    assert list(matched) == list(model)[:size]
    assert all(np.array_equal(matched[name], model[name]) for name in matched)


def test_the_list_form_of_another_length_or_shape_is_an_error(tmp_path: Path) -> None:
    values = list(arrays(SMALL).values())
    path = dump(tmp_path / "model.pkl", values[:2])
    assert "a list of 2 arrays, expected 3 (or 11 with the optimizer's)" in refused(path, SMALL)
    dump(path, [values[0].reshape(-1), *values[1:]])
    assert "'ppo2_model/pi/c1/w:0' has shape [12]" in refused(path, SMALL)
    dump(path, [*values[:2], values[2][:, :2]])
    assert "model has 2 actions, the game has 4" in refused(path, SMALL)


# What is in no model.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (3.5, "holds a float, expected a dict"),
        ({}, "holds no variables"),
        ([], "holds no variables"),
        ({"a:0": "text"}, "variable 'a:0' is a str"),
        ({"a:0": np.arange(3)}, "'a:0' is of type int64, expected floats"),
        ([np.ones(2), None], "'number 1' is a NoneType"),
        ({"a:0": np.array([1.0, np.nan])}, "'a:0' holds NaN or infinity"),
        ({"a:0": np.float64(1e300)}, "'a:0' holds NaN or infinity"),
        ({"a:0": np.float32(np.inf)}, "'a:0' holds NaN or infinity"),
    ],
)
def test_a_file_that_holds_no_model_is_refused(tmp_path: Path, content: Any, words: str) -> None:
    path = dump(tmp_path / "model.pkl", content)
    with pytest.raises(FileFormatError, match=words):
        read_model(path)


def test_float64_models_are_read_as_float32(tmp_path: Path) -> None:
    path = dump(tmp_path / "model.pkl", {"a:0": np.array([0.1, 0.2])})
    (array,) = read_model(path).arrays
    assert array.dtype == np.float32
    assert np.array_equal(array, np.array([0.1, 0.2], np.float32))
