"""`fls saliency`: maps of any method over an agent's play, or over a recorded trial."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from fl_saliency.cli.common import run_command
from fl_saliency.errors import InputError
from fl_saliency.folders import ResultsPlace
from fl_saliency.render.heat import COLOURS, OverlayStyle
from fl_saliency.saliency.methods import check_methods
from fl_saliency.saliency.options import MethodOptions
from fl_saliency.saliency.perturbation import CHANNELS

__all__ = ["PARTIAL", "RESULT_FILES", "SaliencyConfig", "main"]

PARTIAL = "maps.partial"
"""Folder of an unfinished job."""
RESULT_FILES = ("maps.json", "maps.npz", "states.npz", "stills.png")
MAX_STEPS = 100_000
_VIDEO = re.compile(
    rf"_({'|'.join(COLOURS)})_c[0-9.]+_s[0-9.]+(_({'|'.join(CHANNELS)}))?\.mp4$", re.ASCII
)
"""How the names of our videos end."""


@dataclass(frozen=True, kw_only=True)
class SaliencyConfig:
    """Draw saliency maps of one or more methods over what an agent sees."""

    experiment_dir: Path
    """Run directory: config.json and model.pkl, ours or OpenAI Baselines'."""
    methods: tuple[str, ...] = ("attention",)
    """Methods, side by side: attention, perturbation, gradcam, ... (see docs/saliency.md)."""
    steps: int = 300
    """States to draw, one a decision of the agent; a game that ends is followed by the next."""
    eval_seed: int = 1000
    """Seed of the games and of the agent's action sampling."""
    atari_head_dir: Path | None = None
    """Instead of playing: a folder of Atari-HEAD, of which --trial is replayed."""
    trial: int | None = None
    """Number of the trial in --atari-head-dir; the action explained is the agent's greedy one."""
    preset: Literal["procgen"] | None = None
    """procgen: perturbation of the policy, by default --colour red --intensity 100 --smooth 5."""
    options: Annotated[MethodOptions, tyro.conf.arg(name="")] = field(default_factory=MethodOptions)
    """What the methods are told."""
    style: Annotated[OverlayStyle, tyro.conf.arg(name="")] = field(default_factory=OverlayStyle)
    """How the maps are drawn."""
    output_dir: Path | None = None
    """Folder for the results, new or empty; default: saliency/ in the run directory."""
    overwrite: bool = False
    """Replace results that are there, and begin anew instead of going on with an unfinished job."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""
    progress: bool = True
    """Progress bar (on a terminal only)."""

    @property
    def place(self) -> ResultsPlace:
        """Where the results go."""
        path = self.output_dir or self.experiment_dir / "saliency"
        # A video's name tells its settings; those of other settings are results too.
        videos = [file.name for file in path.glob("*.mp4") if _VIDEO.search(file.name)]
        return ResultsPlace(
            path,
            run=self.experiment_dir,
            names=(*RESULT_FILES, *{self.video_name, *videos}),
            partial=PARTIAL,
            overwrite=self.overwrite,
        )

    @property
    def video_name(self) -> str:
        """The video's file, named after what is in it."""
        target = self.options.target.replace(":", "-")
        mode = f"_{self.options.channels}" if self.options.channels else ""
        return f"{'+'.join(self.methods)[:80]}_{target}_{self.style.file_name()}{mode}.mp4"

    def check(self) -> None:
        """Raise InputError for a number out of range, or a trial without its folder."""
        if not 1 <= self.steps <= MAX_STEPS:
            raise InputError(f"--steps {self.steps}: expected 1 to {MAX_STEPS}")
        if (self.atari_head_dir is None) != (self.trial is None):
            raise InputError("--atari-head-dir and --trial: expected both or none of them")
        check_methods(self.methods)
        self.options.check()
        self.style.check()

    def resolved(self) -> "SaliencyConfig":
        """These settings with those of the preset where nothing else is said.

        Raises InputError for a method or target that is not the preset's.
        """
        if self.preset is None:
            return self
        plain, options, style = SaliencyConfig(experiment_dir=Path()), self.options, self.style
        if self.methods not in (plain.methods, ("perturbation",)):
            given = " ".join(self.methods)
            raise InputError(f"--methods {given}: --preset procgen is perturbation")
        if options.target not in (plain.options.target, "policy"):
            raise InputError(f"--target {options.target}: --preset procgen explains the policy")
        wanted = {"colour": "red", "intensity": 100.0, "smooth": 5.0}
        unsaid = {n: v for n, v in wanted.items() if getattr(style, n) == getattr(plain.style, n)}
        options = replace(options, target="policy", channels=options.channels or "mean")
        drawn = OverlayStyle(**{**asdict(style), **unsaid})
        return replace(self, methods=("perturbation",), options=options, style=drawn)


def main(argv: Sequence[str] | None = None, *, prog: str = "fls saliency") -> int:
    """Draw maps as `argv` says; returns the exit status."""
    return run_command(
        SaliencyConfig,
        _saliency,
        argv,
        prog=prog,
        description="Draw saliency maps of one or more methods over what an agent sees.",
    )


def _saliency(config: SaliencyConfig) -> int:
    from fl_saliency.cli.saliency_job import run_saliency

    return run_saliency(config.resolved())
