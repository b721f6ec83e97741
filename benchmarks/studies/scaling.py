"""Cost against size: envs, frames of a video, frames of a gaze trial; and memory beside each."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Settings, Table, in_turn, median, ours


def run(settings: Settings) -> list[Table]:
    """Table `scaling`."""
    envs = (4, 8, 16, 32) if not settings.quick else (4, 8)
    frames = (1600, 3200, 6400, 12800) if not settings.quick else (400, 800)
    trials = (500, 1000, 2000, 4000) if not settings.quick else (100, 200)
    jobs: dict[str, list[tuple[int, Any]]] = {
        "rollout and update, envs": [
            (n, partial(ours, "train", "--num-envs", n, "--updates", 4)) for n in envs
        ],
        "evaluation with videos, frames": [
            (n, partial(ours, "evaluation", "--num-env", 4, "--steps", n // 4, "--video"))
            for n in frames
        ],
        "gaze score, frames of a trial": [
            (n, partial(ours, "gaze", "--frames", n)) for n in trials
        ],
    }
    rows, figures = [], {}
    for title, of_one in jobs.items():
        sizes, seconds, memory = [], [], []
        for size, job in of_one:
            runs, _ = in_turn({f"{title} {size}": job}, 1)
            (found,) = runs.values()
            figures |= runs
            sizes.append(size)
            seconds.append(median(found, "seconds"))
            memory.append(found[0]["peak_mib"])
        rows.append(
            [
                title,
                ", ".join(map(str, sizes)),
                ", ".join(f"{value:.1f}" for value in seconds),
                round(straightness(sizes, seconds), 3),
                ", ".join(f"{value:.0f}" for value in memory),
            ]
        )
    return [
        Table(
            name="scaling",
            title="Seconds and memory against size",
            columns=["", "sizes", "seconds", "R2 of a straight line", "peak memory, MiB"],
            rows=rows,
            figures=figures,
        )
    ]


def straightness(sizes: list[int], seconds: list[float]) -> float:
    """R2 of the least-squares line through (size, seconds)."""
    return float(np.corrcoef(sizes, seconds)[0, 1] ** 2)
