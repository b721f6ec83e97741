"""OpenAI Baselines' PPO2 at its own Atari settings (its ppo2/run_atari.py); prints steps/s as JSON.

With --evaluate it plays instead: 16 games, an untrained CnnPolicy that samples its actions.
Runs in an environment of its own: Python 3.7 with tensorflow 1.15 and baselines 0.1.5.
"""
# Python 3.7 reads this file.
# ruff: noqa: E402

import argparse
import json
import multiprocessing
import time
import warnings

warnings.filterwarnings("ignore", category=FutureWarning)

import numpy as np
import pkg_resources
import tensorflow as tf
from baselines import logger
from baselines.bench import Monitor
from baselines.common import set_global_seeds
from baselines.common.atari_wrappers import make_atari, wrap_deepmind
from baselines.common.vec_env.subproc_vec_env import SubprocVecEnv
from baselines.common.vec_env.vec_frame_stack import VecFrameStack
from baselines.ppo2 import ppo2
from baselines.ppo2.policies import CnnPolicy

PACKAGES = ("baselines", "tensorflow", "gym", "atari-py", "numpy")
STEPS_PER_UPDATE = 8 * 128


class Times(logger.KVWriter):
    """Keeps PPO2's own clock: the seconds since training began, at the end of each update."""

    def __init__(self):
        self.ends = []

    def writekvs(self, kvs):
        self.ends.append(kvs["time_elapsed"])


def make_env(env_name, games, seed):
    """As baselines' make_atari_env, whose module cannot be imported without MPI."""

    def maker(rank):
        def make():
            env = make_atari(env_name)
            env.seed(seed + rank)
            return wrap_deepmind(Monitor(env, None))

        return make

    set_global_seeds(seed)
    return VecFrameStack(SubprocVecEnv([maker(rank) for rank in range(games)]), 4)


def train(env_name, updates):
    times = Times()
    logger.Logger.CURRENT = logger.Logger(dir=None, output_formats=[times])
    ppo2.learn(
        policy=CnnPolicy,
        env=make_env(env_name, 8, seed=1),
        nsteps=128,
        nminibatches=4,
        lam=0.95,
        gamma=0.99,
        noptepochs=4,
        log_interval=1,
        ent_coef=0.01,
        lr=lambda left: left * 2.5e-4,
        cliprange=lambda left: left * 0.1,
        total_timesteps=STEPS_PER_UPDATE * updates,
    )
    return STEPS_PER_UPDATE * (len(times.ends) - 1) / (times.ends[-1] - times.ends[0])


def evaluate(env_name, vector_steps, games=16):
    env = make_env(env_name, games, seed=1)
    session = tf.get_default_session()
    model = CnnPolicy(session, env.observation_space, env.action_space, games, 1)
    session.run(tf.global_variables_initializer())
    frames = np.zeros((games, *env.observation_space.shape), np.uint8)
    frames[:] = env.reset()
    for _ in range(50):  # warm, as ours is when its clock starts
        frames[:] = env.step(model.step(frames)[0])[0]
    start = time.perf_counter()
    for _ in range(vector_steps):
        actions = model.step(frames)[0]
        frames[:] = env.step(actions)[0]
    spent = time.perf_counter() - start
    env.close()
    return games * vector_steps / spent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-name", default="BreakoutNoFrameskip-v4")
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--steps", type=int, default=500, help="vector steps of --evaluate")
    arguments = parser.parse_args()
    cores = multiprocessing.cpu_count()
    config = tf.ConfigProto(
        allow_soft_placement=True,
        intra_op_parallelism_threads=cores,
        inter_op_parallelism_threads=cores,
    )
    with tf.Session(config=config).as_default():
        if arguments.evaluate:
            rate = evaluate(arguments.env_name, arguments.steps)
        else:
            rate = train(arguments.env_name, arguments.updates)
    versions = {name: pkg_resources.get_distribution(name).version for name in PACKAGES}
    print(json.dumps({"steps_per_s": rate, "versions": versions}))


if __name__ == "__main__":
    main()
