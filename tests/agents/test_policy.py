"""The policy as an Agent: sampling, determinism, and what a network without attention says."""

import numpy as np
import pytest

from fl_saliency.agents.policy import PolicyAgent, sample_actions
from fl_saliency.errors import InputError
from fl_saliency.networks.policy import build_policy


def agent(network: str = "cnn_daqn", seed: int = 0) -> PolicyAgent:
    return PolicyAgent(build_policy(network, 4, seed=0), np.random.default_rng(seed))


def observations(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, 84, 84, 4), dtype=np.uint8)


def test_actions_are_drawn_from_the_softmax_of_the_logits() -> None:
    model = build_policy("cnn_daqn", 4, seed=0)
    bias = model.get_layer("pi").bias
    bias.assign(np.log([0.1, 0.2, 0.3, 0.4]).astype(np.float32))
    player = PolicyAgent(model, np.random.default_rng(0))
    obs = np.repeat(observations(1), 2000, axis=0)
    logits = player.scores(obs[:1])[0]
    expected = np.exp(logits) / np.exp(logits).sum()
    counts = np.bincount(player.step(obs).actions, minlength=4) / 2000
    np.testing.assert_allclose(counts, expected, atol=0.05)


def test_neglogp_is_that_of_the_action_taken() -> None:
    player, obs = agent(), observations(5)
    step = player.step(obs)
    logits = player.scores(obs)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    taken = -log_probs[np.arange(5), step.actions]
    np.testing.assert_allclose(step.neglogp, taken, rtol=1e-5)
    np.testing.assert_allclose(step.values, player.value(obs), rtol=1e-5)


def test_the_same_stream_draws_the_same_actions() -> None:
    obs = observations(64)
    first, again, other = (agent(seed=s).step(obs).actions for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_attention_comes_with_the_step_and_alone() -> None:
    player, obs = agent(), observations(3)
    attention = player.step(obs).attention
    assert attention is not None
    assert attention.shape == (3, 7, 7)
    np.testing.assert_allclose(attention, player.attention(obs), rtol=1e-5)


def test_a_network_without_attention_says_so() -> None:
    player = agent("cnn")
    assert player.geometry is None
    assert player.step(observations(1)).attention is None
    with pytest.raises(InputError, match="'cnn' has no built-in attention"):
        player.attention(observations(1))


def test_drawn_actions_follow_the_probabilities_and_no_draw_is_of_a_zero() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.2]], np.float32)).repeat(20_000, axis=0) + 100
    uniform = np.random.default_rng(0).random(logits.shape, dtype=np.float32)
    actions, neglogp = sample_actions(logits, uniform)
    np.testing.assert_allclose(np.bincount(actions) / len(actions), [0.5, 0.3, 0.2], atol=0.01)
    expected = -np.log(np.array([0.5, 0.3, 0.2]))[actions]
    np.testing.assert_allclose(neglogp, expected, atol=1e-5)
    assert neglogp.dtype == np.float32
    uniform[:, 0] = 0.0
    assert 0 not in sample_actions(logits, uniform)[0]
