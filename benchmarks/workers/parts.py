"""Where a training run's time goes: env, inference and update, beside what the machine can do.

Prints JSON: seconds of each part per timestep, FLOP/s of the update and of the best matrix product,
and env steps/s inside the rollout and of ale-py's bare vector env, all measured in one process.
"""

import argparse
import json
import time

from benchmarks.flops import training_flops
from benchmarks.workers.probes import Clock, best_product
from fl_saliency.cli.common import start_tensorflow

ENVS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="cnn")
    parser.add_argument("--game", default="Breakout")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--env-workers", type=int)
    arguments = parser.parse_args()
    start_tensorflow()
    print(json.dumps(measure(arguments)))


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    from fl_saliency.agents.ppo2.config import PPO2Config
    from fl_saliency.agents.ppo2.train import PPO2Trainer
    from fl_saliency.envs import AtariVectorEnv, resolve_protocol

    protocol = resolve_protocol(f"{arguments.game}NoFrameskip-v4")
    config = PPO2Config(num_envs=ENVS)
    updates = arguments.updates
    products = []
    with AtariVectorEnv(protocol, ENVS, 1, workers=arguments.env_workers) as env:
        trainer = PPO2Trainer(
            arguments.network,
            env,
            config,
            num_timesteps=config.batch_size * (updates + 1),
            seed=1,
            precision=arguments.precision,
        )
        step, act = Clock(env, "step"), Clock(trainer.agent, "act")
        update = Clock(trainer.learner, "update")
        total = 0.0
        trainer.start()
        rows = trainer.updates()
        next(rows)  # compiles
        clocks = (step, act, update)
        for clock in clocks:
            clock.seconds = 0.0
        for _ in range(updates):
            products.append(best_product("float32", 1.0))
            started = time.perf_counter()
            next(rows)
            total += time.perf_counter() - started
        timesteps = config.batch_size * updates
        flops = training_flops(trainer.model) * config.num_epochs
    per_step = {
        name: clock.seconds / timesteps
        for name, clock in zip(("env", "inference", "update"), clocks, strict=True)
    }
    return {
        "steps_per_s": timesteps / total,
        **{f"{name}_us": 1e6 * seconds for name, seconds in per_step.items()},
        "other_us": 1e6 * (total / timesteps - sum(per_step.values())),
        "update_gflops": flops / per_step["update"] / 1e9,
        "product_gflops": max(products) / 1e9,
    }


if __name__ == "__main__":
    main()
