"""PPO2's hyper-parameters, with OpenAI Baselines' defaults for Atari."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fl_saliency.errors import InputError

__all__ = ["MAX_ENVS", "PPO2Config", "count_updates"]

MAX_ENVS = 4096
"""More would fill any machine (an emulator takes about 10 MB) and mean a typing error."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True)
class PPO2Config:
    """Baselines' `ppo2` defaults for Atari. One timestep is one agent action (4 frames)."""

    num_envs: int = 8
    """Environments stepped side by side."""
    num_steps: int = 128
    """Timesteps that each environment plays per update."""
    num_minibatches: int = 4
    """Minibatches per epoch."""
    num_epochs: int = 4
    """Passes over the rollout per update."""
    gamma: float = 0.99
    """Discount per timestep."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Gradients are clipped to this global norm."""
    learning_rate: float = 2.5e-4
    """Adam's step size at the first update."""
    lr_schedule: Literal["linear", "constant"] = "linear"
    """`linear` anneals the learning rate towards 0 over the run, once per update."""
    clip_range: float = 0.1
    """PPO's clip range, constant; also the range of value clipping."""
    adam_epsilon: float = 1e-5
    """Adam's epsilon."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "num_steps", "num_minibatches", "num_epochs"):
            self._check(name, getattr(self, name) >= 1, "at least 1")
        self._check("num_envs", self.num_envs <= MAX_ENVS, f"at most {MAX_ENVS}")
        for name in ("gamma", "gae_lambda"):
            self._check(name, 0 <= getattr(self, name) <= 1, "from 0 to 1")
        for name in ("entropy_coef", "value_coef"):
            self._check(name, getattr(self, name) >= 0, "0 or more")
            self._check(name, getattr(self, name) <= _LARGEST, f"at most {_LARGEST:g}")
        for name in ("max_grad_norm", "learning_rate", "clip_range", "adam_epsilon"):
            self._check(name, getattr(self, name) > 0, "more than 0")
            self._check(name, getattr(self, name) <= _LARGEST, f"at most {_LARGEST:g}")
        if self.batch_size % self.num_minibatches:
            raise InputError(
                f"--num-minibatches {self.num_minibatches}: expected a divisor of the batch, "
                f"{self.num_envs} envs x {self.num_steps} steps = {self.batch_size}"
            )

    def _check(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            flag = name.replace("_", "-")
            raise InputError(f"--{flag} {getattr(self, name)}: expected {expected}")

    @property
    def batch_size(self) -> int:
        """Timesteps per update."""
        return self.num_envs * self.num_steps


def count_updates(num_timesteps: int, batch_size: int) -> int:
    """num_timesteps // batch_size; InputError if not even one update fits."""
    if num_timesteps < batch_size:
        raise InputError(
            f"--num-timesteps {num_timesteps}: expected at least one update, {batch_size} timesteps"
        )
    return num_timesteps // batch_size
