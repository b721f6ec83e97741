"""Steps per second of our vector env against ale-py's own in C++, in turns on one machine.

python benchmarks/env_speed.py [--rounds 7] [--seconds 3] [--games Breakout MsPacman]

Both play 8 envs with random actions on as many workers or threads as given; a line a game has the
median steps/s of each, the median of the rounds' ratios, and both again per second of processor
time, which other programs on the machine disturb less. The C++ env takes lost lives for ends
(`life_loss_info`), as ours does, but plays no hidden steps and clears no stack.
"""

import argparse
import time

import ale_py
import numpy as np
import psutil

from fl_saliency.envs import AtariVectorEnv, resolve_protocol

ENVS = 8


class Ours:
    """Our env, all envs at a time."""

    def __init__(self, title, workers, **options):
        protocol = resolve_protocol(f"{title}NoFrameskip-v4")
        self.env = AtariVectorEnv(protocol, ENVS, 0, workers=workers, **options)
        self.num_actions = self.env.num_actions
        self.env.reset()

    def step(self, actions):
        self.env.step(actions)


class Halves(Ours):
    """Our env, one half or the other always playing, as beside a network that serves both."""

    def __init__(self, title, workers, **options):
        super().__init__(title, workers, **options)
        self._halves = slice(0, ENVS // 2), slice(ENVS // 2, ENVS)
        self.env.step_async(np.zeros(ENVS // 2, int), self._halves[1])

    def step(self, actions):
        for half, other in (self._halves, self._halves[::-1]):
            self.env.step_async(actions[half], half)
            self.env.step_wait(other)


class Bare:
    """ale-py's AtariVectorEnv."""

    def __init__(self, title, workers):
        game = resolve_protocol(f"{title}NoFrameskip-v4").game
        self.env = ale_py.AtariVectorEnv(
            game, num_envs=ENVS, num_threads=workers, life_loss_info=True
        )
        self.num_actions = self.env.single_action_space.n
        self.env.reset(seed=0)

    def step(self, actions):
        self.env.step(actions)


def processor_seconds():
    """Seconds that this process and its workers have computed so far."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def speed(player, seconds, rng):
    """Steps per second, and per second of processor time."""
    count, started, before = 0, time.perf_counter(), processor_seconds()
    while (taken := time.perf_counter() - started) < seconds:
        player.step(rng.integers(player.num_actions, size=ENVS))
        count += ENVS
    return count / taken, count / (processor_seconds() - before)


def compare(title, options):
    rng = np.random.default_rng(0)
    players = {
        "ours": Ours(title, options.workers),
        "ours, halves": Halves(title, options.workers),
        "ours+screens": Ours(title, options.workers, screens=True),
        "ale-py C++": Bare(title, options.workers),
    }
    speeds = {name: [] for name in players}
    for _ in range(options.rounds):
        for name, player in players.items():
            speeds[name].append(speed(player, options.seconds, rng))
    results = {name: np.array(pairs) for name, pairs in speeds.items()}
    for name, pairs in results.items():
        wall, cpu = np.median(pairs, axis=0)
        ratio, cpu_ratio = np.median(pairs / results["ale-py C++"], axis=0)
        print(
            f"{title:12} {name:13} {wall:6.0f} steps/s ({ratio:.2f})"
            f" {cpu:6.0f} a processor second ({cpu_ratio:.2f})"
        )
    for player in players.values():
        player.env.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--games", nargs="+", default=["Breakout", "MsPacman"])
    options = parser.parse_args()
    for title in options.games:
        compare(title, options)


if __name__ == "__main__":
    main()
