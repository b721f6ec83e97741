"""Env steps/s inside our rollout, and of ale-py's bare vector env, in turn in one process.

Ours are counted in time spent in `step` while a policy plays rollouts. Prints JSON.
"""

import argparse
import json

import numpy as np

from benchmarks.workers.probes import BareEnv, Clock
from fl_saliency.cli.common import start_tensorflow

ENVS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="Breakout")
    parser.add_argument("--seconds", type=float, default=10.0, help="about so long in all")
    parser.add_argument("--env-workers", type=int)
    arguments = parser.parse_args()
    start_tensorflow()
    from fl_saliency.agents.policy import PolicyAgent
    from fl_saliency.agents.ppo2.config import PPO2Config
    from fl_saliency.agents.ppo2.runner import RolloutRunner
    from fl_saliency.envs import AtariVectorEnv, resolve_protocol
    from fl_saliency.networks.policy import build_policy

    protocol = resolve_protocol(f"{arguments.game}NoFrameskip-v4")
    bare = BareEnv(protocol.game, ENVS, 2)
    config = PPO2Config(num_envs=ENVS)
    with AtariVectorEnv(protocol, ENVS, 1, workers=arguments.env_workers) as env:
        agent = PolicyAgent(build_policy("cnn", env.num_actions, seed=1), np.random.default_rng(1))
        runner = RolloutRunner(env, agent, config)
        step = Clock(env, "step")
        env.reset()
        runner.collect()
        bare.steps_per_s(100)
        pairs = []
        for _ in range(max(3, round(arguments.seconds))):
            step.seconds = 0.0
            runner.collect()
            pairs.append((config.batch_size / step.seconds, bare.steps_per_s(config.num_steps)))
    speeds = np.array(pairs)
    ours, theirs = np.median(speeds, axis=0)
    ratio = np.median(speeds[:, 0] / speeds[:, 1])
    found = {"env_steps_per_s": ours, "bare_env_steps_per_s": theirs, "env_ratio": ratio}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
