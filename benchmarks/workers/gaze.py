"""Gaze score of a made-up trial of so many frames, through the library's own job. Prints JSON."""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from fl_saliency.cli.common import start_tensorflow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000)
    arguments = parser.parse_args()
    start_tensorflow()
    from benchmarks.trials import make_trial
    from fl_saliency.agents.policy import PolicyAgent
    from fl_saliency.atari_head.benchmark import BenchmarkSettings, score_trials
    from fl_saliency.atari_head.reader import find_trials
    from fl_saliency.envs.protocol import resolve_protocol
    from fl_saliency.networks.policy import build_policy

    agent = PolicyAgent(build_policy("cnn_sparse_fls", 4, seed=0), np.random.default_rng(0))
    settings = BenchmarkSettings(protocol=resolve_protocol("BreakoutNoFrameskip-v4"))
    agent.attention(np.zeros((64, 84, 84, 4), np.uint8))
    with tempfile.TemporaryDirectory() as folder:
        make_trial(Path(folder), arguments.frames)
        started = time.perf_counter()
        (result,) = score_trials(agent, find_trials(Path(folder), "breakout"), settings)
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"seconds": seconds, "decisions": len(result.frame_numbers), "resident_mib": peak}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
