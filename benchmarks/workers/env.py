"""Env steps/s inside our rollout, and of ale-py's bare vector env, in turn in one process.

Ours are counted in time spent in `step` while a policy plays rollouts. Beside the agent's steps the
emulator plays hidden ones there (a no-op and the opening after each lost life, no-ops and the
opening in each new game), which are counted too. Prints JSON.
"""

import argparse
import json
from typing import Any

import numpy as np

from benchmarks.workers.probes import BareEnv, Clock
from fl_saliency.cli.common import start_tensorflow

ENVS = 8
OPENING = {"Breakout": 2, "MsPacman": 0}
"""Hidden actions at the start of a life: FIRE and one more, in games that have FIRE."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", choices=OPENING, default="Breakout")
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
        opening = OPENING[arguments.game]
        env.reset()
        runner.collect()
        bare.steps_per_s(100)
        rounds = []
        for _ in range(max(3, round(arguments.seconds))):
            step.seconds = 0.0
            rollout = runner.collect()
            played = config.batch_size + hidden_steps(runner.dones, len(rollout.episodes), opening)
            speeds = np.array([config.batch_size, played]) / step.seconds
            rounds.append([*speeds, bare.steps_per_s(config.num_steps)])
    speeds = np.array(rounds)
    ours, emulated, theirs = np.median(speeds, axis=0)
    ratio, emulated_ratio = np.median(speeds[:, :2] / speeds[:, 2:], axis=0)
    found = {
        "env_steps_per_s": ours,
        "emulated_steps_per_s": emulated,
        "bare_env_steps_per_s": theirs,
        "env_ratio": ratio,
        "emulated_ratio": emulated_ratio,
    }
    print(json.dumps(found))


def hidden_steps(dones: Any, games: int, opening: int) -> float:
    """Steps (of 4 frames) that the rules play unseen in a rollout: 1 to 30 no-op frames a game."""
    lost_lives = int(dones.sum()) - games
    return lost_lives * (1 + opening) + games * (15.5 / 4 + opening)


if __name__ == "__main__":
    main()
