"""PPO2's update: epochs over shuffled minibatches, clipped gradients, Adam, as one graph call."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from fl_saliency.agents.ppo2.config import PPO2Config
from fl_saliency.agents.ppo2.losses import LOSS_NAMES, Batch, ppo2_losses
from fl_saliency.base import FloatArray
from fl_saliency.networks.policy import named_variables

__all__ = ["Adam", "PPO2Learner"]

Tensor: TypeAlias = Any

BETA_1, BETA_2 = 0.9, 0.999


class Adam:
    """Adam (Kingma & Ba 2015) with TensorFlow 1's epsilon, through TensorFlow's fused kernel.

    Its state has the names and the meaning that Baselines' files give it: moments per variable,
    and the powers of both betas *after* the next step is counted (beta at the start).
    """

    def __init__(self, variables: list[Any], epsilon: float) -> None:
        self._variables = variables
        self._epsilon = epsilon
        self.m = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self.v = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self.beta1_power = tf.Variable(BETA_1, trainable=False)
        self.beta2_power = tf.Variable(BETA_2, trainable=False)

    def apply(self, gradients: list[Tensor], learning_rate: Tensor) -> None:
        """One step on every variable."""
        for variable, m, v, gradient in zip(
            self._variables, self.m, self.v, gradients, strict=True
        ):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=self.beta1_power,
                beta2_power=self.beta2_power,
                lr=learning_rate,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=self._epsilon,
                grad=gradient,
            )
        self.beta1_power.assign(self.beta1_power * BETA_1)
        self.beta2_power.assign(self.beta2_power * BETA_2)


class PPO2Learner:
    """Owns a policy's optimiser and improves the policy from rollouts."""

    def __init__(self, model: keras.Model, config: PPO2Config) -> None:
        self.model = model
        self.config = config
        self._named = named_variables(model)
        variables = [item.variable.value for item in self._named]
        self.adam = Adam(variables, config.adam_epsilon)
        self._variables = variables
        self._update = tf.function(self._epochs)

    def update(
        self, batch: Batch, learning_rate: float, rng: np.random.Generator
    ) -> dict[str, np.float32]:
        """Run all epochs over `batch` (arrays of config.batch_size rows); returns mean losses."""
        size, epochs = self.config.batch_size, self.config.num_epochs
        order = np.stack([rng.permutation(size) for _ in range(epochs)])
        rows = order.reshape(epochs * self.config.num_minibatches, -1).astype(np.int32)
        # As a tensor: a Python number would compile the update anew for each of its values.
        rate = tf.constant(learning_rate, tf.float32)
        losses = self._update(Batch(*map(tf.convert_to_tensor, batch)), rows, rate)
        return dict(zip(LOSS_NAMES, losses.numpy(), strict=True))

    def _epochs(self, batch: Batch, rows: Tensor, learning_rate: Tensor) -> Tensor:
        count = self.config.num_epochs * self.config.num_minibatches
        total = tf.zeros(len(LOSS_NAMES))
        for index in tf.range(count):
            minibatch = Batch(*(tf.gather(array, rows[index]) for array in batch))
            total += self.train_minibatch(minibatch, learning_rate)[0]
        return total / count

    def train_minibatch(self, batch: Batch, learning_rate: Tensor) -> tuple[Tensor, list[Tensor]]:
        """One gradient step; returns the logged losses [5] and the clipped gradients."""
        with tf.GradientTape() as tape:
            logits, values, *_ = self.model(batch.obs, training=True)
            losses = ppo2_losses(
                logits,
                values,
                batch,
                clip_range=self.config.clip_range,
                entropy_coef=self.config.entropy_coef,
                value_coef=self.config.value_coef,
            )
        gradients = tape.gradient(losses.total, self._variables)
        clipped, _ = tf.clip_by_global_norm(gradients, self.config.max_grad_norm)
        self.adam.apply(clipped, learning_rate)
        return losses.logged, clipped

    @property
    def compilations(self) -> int:
        """How often the update was compiled: once, or something varies that should not."""
        return int(self._update.experimental_get_tracing_count())

    def optimizer_arrays(self) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Adam's first and second moments by variable name, in file shapes."""
        first = {
            item.name: m.numpy().reshape(item.shape)
            for item, m in zip(self._named, self.adam.m, strict=True)
        }
        second = {
            item.name: v.numpy().reshape(item.shape)
            for item, v in zip(self._named, self.adam.v, strict=True)
        }
        return first, second

    def set_optimizer_arrays(
        self,
        first: Mapping[str, FloatArray],
        second: Mapping[str, FloatArray],
        powers: FloatArray,
    ) -> None:
        """Set Adam's moments from arrays by variable name, and both betas' powers from [2]."""
        for item, m, v in zip(self._named, self.adam.m, self.adam.v, strict=True):
            m.assign(first[item.name].reshape(m.shape))
            v.assign(second[item.name].reshape(v.shape))
        self.adam.beta1_power.assign(powers[0])
        self.adam.beta2_power.assign(powers[1])
