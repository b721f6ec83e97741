"""Clipped PPO losses (Schulman et al. 2017, arXiv 1707.06347), with Baselines' value clipping."""

from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

__all__ = ["LOSS_NAMES", "Batch", "Losses", "normalise_advantages", "ppo2_losses"]

Tensor: TypeAlias = Any

LOSS_NAMES = ("policy_loss", "value_loss", "policy_entropy", "approxkl", "clipfrac")


class Batch(NamedTuple):
    """A (mini)batch of B timesteps.

    obs uint8 [B, 84, 84, 4], actions int64 [B], the rest float32 [B]; `values` and `neglogp` are
    the policy's at rollout time, `returns` are GAE returns.
    """

    obs: Tensor
    actions: Tensor
    returns: Tensor
    values: Tensor
    neglogp: Tensor


class Losses(NamedTuple):
    """Scalars: what is minimised, and the five figures that Baselines logs (`LOSS_NAMES`)."""

    total: Tensor
    logged: Tensor


def normalise_advantages(returns: Tensor, values: Tensor) -> Tensor:
    """Advantages of one minibatch, mean 0 and population standard deviation 1."""
    advantages = returns - values
    mean = tf.reduce_mean(advantages)
    return (advantages - mean) / (tf.math.reduce_std(advantages) + 1e-8)


def ppo2_losses(
    logits: Tensor,
    values: Tensor,
    batch: Batch,
    *,
    clip_range: float,
    entropy_coef: float,
    value_coef: float,
) -> Losses:
    """logits float32 [B, A] and values float32 [B] of the current network on `batch`."""
    log_probs = tf.nn.log_softmax(logits)
    neglogp = -tf.gather(log_probs, batch.actions, batch_dims=1)
    entropy = tf.reduce_mean(-tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=1))

    clipped_values = batch.values + tf.clip_by_value(values - batch.values, -clip_range, clip_range)
    value_loss = 0.5 * tf.reduce_mean(
        tf.maximum(tf.square(values - batch.returns), tf.square(clipped_values - batch.returns))
    )

    advantages = normalise_advantages(batch.returns, batch.values)
    ratio = tf.exp(batch.neglogp - neglogp)
    clipped_ratio = tf.clip_by_value(ratio, 1.0 - clip_range, 1.0 + clip_range)
    policy_loss = tf.reduce_mean(tf.maximum(-advantages * ratio, -advantages * clipped_ratio))

    approxkl = 0.5 * tf.reduce_mean(tf.square(neglogp - batch.neglogp))
    clipfrac = tf.reduce_mean(tf.cast(tf.abs(ratio - 1.0) > clip_range, tf.float32))
    total = policy_loss - entropy_coef * entropy + value_coef * value_loss
    return Losses(total, tf.stack([policy_loss, value_loss, entropy, approxkl, clipfrac]))
