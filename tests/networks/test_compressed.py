"""The compressed networks: their sizes, and what their attention shows."""

import keras
import numpy as np
import pytest

from fl_saliency.networks.policy import build_policy, count_parameters

ACTIONS = 9
VALUE_HEAD = 512 + 1
"""What a policy has beside the Q-network of the paper."""


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # convolutions + fully connected + output, by hand; the paper says 1.69M and 43.1k
        ("dqn", 77_984 + 1_606_144 + 4_617),
        ("dqn_max", 77_984 + 33_280 + 4_617),
        ("dqn_half", 21_584 + 803_328 + 4_617),
        ("dqn_half_max", 21_584 + 16_896 + 4_617),
    ],
)
def test_parameters_are_those_of_the_paper_and_a_value_head(name: str, parameters: int) -> None:
    assert count_parameters(build_policy(name, ACTIONS)) == parameters + VALUE_HEAD


@pytest.fixture(scope="module")
def obs() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (3, 84, 84, 4), dtype=np.uint8)


@pytest.mark.parametrize("name", ["dqn_max", "dqn_half_max"])
def test_attention_is_what_the_maximum_lets_through(name: str, obs: np.ndarray) -> None:
    model = build_policy(name, 4, seed=1)
    features = keras.Model(model.input, model.get_layer("c3").output)(obs).numpy()
    attention = np.asarray(model(obs)[3])
    flat = features.reshape(len(obs), 49, -1)
    expected = np.zeros((len(obs), 49), np.float32)
    for state, channels in enumerate(flat.transpose(0, 2, 1)):
        for channel in channels:
            expected[state, channel.argmax()] += channel.max()
    assert attention.shape == (3, 7, 7)
    np.testing.assert_allclose(attention.reshape(3, 49), expected, rtol=1e-5)


def test_the_plain_ones_are_the_nature_network(obs: np.ndarray) -> None:
    one, other = (build_policy(name, 4, seed=2) for name in ("dqn", "cnn"))
    for found, expected in zip(one(obs)[:3], other(obs)[:3], strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_half_network_has_half_the_feature_maps(precision: str) -> None:
    model = build_policy("dqn_half", 4, precision=precision)
    assert [model.get_layer(f"c{i}").filters for i in (1, 2, 3)] == [16, 32, 32]
