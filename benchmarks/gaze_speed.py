"""The gaze benchmark: that its memory does not grow with a trial.

python benchmarks/gaze_speed.py [--frames 1000 10000]

Whole trials of made-up frames and 50 gaze samples a frame, read from an archive and scored with
cnn_sparse_fls, each in a process of its own: peak resident memory, and processor milliseconds per
decision (4 frames). How fast the metrics are is `python -m benchmarks.run metrics`.
"""

import argparse
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np

SHAPE = (210, 160)
SAMPLES = 50


def make_trial(folder, frames):
    """A trial of Breakout in the flat layout; its gaze follows a square that moves."""
    rng = np.random.default_rng(0)
    (folder / "meta_data.csv").write_text(
        f"Game,TrialNumber,SubjectId,NumberOfFrames,TotalTime(s)\nBreakout,1,XX,{frames},1\n"
    )
    with (
        tarfile.open(folder / "1_XX_1_x.tar.bz2", "w:bz2", compresslevel=1) as archive,
        (folder / "1_XX_1_x.txt").open("w") as labels,
    ):
        for number in range(1, frames + 1):
            image = np.full((*SHAPE, 3), 20, np.uint8)
            row, column = 5 * number % 180, 3 * number % 130
            image[row : row + 30, column : column + 30] = number % 256
            data = cv2.imencode(".png", image)[1].tobytes()
            member = tarfile.TarInfo(f"1_XX_1_x/XX_1_{number}.png")
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
            gaze = np.array([column, row]) + rng.uniform(0, 30, (SAMPLES, 2))
            text = ",".join(f"{value:.2f}" for value in gaze.ravel())
            labels.write(f"XX_1_{number},0,0,50,0,0,{text}\n")


def score(folder):
    """Run in a process of its own: score the trial, print memory and time."""
    from fl_saliency.agents.policy import PolicyAgent
    from fl_saliency.atari_head.benchmark import BenchmarkSettings, score_trials
    from fl_saliency.atari_head.reader import find_trials
    from fl_saliency.envs.protocol import resolve_protocol
    from fl_saliency.networks.policy import build_policy

    model = build_policy("cnn_sparse_fls", 4, seed=0)
    agent = PolicyAgent(model, np.random.default_rng(0))
    settings = BenchmarkSettings(protocol=resolve_protocol("BreakoutNoFrameskip-v4"))
    agent.attention(np.zeros((64, 84, 84, 4), np.uint8))
    started = time.process_time()
    (result,) = score_trials(agent, find_trials(folder, "breakout"), settings)
    spent = 1000 * (time.process_time() - started) / len(result.frame_numbers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak {peak:.0f} MiB, {spent:.1f} ms per decision", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, nargs="*", default=[1000, 10000])
    parser.add_argument("--score", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.score:
        score(options.score)
        return
    for frames in options.frames:
        with tempfile.TemporaryDirectory() as folder:
            make_trial(Path(folder), frames)
            print(f"{frames} frames: ", end="", flush=True)
            subprocess.run([sys.executable, __file__, "--score", folder], check=True)


if __name__ == "__main__":
    main()
