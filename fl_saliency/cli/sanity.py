"""`fls sanity`: can an agent's saliency maps be believed at all? Checks that they may fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from fl_saliency.cli.common import run_command
from fl_saliency.errors import InputError
from fl_saliency.folders import ResultsPlace
from fl_saliency.saliency.methods import check_methods
from fl_saliency.seeding import check_seed

__all__ = ["METHODS", "RESULT_FILES", "SanityConfig", "main"]

RESULT_FILES = (
    "sanity.json",
    "sanity.html",
    "examples.png",
    "randomisation.png",
    "insertion_deletion.png",
    "zeroing.png",
    "agreement.png",
)
METHODS = ("attention", "perturbation", "gradcam", "integrated_gradients")
"""What is checked if nothing is said; attention only where a network has it."""
MAX_STATES = 1000
MAX_EVERY = 10_000


@dataclass(frozen=True, kw_only=True)
class SanityConfig:
    """Check saliency methods on a trained agent."""

    run: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory: config.json and model.pkl, ours or OpenAI Baselines'."""
    experiment_dir: Path | None = None
    """The same, as the other commands name it."""
    methods: tuple[str, ...] | None = None
    """Methods to check; default: attention (where there is any), perturbation, gradcam and
    integrated_gradients. The baselines centre and random always come along."""
    states: int = 64
    """States of the agent's play that are looked at."""
    every: int = 16
    """Decisions from one of them to the next: 16 are about a second of play."""
    seed: int = 0
    """Seed of the re-drawn weights, of ties, of random orders, and of the intervals."""
    eval_seed: int = 1000
    """Seed of the games and of the agent's action sampling."""
    output_dir: Path | None = None
    """Folder for the results, new or empty; default: sanity/ in the run directory."""
    overwrite: bool = False
    """Replace results that are there, and begin anew instead of going on with an unfinished job."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""
    progress: bool = True
    """Progress bar (on a terminal only)."""

    @property
    def directory(self) -> Path:
        """The run directory, whichever way it was named."""
        if (self.run is None) == (self.experiment_dir is None):
            raise InputError("RUN: expected one run directory (or --experiment-dir instead)")
        return self.run or self.experiment_dir or Path()

    @property
    def place(self) -> ResultsPlace:
        """Where the results go."""
        return ResultsPlace(
            self.output_dir or self.directory / "sanity",
            run=self.directory,
            names=RESULT_FILES,
            partial="sanity.partial",
            overwrite=self.overwrite,
        )

    def check(self) -> None:
        """Raise InputError for a number out of range or a method that cannot be."""
        from fl_saliency.experiments.sanity import BASELINES

        if not 2 <= self.states <= MAX_STATES:
            raise InputError(f"--states {self.states}: expected 2 to {MAX_STATES}")
        if not 1 <= self.every <= MAX_EVERY:
            raise InputError(f"--every {self.every}: expected 1 to {MAX_EVERY} decisions")
        check_seed("--seed", self.seed)
        check_seed("--eval-seed", self.eval_seed)
        if self.methods is None:
            return
        check_methods(self.methods)
        for name in set(self.methods) & set(BASELINES):
            raise InputError(
                f"--methods {name}: expected other methods; this baseline always comes along"
            )


def main(argv: Sequence[str] | None = None, *, prog: str = "fls sanity") -> int:
    """Check as `argv` says; returns the exit status."""
    return run_command(
        SanityConfig,
        _sanity,
        argv,
        prog=prog,
        description="Check saliency methods on a trained agent: randomised weights, insertion and "
        "deletion, high against low, agreement.",
    )


def _sanity(config: SanityConfig) -> int:
    from fl_saliency.cli.sanity_job import run_sanity

    return run_sanity(config)
