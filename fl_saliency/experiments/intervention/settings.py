"""Settings of an intervention, checked before anything is loaded."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fl_saliency.errors import InputError
from fl_saliency.experiments.intervention.edits import Edits
from fl_saliency.folders import ResultsPlace
from fl_saliency.saliency.methods import check_methods
from fl_saliency.seeding import check_seed

__all__ = ["MAX_STEPS", "RESULT_FILES", "ActionRule", "InterventionFlags", "InterventionSettings"]

RESULT_FILES = ("intervention.json", "intervention.npz", "intervention.png")
"""What an intervention leaves."""

MAX_STEPS = 1000
"""Decisions of a branch: their screens are kept in memory, 100 kB each."""

ActionRule = Literal["sampled", "greedy", "same"]
"""How the branches act: `sampled` from the policy, both with the same random numbers; `greedy`, the
likeliest action; `same`, the changed game repeats what was sampled in the original one."""


@dataclass(frozen=True, kw_only=True)
class InterventionFlags:
    """What an intervention is told besides its edits; a command has these as its options."""

    experiment_dir: Path
    """Run directory: config.json and model.pkl, ours or OpenAI Baselines'."""
    at: int
    """Decision of the game's agent at which something is changed; the first is 0."""
    keep: bool = False
    """Mask and move at all further decisions too, and not at the first only."""
    steps: int = 8
    """Decisions to play with and without the change."""
    actions: ActionRule = "sampled"
    """Sampled from each policy with the same random numbers; greedy (the likeliest); or the same:
    the changed game repeats the actions of the original one."""
    methods: tuple[str, ...] = ("attention",)
    """Saliency methods whose maps are compared; none without a name behind it."""
    target: str = "action"
    """What the maps explain: action (the one played), action:N, value, policy, or LAYER:N."""
    eval_seed: int = 1000
    """Seed of the game and of action sampling: the game that `fls run --num-env 1` plays first."""
    output_dir: Path | None = None
    """Folder for the results, new or empty; default: the run directory itself."""
    overwrite: bool = False
    """Replace results that are there."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""
    progress: bool = True
    """Progress bar (on a terminal only)."""


@dataclass(frozen=True, kw_only=True)
class InterventionSettings(InterventionFlags):
    """One moment of one game, what is changed there, and what is looked at."""

    edits: Edits
    """What is changed."""

    @property
    def place(self) -> ResultsPlace:
        """Where the results go."""
        return ResultsPlace(
            self.output_dir or self.experiment_dir,
            run=self.experiment_dir,
            names=RESULT_FILES,
            partial="intervention.partial",
            overwrite=self.overwrite,
        )

    def check(self) -> None:
        """Raise InputError for a number out of range, and if there is nothing to change."""
        if self.at < 0:
            raise InputError(f"--at {self.at}: expected a decision, 0 or more")
        if not 1 <= self.steps <= MAX_STEPS:
            raise InputError(f"--steps {self.steps}: expected 1 to {MAX_STEPS}")
        check_seed("--eval-seed", self.eval_seed)
        if not (self.edits.ram or self.edits.change_picture):
            raise InputError("nothing to change: expected --ram, --mask or --move, see --help")
        if not self.edits.change_picture:
            for option, given in (("--keep", self.keep), ("--fill", self.edits.fill)):
                if given:
                    raise InputError(f"{option}: expected --mask or --move with it")
        if self.methods:
            check_methods(self.methods)

    def as_dict(self) -> dict[str, Any]:
        """What results depend on, as JSON types."""
        edits = self.edits
        return {
            "eval_seed": self.eval_seed,
            "at": self.at,
            "steps": self.steps,
            "actions": self.actions,
            "keep": self.keep,
            "ram": [str(edit) for edit in edits.ram],
            "mask": [asdict(region) for region in edits.masks],
            "move": [asdict(move) for move in edits.moves],
            "fill": edits.fill,
            "methods": list(self.methods),
            "target": self.target,
        }
