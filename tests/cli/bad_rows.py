"""One row of the bad input matrix, and the rows that many commands have in common."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.atari_head.zenodo import FakeZenodo
from tests.cli import bad_files as made
from tests.cli.bad_files import LONG, Build

__all__ = [
    "HUGE",
    "NOT_FOUND",
    "BadInput",
    "choices",
    "extra_imports",
    "full_output_dir",
    "not_numbers",
    "out_of_range",
    "output_dirs",
    "row",
    "run_directories",
    "run_file",
    "usage",
]


@dataclass(frozen=True, kw_only=True)
class BadInput:
    """One thing that is wrong, and what its user sees."""

    command: str
    """Behind `fls`: "train", "data audit", ...; empty for `fls` alone."""
    wrong: str
    """What is wrong, for people; the documentation shows `words` behind it."""
    said: str
    """The error's line behind "error: ", where "..." stands for any text.

    Paths are relative to the folder that the command runs in.
    """
    words: tuple[str, ...] = ()
    """Further words of the command line: they come after those in BASE, and win."""
    files: tuple[Build, ...] = ()
    """What makes the files; without any, the command must fail before it looks for one."""
    status: int = 2
    server: Callable[[FakeZenodo], None] | None = None
    """Sets up a Zenodo on this machine; without one, nothing may be asked of the network."""
    alone: bool = False
    """Whether the words in BASE are left out."""


HUGE = str(10**23)
"""Beyond every integer type that a library may have."""


def row(command: str, wrong: str, said: str, *words: str, **more: Any) -> BadInput:
    return BadInput(command=command, wrong=wrong, said=said, words=words, **more)


# --- options of every kind ----------------------------------------------------------------------


def not_numbers(command: str, *, whole: str = "", numbers: str = "") -> Iterator[BadInput]:
    """What is no number at all, for the options named in `whole` and `numbers`."""
    for name in whole.split():
        for value, wrong in (("many", "a text"), ("1.5", "a fraction"), ("", "nothing")):
            said = f"--{name} {value!r}: expected a whole number"
            yield row(command, f"{wrong} for a whole number", said, f"--{name}", value)
    for name in numbers.split():
        for value, wrong in (("high", "a text"), ("", "nothing")):
            said = f"--{name} {value!r}: expected a number"
            yield row(command, f"{wrong} for a number", said, f"--{name}", value)


def out_of_range(command: str, names: str, values: str, expected: str) -> Iterator[BadInput]:
    for name in names.split():
        for value in values.split():
            said = f"--{name} {value}: expected {expected}"
            yield row(command, "out of range", said, f"--{name}", value)


def choices(command: str, name: str, near: str, meant: str, known: str) -> Iterator[BadInput]:
    """A misspelt choice and an empty one."""
    said = f"--{name}: unknown value {near!r}; did you mean {meant!r}?"
    yield row(command, "a misspelt choice", said, f"--{name}", near)
    said = f"--{name}: unknown value ''; choose one of: {known}"
    yield row(command, "nothing for a choice", said, f"--{name}", "")


def usage(command: str, near: str, meant: str) -> Iterator[BadInput]:
    """Command lines that cannot be read."""
    said = f"unknown option {near}; did you mean {meant}?"
    yield row(command, "a misspelt option", said, near, "1")
    yield row(command, "a stray word", "unexpected argument 'now'", "now")
    said = f"{meant}: expected a value behind it"
    yield row(command, "an option without its value", said, meant)


def extra_imports(command: str, *files: Build) -> Iterator[BadInput]:
    files = (*files, made.modules)
    for module in ("", "./my_nets.py", "my nets"):
        said = f"--extra-import {module!r}: expected the name of a module, such as my_nets"
        yield row(command, "no module's name", said, "--extra-import", module, files=files)
    for module, wrong, said in (
        ("no_such", "no module", "ModuleNotFoundError: No module named 'no_such'"),
        (
            "bad_syntax",
            "a module with an error",
            "SyntaxError: invalid syntax (bad_syntax.py, ...)",
        ),
        ("bad_lines", "a module that raises", r"ValueError: two\nlines"),
        ("bad_exit", "a module that exits", "SystemExit: gone"),
    ):
        said = f"--extra-import {module}: cannot import it ({said})"
        yield row(command, wrong, said, "--extra-import", module, files=files)
    said = "network 'cnn' is registered already; choose another name"
    words = ("--extra-import", "bad_name")
    yield row(command, "a network's name that is taken", said, *words, files=files)


def output_dirs(command: str, *files: Build, **more: Any) -> Iterator[BadInput]:
    """Folders that cannot be made or written to."""
    for name, build, wrong, said in (
        ("file", made.a_file, "a file for a folder", "expected a folder, found a file"),
        ("file/new", made.a_file, "a folder below a file", "cannot write there (Not a directory)"),
        (
            "locked/new",
            made.locked_folder,
            "a folder without access",
            "cannot write there (Permission denied)",
        ),
    ):
        said = f"--output-dir {name}: {said}"
        words = ("--output-dir", name)
        yield row(command, wrong, said, *words, files=(*files, build), **more)
    said = "...: File name too long"
    yield row(command, "a name that is too long", said, "--output-dir", LONG, files=files, **more)


def full_output_dir(command: str, *files: Build) -> BadInput:
    said = "--output-dir full: expected a new or empty folder, found 'notes.txt' in it"
    words = ("--output-dir", "full")
    return row(command, "a folder in use", said, *words, files=(*files, made.full_folder))


# --- run directories ---


def run_directories(command: str, *files: Build) -> Iterator[BadInput]:
    for name, build, wrong, said in (
        ("nowhere", made.a_file, "no such folder", "nowhere: no such run directory"),
        ("file", made.a_file, "a file for a folder", "file: no such run directory"),
        ("empty", made.empty_folder, "a folder without a run", f"empty/config.json: {NOT_FOUND}"),
        ("", made.a_file, "nothing for a folder", f"config.json: {NOT_FOUND}"),
        (LONG, made.a_file, "a name that is too long", "...: cannot read it (File name too long)"),
    ):
        words = ("--experiment-dir", name)
        yield row(command, wrong, said, *words, files=(*files, build))


NOT_FOUND = "not found; a run directory has it, with at least env_name and network"


def run_file(command: str, wrong: str, said: str, *builds: Build) -> BadInput:
    """A row about a file of the run directory, all else being right."""
    files = (made.good_run, *builds, *((made.good_gaze,) if command == "benchmark" else ()))
    return row(command, wrong, said, files=files)
