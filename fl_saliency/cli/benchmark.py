"""`fls benchmark` and benchmark_atari_head.py: score saliency maps against human gaze."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from fl_saliency.atari_head.fixations import Alignment
from fl_saliency.cli.common import run_command
from fl_saliency.saliency.options import MethodOptions

__all__ = ["PROG", "BenchmarkConfig", "main"]

PROG = "benchmark_atari_head.py"


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig:
    """Score an agent's saliency maps against the gaze of Atari-HEAD's players."""

    experiment_dir: Path
    """Run directory: config.json and model.pkl, ours or OpenAI Baselines'."""
    atari_head_dir: Path
    """Folder with Atari-HEAD's meta_data.csv and trials, in either layout, zipped or unpacked."""
    eval_seed: int = 1000
    """Seed of the agent; recorded, but scores do not depend on it: recorded frames are replayed."""
    saliency: tuple[str, ...] = ("attention",)
    """Saliency methods to score; baselines, mean_gaze and human are methods too.

    The first one's scores are those of saliency.pkl and saliency.png."""
    baselines: bool | None = None
    """Score the baselines too: uniform, random, centre, frame_difference, mean_gaze, human.

    Default: unless attention alone is scored."""
    processed_obs: bool = False
    """Compare on the network's 84x84 input instead of the 210x160 screen."""
    gaze_alignment: Alignment = "frames"
    """Gaze of the frames that the network saw, or `original`: one frame early, as published."""
    trials: tuple[int, ...] = ()
    """Numbers of the trials to score; default all of the model's game."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""
    output_dir: Path | None = None
    """Folder for the results, new or empty; default: the run directory itself."""
    overwrite: bool = False
    """Replace results that are there, and begin anew instead of going on with an unfinished job."""
    progress: bool = True
    """Progress bar (on a terminal only)."""
    method: Annotated[MethodOptions, arg(name="")] = field(default_factory=MethodOptions)
    """What the methods are told."""


def main(argv: Sequence[str] | None = None, *, prog: str = PROG) -> int:
    """Benchmark as `argv` says; returns the exit status, 1 if a trial was broken."""
    return run_command(
        BenchmarkConfig,
        partial(_benchmark, prog=prog),
        argv,
        prog=prog,
        description="Score an agent's saliency maps against human gaze (Atari-HEAD).",
    )


def _benchmark(config: BenchmarkConfig, *, prog: str) -> int:
    from fl_saliency.cli.benchmark_job import run_benchmark

    return run_benchmark(config, prog=prog)
