"""`fls run` and run_baselines.py: evaluate an agent and record what it looks at."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from fl_saliency.cli.common import run_command, start_tensorflow
from fl_saliency.experiments.configs import EvaluationConfig
from fl_saliency.experiments.runs import read_config

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, *, prog: str = "run_baselines.py") -> int:
    """Evaluate as `argv` says; returns the exit status."""
    return run_command(
        EvaluationConfig,
        _run,
        argv,
        prog=prog,
        description="Evaluate a trained agent on whole games and record what it looks at.",
    )


def _run(config: EvaluationConfig) -> int:
    config.check()
    read_config(config.experiment_dir)
    config.place.check()
    start_tensorflow()
    from fl_saliency.experiments.evaluation import evaluate

    result = evaluate(config, announce=partial(print, flush=True))
    rewards = [episode.reward for episode in result.episodes]
    print(f"{len(rewards)} games: mean return {np.mean(rewards):.2f}, std {np.std(rewards):.2f}")
    for path in result.files:
        print(path)
    return 0
