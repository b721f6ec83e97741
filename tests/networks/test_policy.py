"""The networks against the original's outputs, and what every row of the table promises."""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from fl_saliency.base import AttentionGeometry
from fl_saliency.errors import InputError
from fl_saliency.networks.blocks import dense, latent_of, scale_pixels, trunk
from fl_saliency.networks.policy import (
    build_network,
    build_policy,
    count_parameters,
    get_arrays,
    named_variables,
    orthogonal,
    set_arrays,
)
from fl_saliency.networks.registry import (
    _TABLE,
    get_network,
    import_extra,
    network_names,
    register,
)
from tests.golden.weights import golden_weights

GOLDEN = Path(__file__).parent.parent / "golden"
NETWORKS = json.loads((GOLDEN / "networks.json").read_text())["networks"]
OUTPUTS = np.load(GOLDEN / "networks.npz")


def golden_obs() -> np.ndarray:
    return np.random.RandomState(7).randint(0, 256, size=(3, 84, 84, 4)).astype(np.uint8)


def test_the_table_holds_the_originals_networks_and_the_compressed_ones() -> None:
    compressed = ["dqn", "dqn_half", "dqn_half_max", "dqn_max"]
    assert sorted(network_names()) == sorted([*NETWORKS, *compressed])


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_names_and_counts_equal_the_originals(name: str) -> None:
    golden = NETWORKS[name]
    model = build_policy(name, 4)
    expected = [(v["name"], tuple(v["shape"])) for v in golden["trainable_variables_n4"]]
    assert [(v.name, v.shape) for v in named_variables(model)] == expected
    assert count_parameters(model) == golden["param_count"]["n4"]

    set_arrays(model, golden_weights(expected))
    outputs = model(golden_obs())
    for key, output in zip(("logits", "value", "latent", "extra"), outputs, strict=True):
        reference = OUTPUTS[f"{name}/{key}"]
        scale = max(float(np.abs(reference).max()), 1e-30)
        difference = np.abs(np.asarray(output).reshape(reference.shape) - reference).max()
        assert difference <= 1e-5 * scale, key


@pytest.mark.parametrize("name", NETWORKS)
def test_nine_actions_and_bare_network_have_the_originals_counts(name: str) -> None:
    counts = NETWORKS[name]["param_count"]
    assert count_parameters(build_policy(name, 9)) == counts["n9"]
    assert count_parameters(build_network(name)) == counts["without_heads"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_has_a_map_of_the_size_that_its_geometry_implies(name: str) -> None:
    spec = get_network(name)
    latent, attention = build_network(name).outputs
    assert latent.shape == (None, 512)
    assert spec.source
    if spec.geometry is None:
        assert attention.shape == (None, 7, 7)
        return
    geometry = spec.geometry
    cells = (84 + 2 * geometry.padding - geometry.receptive_field) // geometry.stride + 1
    assert attention.shape == (None, cells, cells)


def test_attention_of_the_daqn_network_sums_to_one_and_of_rsppo_to_two() -> None:
    for name, mass in (("cnn_daqn", 1.0), ("cnn_rsppo", 2.0), ("cnn_sparse_fls_norm", 1.0)):
        model = build_policy(name, 4, seed=0)
        attention = np.asarray(model(golden_obs())[3])
        np.testing.assert_allclose(attention.sum(axis=(1, 2)), mass, rtol=1e-5)


def test_initialisation_is_orthogonal_with_baselines_gains_and_repeats_with_its_seed() -> None:
    arrays = get_arrays(build_policy("cnn_sparse_fls", 4, seed=3))
    gains = {"ppo2_model/pi/w:0": 0.01, "ppo2_model/vf/w:0": 1.0}
    for name, array in arrays.items():
        if name.endswith("/b:0"):
            assert not array.any()
            continue
        matrix = array.reshape(-1, array.shape[-1])
        small = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
        gain = gains.get(name, np.sqrt(2))
        np.testing.assert_allclose(small, gain**2 * np.eye(len(small)), atol=1e-5)
    again = get_arrays(build_policy("cnn_sparse_fls", 4, seed=3))
    other = get_arrays(build_policy("cnn_sparse_fls", 4, seed=4))
    assert all((arrays[name] == again[name]).all() for name in arrays)
    assert any((arrays[name] != other[name]).any() for name in arrays)


def test_orthogonal_takes_the_wide_factor_of_a_wide_matrix() -> None:
    wide = orthogonal(np.random.default_rng(0), (2, 5), 1.0)
    np.testing.assert_allclose(wide @ wide.T, np.eye(2), atol=1e-6)


def test_bfloat16_outputs_are_float32_and_near() -> None:
    obs = golden_obs()
    full = build_policy("cnn_sparse_fls", 4, seed=0)
    half = build_policy("cnn_sparse_fls", 4, seed=0, precision="bfloat16")
    assert keras.config.dtype_policy().name == "float32"
    for exact, rough in zip(full(obs), half(obs), strict=True):
        assert np.asarray(rough).dtype == np.float32
        scale = float(np.abs(exact).max())
        assert np.abs(np.asarray(exact) - np.asarray(rough)).max() < 0.05 * scale


def test_an_unknown_network_names_the_nearest() -> None:
    with pytest.raises(InputError, match="'cnn_spars_fls'; did you mean 'cnn_sparse_fls'"):
        build_policy("cnn_spars_fls", 4)


def test_wrong_sizes_and_precisions_are_refused() -> None:
    with pytest.raises(InputError, match="num_actions 0"):
        build_policy("cnn", 0)
    with pytest.raises(InputError, match="unknown precision 'float8'"):
        build_policy("cnn", 4, precision="float8")


def test_a_users_network_is_built_and_named_like_ours() -> None:
    geometry = AttentionGeometry(receptive_field=8, stride=4, padding=0)
    rows = [(8, 8, 4, "valid")]

    @register("mine", geometry=geometry, source="a test")
    def mine(obs: object) -> tuple[object, object]:
        features = trunk(scale_pixels(obs), rows)
        return latent_of(features), keras.ops.mean(features, axis=-1)

    try:
        model = build_policy("mine", 3, seed=1)
        assert model(golden_obs())[3].shape == (3, 20, 20)
        assert [v.name for v in named_variables(model)][:2] == [
            "ppo2_model/pi/c1/w:0",
            "ppo2_model/pi/c1/b:0",
        ]
        with pytest.raises(InputError, match="'mine' is registered already"):
            register("mine", geometry=geometry, source="a test")(mine)
    finally:
        del _TABLE["mine"]


def test_extra_import_of_a_missing_module_is_one_line() -> None:
    with pytest.raises(InputError, match="--extra-import no_such_module: cannot import it"):
        import_extra(["no_such_module"])


def test_a_mistake_in_an_extra_module_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_net.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(InputError, match=r"--extra-import broken_net: .*SyntaxError"):
        import_extra(["broken_net"])


def test_a_layer_without_kernel_and_bias_is_refused_by_name() -> None:
    inputs = keras.Input((4,))
    latent = keras.layers.Dense(2, use_bias=False, name="bare")(inputs)
    model = keras.Model(inputs, (dense(latent, "pi", 3), dense(latent, "vf", 1)))
    with pytest.raises(InputError, match=r"layer 'bare' .*must have a kernel and a bias"):
        named_variables(model)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_variable_of_every_network_is_trained(name: str) -> None:
    model = build_policy(name, 4, seed=0)
    with tf.GradientTape() as tape:
        logits, value, *_ = model(golden_obs()[:1])
        loss = tf.reduce_sum(logits * [[1.0, 2.0, 3.0, 4.0]]) + tf.reduce_sum(value)
    variables = [item.variable.value for item in named_variables(model)]
    gradients = tape.gradient(loss, variables)
    for item, gradient in zip(named_variables(model), gradients, strict=True):
        assert gradient is not None, item.name
        assert np.isfinite(gradient).all(), item.name
