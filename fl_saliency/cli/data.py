"""`fls data`: download and audit Atari-HEAD (Zhang et al. 2020)."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tqdm import tqdm

from fl_saliency.atari_head import audit
from fl_saliency.atari_head.download import BASE_URL, RECORD, download_game
from fl_saliency.atari_head.reader import TrialRef, audit_trials, find_all_trials, find_trials
from fl_saliency.atari_head.transfer import RemoteFile, Transfer
from fl_saliency.cli.common import run_command
from fl_saliency.errors import InputError, JobError, unknown_choice

__all__ = ["AuditConfig", "DownloadConfig", "main"]


@dataclass(frozen=True, kw_only=True)
class DownloadConfig:
    """Download one game of Atari-HEAD from Zenodo, then audit it."""

    game: str
    """Which game, in any spelling: breakout, MsPacman, ms_pacman, ..."""
    output_dir: Path
    """Folder to fill; what is there and whole is kept, what was interrupted is continued."""
    record: int = RECORD
    """Zenodo record: 3451402 (20 games) or 2603190 (the version that the paper used)."""
    base_url: str = BASE_URL
    """The site; a mirror of Zenodo must speak https (http only on this machine)."""


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """Count what is in every trial and what is odd about it."""

    atari_head_dir: Path
    """Folder with meta_data.csv and the trials, in either layout, zipped or unpacked."""
    game: str = "all"
    """Which game, in any spelling, or all of which there is any trial."""
    format: Literal["text", "json", "csv"] = "text"
    """How to write the table to stdout."""


def main(argv: Sequence[str] | None = None, *, prog: str = "fls data") -> int:
    """Run `fls data COMMAND`; returns its exit status, 1 if a trial is broken."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if words else 2
    if words[0] not in _COMMANDS:
        print(f"{prog}: error: {unknown_choice('command', words[0], _COMMANDS)}", file=sys.stderr)
        return 2
    return _COMMANDS[words[0]](words[1:])


def _main_download(words: Sequence[str]) -> int:
    return run_command(
        DownloadConfig,
        _download,
        words,
        prog="fls data atari-head",
        description="Download one game of Atari-HEAD from Zenodo, then audit it.",
    )


def _main_audit(words: Sequence[str]) -> int:
    return run_command(
        AuditConfig,
        _audit,
        words,
        prog="fls data audit",
        description="Count what is in every trial and what is odd about it.",
    )


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "atari-head": _main_download,
    "audit": _main_audit,
}

_USAGE = """usage: fls data COMMAND [options]

commands:
  atari-head  download a game of Atari-HEAD from Zenodo, then audit it
  audit       count what is in every trial and what is odd about it

fls data COMMAND --help tells more."""


def _download(config: DownloadConfig) -> int:
    if config.record < 1:
        raise InputError(f"--record {config.record}: expected the number of a Zenodo record")
    with _Bar() as bar, Transfer(progress=bar) as transfer:
        download_game(
            config.game,
            config.output_dir,
            record=config.record,
            base_url=config.base_url,
            transfer=transfer,
        )
    return _audit(AuditConfig(atari_head_dir=config.output_dir, game=config.game))


def _audit(config: AuditConfig) -> int:
    """Write the table to stdout, absent trials to stderr; JobError if a trial is broken."""
    directory = config.atari_head_dir
    everything = config.game.lower() == "all"
    refs = find_all_trials(directory) if everything else find_trials(directory, config.game)
    present = [ref for ref in refs if not ref.absent]
    bar = tqdm(present, desc="audit", unit="trial", disable=None)
    audits = list(audit_trials(bar, decode=True))
    render = {"text": audit.to_text, "json": audit.to_json, "csv": audit.to_csv}[config.format]
    print(render(audits))
    if absent := [ref for ref in refs if ref.absent]:
        print(_absent_note(absent, directory), file=sys.stderr)
    if broken := [row.problem for row in audits if row.problem]:
        many = f"{len(broken)} of {len(audits)} trials are broken; the first: "
        raise JobError(f"{'' if len(broken) == 1 else many}{broken[0]}")
    return 0


def _absent_note(absent: Sequence[TrialRef], directory: Path) -> str:
    numbers = ", ".join(str(ref.number) for ref in absent[:10])
    more = ", ..." if len(absent) > 10 else ""
    return f"listed in meta_data.csv, but not in {directory}: {len(absent)} ({numbers}{more})"


class _Bar:
    """A progress bar on stderr, if that is a terminal; notes go there in any case."""

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None

    def start(self, file: RemoteFile, done: int) -> None:
        self.close()
        self._bar = tqdm(
            desc=file.name,
            total=file.size,
            initial=done,
            unit="B",
            unit_scale=True,
            disable=None,
        )

    def at(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def note(self, text: str) -> None:
        tqdm.write(text, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()
