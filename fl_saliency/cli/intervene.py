"""`fls intervene`: change one moment of a game, and see what the agent makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction

from fl_saliency.cli.common import run_command, start_tensorflow
from fl_saliency.experiments.intervention.edits import (
    Edits,
    parse_colour,
    parse_mask,
    parse_move,
    parse_ram,
)
from fl_saliency.experiments.intervention.settings import ActionRule, InterventionSettings
from fl_saliency.experiments.runs import read_config

__all__ = ["InterveneConfig", "main"]

Words = Annotated[tuple[tuple[str, ...], ...], UseAppendAction]
"""Behind one option or several: `--ram 99=60 101+=8` is `--ram 99=60 --ram 101+=8`."""


@dataclass(frozen=True, kw_only=True)
class InterveneConfig:
    """Change one moment of a game, and play on from there with and without the change."""

    experiment_dir: Path
    """Run directory: config.json and model.pkl, ours or OpenAI Baselines'."""
    at: int
    """Decision of the game's agent at which something is changed; the first is 0."""
    ram: Words = ()
    """Bytes 0 to 127 of the console's memory: 99=60, 101+=8 or 72-=4."""
    mask: Words = ()
    """Regions X,Y,W,H of the screen to paint over, in pixels from its upper left corner."""
    move: Words = ()
    """Regions X,Y,W,H,DX,DY of the screen to move by DX to the right and DY down."""
    fill: str | None = None
    """Colour R,G,B of what is masked or moved away; default the commonest around it."""
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

    def settings(self) -> InterventionSettings:
        """These settings, with the edits read; InputError for one that cannot be."""
        edits = Edits(
            ram=tuple(parse_ram(word) for words in self.ram for word in words),
            masks=tuple(parse_mask(word) for words in self.mask for word in words),
            moves=tuple(parse_move(word) for words in self.move for word in words),
            fill=None if self.fill is None else parse_colour(self.fill),
        )
        return InterventionSettings(
            experiment_dir=self.experiment_dir,
            at=self.at,
            edits=edits,
            keep=self.keep,
            steps=self.steps,
            actions=self.actions,
            methods=self.methods,
            target=self.target,
            eval_seed=self.eval_seed,
            output_dir=self.output_dir,
            overwrite=self.overwrite,
            extra_import=self.extra_import,
            progress=self.progress,
        )


def main(argv: Sequence[str] | None = None, *, prog: str = "fls intervene") -> int:
    """Intervene as `argv` says; returns the exit status."""
    return run_command(
        InterveneConfig,
        _intervene,
        argv,
        prog=prog,
        description="Change one moment of a game, and play on with and without the change.",
    )


def _intervene(config: InterveneConfig) -> int:
    settings = config.settings()
    settings.check()
    read_config(settings.experiment_dir)
    settings.place.check()
    start_tensorflow()
    from fl_saliency.experiments.intervention.job import intervene

    result = intervene(settings, announce=partial(print, flush=True))
    for line in result.summary(settings.at):
        print(line)
    for path in result.files:
        print(path)
    return 0
