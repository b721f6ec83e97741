"""Makes cases.npz: pysaliency's metrics of 50 random maps and their fixations.

Stands alone; run as `python make.py cases.npz` in an environment of its own (README.md).
"""

import argparse
import importlib
import sys
import types
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

# pysaliency imports torch for its DeepGaze models alone; none of them is used here.
sys.modules.setdefault("torch", types.ModuleType("torch"))

pysaliency = importlib.import_module("pysaliency")
metrics = importlib.import_module("pysaliency.metrics")

FRAMES, ROWS, COLUMNS = 50, 21, 16
SIGMA = 1.5
FLOOR = 2.2204e-16


def bump(rng):
    rows, columns = np.mgrid[:ROWS, :COLUMNS]
    y, x, spread = rng.rand() * ROWS, rng.rand() * COLUMNS, 1 + 5 * rng.rand()
    return np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * spread**2))


def half_zero(rng):
    values = rng.rand(ROWS, COLUMNS)
    values[:, : COLUMNS // 2] = 0
    return values


KINDS = [
    lambda rng: rng.rand(ROWS, COLUMNS),
    lambda rng: rng.randint(0, 6, (ROWS, COLUMNS)).astype(float),  # ties
    lambda rng: rng.exponential(size=(ROWS, COLUMNS)),
    lambda rng: rng.normal(size=(ROWS, COLUMNS)),  # below 0 too
    bump,
    half_zero,
]


class Maps(pysaliency.SaliencyMapModel):
    """Frame n's map for the stimulus whose every pixel is n."""

    def __init__(self, maps):
        super().__init__(caching=False)
        self.maps = maps

    def _saliency_map(self, stimulus):
        return self.maps[stimulus[0, 0, 0]]


class Densities(pysaliency.Model):
    """Frame n's log density for the stimulus whose every pixel is n."""

    def __init__(self, densities):
        super().__init__(caching=False)
        self.densities = densities

    def _log_density(self, stimulus):
        return np.log(self.densities[stimulus[0, 0, 0]])


def density(saliency):
    """What information gain is told to take a map for: sums to 1, floored, sums to 1."""
    normalised = metrics.convert_saliency_map_to_density(saliency)
    return metrics.convert_saliency_map_to_density(normalised, minimum_value=FLOOR)


def fixate(rng):
    """Frame, y and x of 1 to 30 fixations a frame, int [3, N]; a third repeat the first one."""
    numbers = rng.randint(1, 31, FRAMES)
    frames = []
    for n, number in enumerate(numbers):
        points = np.stack([rng.randint(ROWS, size=number), rng.randint(COLUMNS, size=number)])
        repeats = rng.rand(number) < 1 / 3
        points[:, repeats] = points[:, :1]
        frames.append(np.concatenate([np.full((1, number), n), points]))
    return np.concatenate(frames, axis=1)


def at_fixations(maps, fixations, others, baseline):
    """Metrics that pysaliency gives for each fixation, averaged over those of a frame."""
    stimuli = pysaliency.Stimuli([np.full((ROWS, COLUMNS, 3), n, np.uint8) for n in range(FRAMES)])
    looked, given = (
        pysaliency.Fixations.create_without_history(x, y, frame)
        for frame, y, x in (fixations, others)
    )
    model = Maps(maps)
    values = {
        "nss": model.NSSs(stimuli, looked),
        "auc_judd": model.AUCs(stimuli, looked, nonfixations="uniform"),
        "sauc": model.AUCs(stimuli, looked, nonfixations="shuffled"),
        "auc_given": model.AUCs(stimuli, looked, nonfixations=given),
        "ig": Densities([density(saliency) for saliency in maps]).information_gains(
            stimuli, looked, baseline_model=Densities([density(baseline)] * FRAMES)
        ),
    }
    return {
        name: np.array([value[fixations[0] == n].mean() for n in range(FRAMES)])
        for name, value in values.items()
    }


def against_blur(maps, fixations):
    """Metrics of each map beside the frame's blurred fixations."""
    counts = np.zeros(maps.shape)
    np.add.at(counts, tuple(fixations), 1)
    gaze = [gaussian_filter(frame, SIGMA, mode="mirror", truncate=4) for frame in counts]
    functions = {"kldiv": metrics.MIT_KLDiv, "cc": metrics.CC, "sim": metrics.SIM}
    with np.errstate(divide="ignore"):  # MIT_KLDiv takes log(0) and undoes it
        return {
            name: np.array([function(*pair) for pair in zip(maps, gaze, strict=True)])
            for name, function in functions.items()
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=60000)
    arguments = parser.parse_args()
    rng = np.random.RandomState(arguments.seed)
    maps = np.stack([KINDS[n % len(KINDS)](rng) for n in range(FRAMES)])
    fixations, others = fixate(rng), fixate(rng)
    baseline = bump(rng) + 0.05
    np.savez_compressed(
        arguments.output,
        pysaliency=version("pysaliency"),
        sigma=SIGMA,
        maps=maps,
        baseline=baseline,
        fixations=fixations.astype(np.int16),
        others=others.astype(np.int16),
        **at_fixations(maps, fixations, others, baseline),
        **against_blur(maps, fixations),
    )


if __name__ == "__main__":
    main()
