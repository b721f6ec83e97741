"""Usage errors: one line in plain words, whatever the width and the alphabet of the terminal."""

import contextlib
import io
import sys
from dataclasses import dataclass
from typing import Literal

import pytest
import tyro

from fl_saliency.cli.usage import usage_error


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a test."""

    folder: str
    """Which folder (required, as everything --here is)."""
    repeat_action_probability: float | None = None
    """A number or None."""
    numbers: tuple[int, ...] = ()
    """Several numbers."""
    format: Literal["text", "json"] = "text"
    """A choice."""
    quick: bool = False
    """A switch."""


SAID = [
    ((), "--folder is required"),
    (("--foldr", "x"), "unknown option --foldr; --folder is required"),
    (("--folder",), "--folder: expected a value behind it"),
    (
        ("--folder", "x", "--repeat-action-probability", "x" * 9),
        "--repeat-action-probability 'xxxxxxxxx': expected a number",
    ),
    (("--folder", "x", "--numbers", "1", "b"), "--numbers '1', 'b': expected whole numbers"),
    (("--folder", "x", "--format", "jso"), "--format: unknown value 'jso'; did you mean 'json'?"),
    (("--folder", "x", "--quik"), "unknown option --quik; did you mean --quick?"),
    (("--folder", "x", "--xyzzy", "1"), "unknown option --xyzzy"),
    (("--folder", "x", "y"), "unexpected argument 'y'"),
]


def boxed(argv: tuple[str, ...]) -> str:
    """What tyro writes."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), pytest.raises(SystemExit):
        tyro.cli(Settings, args=argv, prog="tester")
    return err.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("columns", ["40", "80", "300"])
@pytest.mark.parametrize(("argv", "said"), SAID)
def test_usage_errors_are_said_in_plain_words(
    argv: tuple[str, ...],
    said: str,
    columns: str,
    encoding: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    box = boxed(argv)
    assert ("─" in box) == (encoding == "utf-8")
    assert usage_error(box) == said


def test_a_form_that_is_not_known_is_passed_on_without_its_frame() -> None:
    box = (
        "╭─ Odd ─────────╮\n│ The moon is   │\n│ in the wrong  │\n│ phase.        │\n"
        "│ ───────────── │\n│ For full helptext, see x --help │\n╰──╯\n"
    )
    assert usage_error(box) == "The moon is in the wrong phase."
    assert usage_error("") == "wrong usage"
