"""Stable-Baselines3's PPO with NatureCNN and our hyper-parameters; prints steps/s as JSON.

With --monitor-dir every finished game's raw return goes there (files like our monitor files).
Runs in an environment of its own, with stable-baselines3 and torch installed.
"""

import argparse
import json
import time
from importlib.metadata import version

import ale_py  # noqa: F401  (registers the games)
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack

VECTORS = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}


class Clock(BaseCallback):
    """Notes when each rollout begins and when training ends."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[float] = []
        self.end = 0.0

    def _on_rollout_start(self) -> None:
        self.starts.append(time.perf_counter())

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self.end = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-name", default="BreakoutNoFrameskip-v4")
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--vector", choices=VECTORS, default="dummy")
    parser.add_argument("--monitor-dir")
    arguments = parser.parse_args()
    env = make_atari_env(
        arguments.env_name,
        n_envs=8,
        seed=1,
        monitor_dir=arguments.monitor_dir,
        vec_env_cls=VECTORS[arguments.vector],
    )
    model = PPO(
        "CnnPolicy",
        VecFrameStack(env, 4),
        n_steps=128,
        batch_size=256,
        n_epochs=4,
        learning_rate=lambda left: 2.5e-4 * left,
        clip_range=0.1,
        clip_range_vf=0.1,
        ent_coef=0.01,
        vf_coef=0.5,
        gamma=0.99,
        gae_lambda=0.95,
        max_grad_norm=0.5,
        seed=1,
        device="cpu",
    )
    clock = Clock()
    model.learn(1024 * arguments.updates, callback=clock)
    env.close()
    versions = {name: version(name) for name in ("stable-baselines3", "torch", "ale-py", "numpy")}
    rate = 1024 * (len(clock.starts) - 1) / (clock.end - clock.starts[1])
    print(json.dumps({"steps_per_s": rate, "versions": versions}))


if __name__ == "__main__":
    main()
