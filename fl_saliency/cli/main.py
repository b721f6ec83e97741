"""`fls`: one entry for every command."""

import importlib
import sys
from collections.abc import Sequence

import fl_saliency
from fl_saliency.errors import unknown_choice

__all__ = ["main"]

COMMANDS = {
    "train": "train an agent",
    "run": "evaluate an agent and record what it looks at",
    "saliency": "draw maps of any method over an agent's play",
    "benchmark": "score an agent's attention against human gaze (Atari-HEAD)",
    "intervene": "change one moment of a game, and see what the agent makes of it",
    "sanity": "check saliency methods on an agent: randomised weights, insertion and deletion",
    "networks": "list the networks with their parameter counts",
    "data": "download and audit Atari-HEAD",
    "doctor": "check run directories and results: checksums, formats, completeness",
}
"""Command, which is a module of `fl_saliency.cli` -> its one-line help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_usage())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"fl-saliency {fl_saliency.__version__}")
        return 0
    if words[0] not in COMMANDS:
        print(f"fls: error: {unknown_choice('command', words[0], COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"fl_saliency.cli.{words[0]}")
    return int(module.main(words[1:], prog=f"fls {words[0]}"))


def _usage() -> str:
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    return f"usage: fls COMMAND [options]\n\ncommands:\n{rows}\n\nfls COMMAND --help tells more."
