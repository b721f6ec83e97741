"""`fls train` and train_baselines.py: train an agent with PPO2."""

from collections.abc import Sequence
from functools import partial

from fl_saliency.cli.common import run_command, start_tensorflow
from fl_saliency.experiments.configs import TrainConfig

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, *, prog: str = "train_baselines.py") -> int:
    """Train as `argv` says; returns the exit status."""
    return run_command(
        TrainConfig,
        _train,
        argv,
        prog=prog,
        description="Train an agent on an Atari game with PPO2, as OpenAI Baselines does.",
    )


def _train(config: TrainConfig) -> int:
    config.check()
    config.protocol(config.env_name)
    start_tensorflow()
    from fl_saliency.experiments.training import train

    run = train(config, announce=partial(print, flush=True))
    print(f"{run.path}: model.pkl, curve.png, logs/, tb/")
    return 0
