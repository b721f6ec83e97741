"""Writes the bad input matrix (tests/cli/bad_input.py) into docs/reliability.md.

Usage: python scripts/reliability_table.py
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.cli.bad_files import LONG  # noqa: E402
from tests.cli.bad_input import ROWS, BadInput  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- bad input: begin -->", "<!-- bad input: end -->"


def table(rows: Iterable[BadInput]) -> str:
    """The rows as a Markdown table; those that say the same of several options are one line."""
    lines = ["| command | what is wrong | what the user sees | status |", "|---|---|---|---|"]
    groups: dict[tuple[str, str, int], list[BadInput]] = {}
    for row in rows:
        groups.setdefault((row.wrong, _general(row), row.status), []).append(row)
    lines += (_line(group) for group in groups.values())
    return "\n".join(lines)


def _line(group: Sequence[BadInput]) -> str:
    row = group[0]
    said = {row.said for row in group}
    commands = ", ".join(_unique(f"`{_command(row)}`" for row in group))
    tried = ", ".join(_unique(_code(_words(row)) for row in group if row.words))
    wrong = _plain(row.wrong) + (f": {tried}" if tried else "")
    shown = _code(row.said if len(said) == 1 else _general(row))
    return f"| {commands} | {wrong} | {shown} | {row.status} |"


def _general(row: BadInput) -> str:
    """What is said, with OPTION and VALUE in place of the ones that were given."""
    if len(row.words) < 2:
        return row.said
    option, value = row.words[:2]
    field = option[2:].replace("-", "_")  # by which a protocol knows it
    said = re.sub(rf"^(protocol: )?({option}|{field})\b(?!-)", r"\1OPTION", row.said)
    if value:
        return re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.])", "VALUE", said, count=1)
    return said.replace("''", "'VALUE'")


def _command(row: BadInput) -> str:
    return f"fls {row.command}".strip()


def _words(row: BadInput) -> str:
    return " ".join(_word(word) for word in row.words)


def _word(word: str) -> str:
    if not word.isprintable() or " " in word or not word:
        return repr(word)
    return word.replace(LONG, "xxx...xxx")


def _unique(texts: Iterable[str]) -> Iterator[str]:
    return iter(dict.fromkeys(texts))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", r"\|")


def _plain(text: str) -> str:
    """`text` without meaning to Markdown or HTML."""
    return "".join(f"\\{char}" if char in "\\`*_<>|[]" else char for char in text)


def page(text: str) -> str:
    """`text`, the page, with the table of today between its two marks."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{table(ROWS)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
