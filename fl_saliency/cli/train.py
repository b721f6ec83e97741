"""`fls train` and train_baselines.py: train an agent with PPO2."""

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

from fl_saliency.cli.common import parse_config, run_command, start_tensorflow
from fl_saliency.errors import InputError
from fl_saliency.experiments.configs import TrainConfig
from fl_saliency.experiments.runs import RunDir, check_run_directory, read_config

__all__ = ["main"]

_DESCRIPTION = "Train an agent on an Atari game with PPO2, as OpenAI Baselines does."
_OF_THIS_START = (
    *("resume", "output_dir", "checkpoint_minutes", "env_workers", "progress"),
    "extra_import",  # never taken from a file: modules are code
)
"""Settings that do not change what a run learns, so that every start has its own."""


def main(argv: Sequence[str] | None = None, *, prog: str = "train_baselines.py") -> int:
    """Train as `argv` says; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    job = partial(_train, words=words, prog=prog)
    return run_command(TrainConfig, job, words, prog=prog, description=_DESCRIPTION)


def _train(config: TrainConfig, *, words: Sequence[str], prog: str) -> int:
    if config.resume and RunDir(config.run_directory).config.exists():
        config = _as_begun(config, words, prog)
    config.check()
    config.protocol(config.env_name)
    check_run_directory(config.run_directory, resume=config.resume)
    start_tensorflow()
    from fl_saliency.experiments.training import train

    run = train(config, announce=partial(print, flush=True))
    print(f"{run.path}: model.pkl, curve.png, logs/, tb/, checkpoints/")
    return 0


def _as_begun(config: TrainConfig, words: Sequence[str], prog: str) -> TrainConfig:
    """The settings that the run in `config`'s folder began with; InputError if `words` differ."""
    directory = config.run_directory
    path = RunDir(directory).config
    begun = replace(TrainConfig.from_dict(read_config(directory), path), extra_import=())
    given = parse_config(TrainConfig, words, prog=prog, description=_DESCRIPTION, default=begun)
    for field in fields(TrainConfig):
        before, now = getattr(begun, field.name), getattr(given, field.name)
        if field.name not in _OF_THIS_START and before != now:
            flag = "--" + field.name.replace("_", "-")
            raise InputError(
                f"{flag} {now}: the run in {directory} began with {before}; a run goes on with its "
                "own settings (leave the option out, or train in another --output-dir)"
            )
    return replace(given, output_dir=directory)
