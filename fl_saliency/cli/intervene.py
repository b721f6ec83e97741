"""`fls intervene`: change one moment of a game, and see what the agent makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
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
from fl_saliency.experiments.intervention.settings import InterventionFlags, InterventionSettings
from fl_saliency.experiments.runs import read_config

__all__ = ["InterveneConfig", "main"]

Words = Annotated[tuple[tuple[str, ...], ...], UseAppendAction]
"""Behind one option or several: `--ram 99=60 101+=8` is `--ram 99=60 --ram 101+=8`."""


@dataclass(frozen=True, kw_only=True)
class InterveneConfig(InterventionFlags):
    """Change one moment of a game, and play on from there with and without the change."""

    ram: Words = ()
    """Bytes 0 to 127 of the console's memory: 99=60, 101+=8 or 72-=4."""
    mask: Words = ()
    """Regions X,Y,W,H of the screen to paint over, in pixels from its upper left corner."""
    move: Words = ()
    """Regions X,Y,W,H,DX,DY of the screen to move by DX to the right and DY down."""
    fill: str | None = None
    """Colour R,G,B of what is masked or moved away; default the commonest around it."""

    def settings(self) -> InterventionSettings:
        """These settings, with the edits read; InputError for one that cannot be."""
        edits = Edits(
            ram=tuple(parse_ram(word) for words in self.ram for word in words),
            masks=tuple(parse_mask(word) for words in self.mask for word in words),
            moves=tuple(parse_move(word) for words in self.move for word in words),
            fill=None if self.fill is None else parse_colour(self.fill),
        )
        flags = {field.name: getattr(self, field.name) for field in fields(InterventionFlags)}
        return InterventionSettings(edits=edits, **flags)


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
