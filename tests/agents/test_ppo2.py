"""PPO2 against the original's losses, gradients, weights and GAE returns."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from fl_saliency.agents.ppo2.config import PPO2Config, count_updates
from fl_saliency.agents.ppo2.gae import gae_returns, time_major_to_flat
from fl_saliency.agents.ppo2.learner import PPO2Learner
from fl_saliency.agents.ppo2.losses import LOSS_NAMES, Batch, normalise_advantages, ppo2_losses
from fl_saliency.agents.ppo2.runner import explained_variance
from fl_saliency.errors import InputError
from fl_saliency.networks.policy import build_policy, get_arrays, named_variables, set_arrays
from tests.golden.weights import golden_weights

GOLDEN = Path(__file__).parent.parent / "golden"
NETWORKS = ("cnn_daqn", "cnn_sparse_fls")


def golden_step(network: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"ppo_step.{network}.json").read_text())


def golden_batch(seed: int) -> Batch:
    r = np.random.RandomState(seed)
    return Batch(
        obs=r.randint(0, 256, (256, 84, 84, 4)).astype(np.uint8),
        actions=r.randint(0, 4, 256),
        returns=r.standard_normal(256).astype(np.float32),
        values=(0.5 * r.standard_normal(256)).astype(np.float32),
        neglogp=(np.log(4) + 0.2 * r.standard_normal(256)).astype(np.float32),
    )


def golden_learner(network: str) -> PPO2Learner:
    model = build_policy(network, 4)
    shapes = [(item.name, item.shape) for item in named_variables(model)]
    set_arrays(model, golden_weights(shapes))
    return PPO2Learner(model, PPO2Config())


@pytest.mark.parametrize("network", NETWORKS)
def test_three_updates_equal_the_originals_losses_gradients_and_weights(network: str) -> None:
    golden = golden_step(network)
    learner = golden_learner(network)
    step = tf.function(learner.train_minibatch)
    batch = golden_batch(golden["seed"])
    for index, expected in enumerate(golden["steps"]):
        losses, gradients = step(batch, tf.constant(golden["lr"]))
        for name, loss in zip(LOSS_NAMES, losses.numpy(), strict=True):
            assert loss == pytest.approx(expected["losses"][name], rel=1e-4), (index, name)
        # From the second step on Adam has turned rounding into weights: float64 is as far off.
        norm = float(tf.linalg.global_norm(gradients))
        tolerance = 1e-4 if index == 0 else 5e-3
        assert norm == pytest.approx(expected["clipped_grad_global_norm"], rel=tolerance)
        _check_variables(expected, gradients, get_arrays(learner.model), first=index == 0)


def _check_variables(
    expected: dict[str, Any], gradients: list[Any], weights: dict[str, np.ndarray], *, first: bool
) -> None:
    total = expected["clipped_grad_global_norm"]
    for row, gradient, (name, after) in zip(
        expected["vars"], gradients, weights.items(), strict=True
    ):
        assert row["name"] == name
        if first:
            # Where the true gradient is 0 (a bias before a softmax) only rounding is left.
            norm = float(np.linalg.norm(gradient))
            assert norm == pytest.approx(row["clipped_grad_norm"], rel=1e-4, abs=1e-6 * total)
        np.testing.assert_allclose(after.ravel()[:4], row["after_first4"], rtol=1e-3, atol=1e-6)
        size = max(after.size, 1)
        np.testing.assert_allclose(
            after.astype(np.float64).sum() / size, row["after_sum"] / size, rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("network", NETWORKS)
def test_gae_returns_equal_the_originals_runner(network: str) -> None:
    golden = golden_step(network)
    arrays = np.load(GOLDEN / f"ppo_step.{network}.npz")
    q = np.random.RandomState(golden["seed"] + 1)
    rewards = q.choice([-1.0, 0.0, 1.0], (128, 8)).astype(np.float32)
    dones = q.rand(128, 8) < 0.05
    values = q.standard_normal((129, 8)).astype(np.float32)
    returns = time_major_to_flat(gae_returns(rewards, values, dones, gamma=0.99, lam=0.95))
    np.testing.assert_allclose(returns, arrays["gae_returns"], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(time_major_to_flat(values[:-1]), arrays["gae_values"])


def test_gae_with_lambda_one_is_the_discounted_return() -> None:
    rewards = np.array([[1.0], [2.0], [4.0]], np.float32)
    values = np.array([[9.0], [9.0], [9.0], [8.0]], np.float32)
    alive = np.zeros((3, 1), bool)
    open_ended = gae_returns(rewards, values, alive, gamma=0.5, lam=1.0)
    np.testing.assert_allclose(open_ended[:, 0], [1 + 1 + 1 + 1, 2 + 2 + 2, 4 + 4])
    ended = alive.copy()
    ended[1] = True
    cut = gae_returns(rewards, values, ended, gamma=0.5, lam=1.0)
    np.testing.assert_allclose(cut[:, 0], [1 + 1, 2, 4 + 4])


def test_advantages_are_normalised_by_the_population_deviation() -> None:
    result = normalise_advantages(tf.constant([1.0, 3.0]), tf.constant([0.0, 0.0]))
    np.testing.assert_allclose(result, [-1.0, 1.0], rtol=1e-6)


def test_losses_of_an_unchanged_policy_are_the_textbook_values() -> None:
    logits = tf.zeros((2, 4))
    batch = Batch(
        obs=None,
        actions=tf.constant([0, 1]),
        returns=tf.constant([1.0, 0.0]),
        values=tf.constant([0.0, 0.0]),
        neglogp=tf.fill(2, np.float32(np.log(4))),
    )
    losses = ppo2_losses(
        logits,
        tf.constant([0.5, 0.0]),
        batch,
        clip_range=0.1,
        entropy_coef=0.01,
        value_coef=0.5,
    )
    policy, value, entropy, kl, clipped = losses.logged.numpy()
    assert policy == pytest.approx(0.0, abs=1e-6)
    # Value clipping: 0.5 is clipped to 0.1, whose error (0.81) is the larger one.
    assert value == pytest.approx(0.5 * (0.81 + 0.0) / 2)
    assert entropy == pytest.approx(np.log(4))
    assert kl == pytest.approx(0.0, abs=1e-6)
    assert clipped == 0.0
    assert float(losses.total) == pytest.approx(policy - 0.01 * entropy + 0.5 * value)


def test_an_update_visits_every_row_once_an_epoch_and_repeats_with_its_seed() -> None:
    config = PPO2Config(num_envs=2, num_steps=8, num_minibatches=2, num_epochs=3)
    rows = golden_batch(0)
    batch = Batch(*(array[:16] for array in rows))
    seen = []

    def run(seed: int) -> dict[str, float]:
        learner = PPO2Learner(build_policy("cnn_daqn", 4, seed=0), config)
        original = learner.train_minibatch

        def spy(minibatch: Batch, rate: Any) -> Any:
            tf.py_function(lambda r: seen.append(r.numpy()), [minibatch.returns], [])
            return original(minibatch, rate)

        learner.train_minibatch = spy  # type: ignore[method-assign]
        return learner.update(batch, 1e-4, np.random.default_rng(seed))

    first = run(0)
    assert len(seen) == 6
    for epoch in range(3):
        visited = np.concatenate(seen[2 * epoch : 2 * epoch + 2])
        np.testing.assert_array_equal(np.sort(visited), np.sort(batch.returns))
    assert first == run(0)
    assert first != run(1)


def test_adams_powers_count_the_steps_as_tensorflow_1_does() -> None:
    config = PPO2Config(num_envs=2, num_steps=8, num_minibatches=2, num_epochs=3)
    learner = PPO2Learner(build_policy("cnn_daqn", 4, seed=0), config)
    assert float(learner.adam.beta1_power) == pytest.approx(0.9)
    learner.update(Batch(*(a[:16] for a in golden_batch(0))), 1e-4, np.random.default_rng(0))
    assert float(learner.adam.beta1_power) == pytest.approx(0.9**7)
    assert float(learner.adam.beta2_power) == pytest.approx(0.999**7)


def test_the_update_is_compiled_once_whatever_the_learning_rate() -> None:
    config = PPO2Config(num_envs=2, num_steps=8, num_minibatches=2, num_epochs=1)
    learner = PPO2Learner(build_policy("cnn_daqn", 4, seed=0), config)
    batch = Batch(*(array[:16] for array in golden_batch(0)))
    rng = np.random.default_rng(0)
    for rate in (3e-4, 2e-4, 1e-4):
        learner.update(batch, rate, rng)
    assert learner.compilations == 1


def test_explained_variance_of_perfect_and_of_constant_returns() -> None:
    batch = golden_batch(0)
    assert explained_variance(batch._replace(values=batch.returns)) == 1.0
    constant = np.ones_like(batch.returns)
    assert np.isnan(explained_variance(batch._replace(returns=constant)))


def test_updates_are_whole_batches_and_at_least_one() -> None:
    assert count_updates(50_000_000, 1024) * 1024 == 49_999_872
    with pytest.raises(InputError, match="--num-timesteps 1023: expected at least one update"):
        count_updates(1023, 1024)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_envs", 0),
        ("num_epochs", 0),
        ("gamma", 1.5),
        ("gae_lambda", -0.1),
        ("learning_rate", 0.0),
        ("clip_range", -1.0),
        ("entropy_coef", -0.1),
        ("max_grad_norm", 0.0),
    ],
)
def test_a_wrong_hyper_parameter_names_its_flag(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"--{field.replace('_', '-')} {value}: expected"):
        PPO2Config(**{field: value})  # type: ignore[arg-type]


def test_minibatches_must_divide_the_batch() -> None:
    with pytest.raises(InputError, match="--num-minibatches 3: expected a divisor"):
        PPO2Config(num_minibatches=3)
