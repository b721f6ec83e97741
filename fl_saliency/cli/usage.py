"""tyro's boxed usage errors as one line, in the words of the other messages."""

import re
from collections.abc import Callable

from fl_saliency.errors import unknown_choice

__all__ = ["usage_error"]

_NOUNS = {"INT": "whole number", "FLOAT": "number", "PATH": "path", "STR": "text"}
_BORDER = "│╭╮╰╯|+ \t"
_RULE = re.compile(r"[─-]{10,}")

_Parts = list[list[str]]
"""The box's lines, split at its horizontal rules."""


def usage_error(boxed: str) -> str:
    """The message in `boxed`, what tyro wrote to stderr, on one line and without its help texts.

    A form that is not known here is passed on in tyro's own words.
    """
    parts = _parts(boxed)
    if not parts:
        return "wrong usage"
    text = " ".join(parts[0])
    for pattern, say in _FORMS:
        if match := re.fullmatch(pattern, text):
            return say(match, parts)
    return text


def _parts(boxed: str) -> _Parts:
    parts: _Parts = [[]]
    for line in boxed.splitlines()[1:]:  # the first one is the box's title
        text = line.strip(_BORDER)
        if _RULE.fullmatch(text):
            parts.append([])
        elif text:
            parts[-1].append(text)
    return [lines for lines in parts if lines and not lines[0].startswith("For full helptext")]


def _wrong_value(match: re.Match[str], parts: _Parts) -> str:
    """`--frame-skip 'four': expected a whole number`."""
    invocation = " ".join(parts[1]) if len(parts) > 1 else ""
    kind = re.search(r"(\[)?\b(INT|FLOAT|PATH|STR)\b", invocation)
    if kind is None:
        return " ".join(parts[0])
    noun = _NOUNS[kind[2]]
    wanted = f"{noun}s" if kind[1] else f"a {noun}"
    return f"{match['flag']} {match['value']}: expected {wanted}"


def _wrong_choice(match: re.Match[str], parts: _Parts) -> str:
    choices = set(re.findall(r"'([^']*)'", match["choices"])) - {"None"}
    return f"{match['flag']}: {unknown_choice('value', match['value'], choices)}"


def _no_value(match: re.Match[str], parts: _Parts) -> str:
    return f"{match['flag']}: expected a value behind it"


def _required(match: re.Match[str], parts: _Parts) -> str:
    """What is missing; behind what was not understood, for that may be a misspelling of it."""
    names = [name for line in parts[0] for name in re.findall(r"^(--[\w-]+) [A-Z{\[]", line)]
    missing = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} required"
    surplus = next((lines[1:] for lines in parts if lines[0] == "Unrecognized options:"), [])
    return f"{_surplus(surplus)}; {missing}" if surplus else missing


def _unknown(match: re.Match[str], parts: _Parts) -> str:
    meant = [lines for lines in parts if lines[0].startswith("Perhaps you meant")]
    near = re.search(r"--[\w-]+", " ".join(meant[0])) if meant else None
    hint = f"; did you mean {near[0]}?" if near else ""
    return _surplus(match["tokens"].split(", ")) + hint


def _surplus(tokens: list[str]) -> str:
    """The first unknown option among `tokens`; the words behind it may be its values."""
    option = next((token for token in tokens if token.startswith("-")), None)
    return f"unknown option {option}" if option else f"unexpected argument {tokens[0]!r}"


_FLAG = r"(?P<flag>--[\w-]+)"
_FORMS: tuple[tuple[str, Callable[[re.Match[str], _Parts], str]], ...] = (
    (
        rf"Error parsing {_FLAG}: (?:invalid literal|could not convert).*?: (?P<value>.+)",
        _wrong_value,
    ),
    (rf"Error parsing {_FLAG}: .*?\[(?P<value>'.*?')\]\.?(?: Got errors: .*)?", _wrong_value),
    (
        rf"invalid choice '(?P<value>.*)' for argument '{_FLAG}'. "
        r"Expected one of \((?P<choices>.*)\) ?.",
        _wrong_choice,
    ),
    (rf"Missing value for argument '{_FLAG}'.*", _no_value),
    (r"Missing from .*", _required),
    (r"Unrecognized options: (?P<tokens>.*)", _unknown),
)
