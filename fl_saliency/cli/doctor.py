"""`fls doctor`: are run directories and results whole, and how far have their jobs come?"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from fl_saliency.cli.common import printable, run_command, start_tensorflow
from fl_saliency.errors import InputError

if TYPE_CHECKING:
    from fl_saliency.experiments.doctor import Finding

__all__ = ["DoctorConfig", "main"]


@dataclass(frozen=True, kw_only=True)
class DoctorConfig:
    """What to examine."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR...")]
    """Run directories, and folders that `fls run` or `fls benchmark` wrote results into."""
    format: Literal["text", "json"] = "text"
    """How to write the findings to stdout."""
    extra_import: tuple[str, ...] = ()
    """Modules to import first, whose @register adds networks."""


def main(argv: Sequence[str] | None = None, *, prog: str = "fls doctor") -> int:
    """Examine as `argv` says; returns the exit status: 1 if anything is bad."""
    return run_command(
        DoctorConfig,
        _examine,
        argv,
        prog=prog,
        description=(
            "Check run directories and results: checksums, formats, completeness. Only reads. "
            "Exit status 0: all whole; 1: something is damaged, missing or contradictory."
        ),
    )


def _examine(config: DoctorConfig) -> int:
    if not config.directories:
        raise InputError("DIR: expected at least one run directory")
    for directory in config.directories:  # told at once, before TensorFlow starts
        if not directory.is_dir():
            raise InputError(f"{directory}: no such folder")
    start_tensorflow()
    from fl_saliency.experiments.doctor import check_directory, examine
    from fl_saliency.networks.registry import import_extra

    for directory in config.directories:  # all of them first: a wrong one is no finding
        check_directory(directory)
    import_extra(config.extra_import)
    bad = False
    reports = []
    for directory in config.directories:
        findings = examine(directory)
        bad |= _problems(findings) > 0
        reports.append(_as_dict(directory, findings))
        if config.format == "text":
            print(_text(directory, findings), flush=True)
    if config.format == "json":
        print(json.dumps(reports, indent=4))
    return int(bad)


def _problems(findings: Sequence["Finding"]) -> int:
    return sum(finding.status == "bad" for finding in findings)


def _as_dict(directory: Path, findings: Sequence["Finding"]) -> dict[str, object]:
    return {
        "directory": str(directory),
        "problems": _problems(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _text(directory: Path, findings: Sequence["Finding"]) -> str:
    """A line per finding, in columns, and one that sums them up."""
    width = max(len(finding.part) for finding in findings)
    lines = [f"{item.status:<4}  {item.part:<{width}}  {item.text}" for item in findings]
    number = _problems(findings)
    end = "whole" if not number else f"{number} problem{'' if number == 1 else 's'}"
    return "\n".join(map(printable, [*lines, f"{directory}: {end}"]))
