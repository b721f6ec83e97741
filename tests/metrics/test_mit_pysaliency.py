"""The `mit` convention beside pysaliency: values it gave once, and where it is installed, gives."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.metrics.fixation import Fixations
from fl_saliency.metrics.mit import MIT_METRICS, mit_sauc, score_sequence_mit

FOLDER = Path(__file__).parents[1] / "golden" / "pysaliency"
TOLERANCE = 1e-10
Cases = dict[str, Any]


def load(path: Path) -> Cases:
    with np.load(path) as cases:
        return dict(cases)


def per_frame(points: Any, shape: tuple[int, int, int]) -> list[Fixations]:
    """The frames' fixations from frame, y, x: int [3, N]."""
    frames, rows, columns = shape
    frame, y, x = points.astype(np.int64)
    pixels = y * columns + x
    return [Fixations((rows, columns), pixels[frame == n]) for n in range(frames)]


def assert_equal_to_pysaliency(cases: Cases) -> None:
    maps, sigma = cases["maps"], float(cases["sigma"])
    fixations = per_frame(cases["fixations"], maps.shape)
    others = per_frame(cases["others"], maps.shape)
    scores = score_sequence_mit(maps, fixations, sigma=sigma, baseline=cases["baseline"])
    for name in MIT_METRICS:
        assert getattr(scores, name) == pytest.approx(cases[name], abs=TOLERANCE, rel=0), name
    given = [mit_sauc(*frame) for frame in zip(maps, fixations, others, strict=True)]
    assert given == pytest.approx(cases["auc_given"], abs=TOLERANCE, rel=0)


def test_every_metric_equals_pysaliency_on_50_random_maps() -> None:
    cases = load(FOLDER / "cases.npz")
    assert len(cases["maps"]) == 50
    assert_equal_to_pysaliency(cases)


def test_the_cases_hold_repeats_ties_zeros_and_values_below_0() -> None:
    cases = load(FOLDER / "cases.npz")
    assert np.unique(cases["fixations"], axis=1).shape[1] < cases["fixations"].shape[1]
    assert min(np.unique(saliency).size for saliency in cases["maps"]) == 6
    assert (cases["maps"] == 0).any()
    assert (cases["maps"] < 0).any()


# Not importorskip: pysaliency imports torch, which the script does without.
@pytest.mark.skipif(find_spec("pysaliency") is None, reason="pysaliency is not installed")
@pytest.mark.parametrize("seed", [1, 2])
def test_every_metric_equals_the_installed_pysaliency(seed: int, tmp_path: Path) -> None:
    output = tmp_path / "cases.npz"
    command = [sys.executable, FOLDER / "make.py", output, "--seed", str(seed)]
    subprocess.run(command, check=True, timeout=120)
    assert_equal_to_pysaliency(load(output))
