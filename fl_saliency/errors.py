"""Exceptions of the project: each is one line for the user and an exit status for the shell."""

import difflib
from collections.abc import Iterable

__all__ = [
    "FileFormatError",
    "FlsError",
    "InputError",
    "JobError",
    "MissingExtraError",
    "unknown_choice",
]


class FlsError(Exception):
    """Base of every error that a user can cause or must know of; `exit_status` is the shell's."""

    exit_status = 1


class InputError(FlsError):
    """An argument or an input file was wrong; found before the job began, so nothing is written."""

    exit_status = 2


class FileFormatError(InputError):
    """A file is not what its reader expects: damaged, truncated, foreign or hostile."""


class MissingExtraError(InputError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an extra: pip install '.[{extra}]' in the checkout")


class JobError(FlsError):
    """A job began and could not be finished."""

    exit_status = 1


def unknown_choice(kind: str, value: str, choices: Iterable[str]) -> InputError:
    """The error for a `value` that is none of `choices`; it names the nearest one.

    `unknown_choice("network", "cnn_spars_fls", names)` reads
    "unknown network 'cnn_spars_fls'; did you mean 'cnn_sparse_fls'?".
    """
    known = sorted(choices)
    near = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of: {', '.join(known)}"
    return InputError(f"unknown {kind} {value!r}; {hint}")
