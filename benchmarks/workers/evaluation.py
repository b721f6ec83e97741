"""Evaluation of a policy of ours: steps/s of all envs together. Prints JSON.

Without --video the playback loop alone, for so many vector steps; with it the whole command, from
scores to both videos.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from fl_saliency.cli.common import start_tensorflow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--env-name", default="BreakoutNoFrameskip-v4")
    parser.add_argument("--num-env", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2000, help="vector steps")
    parser.add_argument("--video", action="store_true")
    arguments = parser.parse_args()
    start_tensorflow()
    print(json.dumps(with_video(arguments) if arguments.video else without_video(arguments)))


def without_video(arguments: argparse.Namespace) -> dict[str, Any]:
    from fl_saliency.agents.policy import PolicyAgent
    from fl_saliency.envs import AtariVectorEnv, resolve_protocol
    from fl_saliency.networks.policy import build_policy
    from fl_saliency.playback.play import PlayStep, play

    protocol = resolve_protocol(arguments.env_name)
    with AtariVectorEnv(protocol, arguments.num_env, 0) as env:
        model = build_policy(arguments.network, env.num_actions, seed=0)
        agent = PolicyAgent(model, np.random.default_rng(0))
        count, began = 0, 0.0
        for event in play(agent, env, 10**9):
            if isinstance(event, PlayStep):
                if count == 50:  # compiled and warm
                    began = time.perf_counter()
                count += 1
                if count == 50 + arguments.steps:
                    break
        seconds = time.perf_counter() - began
    return {"steps_per_s": arguments.num_env * (arguments.steps - 1) / seconds}


def with_video(arguments: argparse.Namespace) -> dict[str, Any]:
    from fl_saliency.experiments.configs import EvaluationConfig
    from fl_saliency.experiments.evaluation import evaluate
    from tests.helpers import make_run

    frame_cap = 400  # games of 100 steps at most, so that the number of steps is known
    games = max(1, arguments.steps * 4 // frame_cap)
    with tempfile.TemporaryDirectory() as folder:
        experiment = make_run(
            Path(folder) / "run", network=arguments.network, env_name=arguments.env_name
        )
        config = EvaluationConfig(
            experiment_dir=experiment,
            num_env=arguments.num_env,
            evals_per_env=games,
            max_eplen=frame_cap,
            raw_obs=True,
            processed_obs=True,
            output_dir=Path(folder) / "eval",
        )
        started = time.perf_counter()
        done = evaluate(config)
        seconds = time.perf_counter() - started
    steps = sum(episode.frames for episode in done.episodes) / 4
    return {"steps_per_s": steps / seconds, "frames": steps, "seconds": seconds}


if __name__ == "__main__":
    main()
