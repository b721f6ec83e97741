from scripts.reliability_table import PAGE, page, table
from tests.cli.bad_input import BadInput


def test_the_page_holds_the_matrix_of_today() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run: python scripts/reliability_table.py"


def test_rows_that_say_the_same_of_several_options_are_one_line() -> None:
    rows = [
        BadInput(
            command=command,
            wrong="out of range",
            words=(f"--{option}", "0"),
            said=f"--{option} 0: expected 1 or more",
        )
        for command, option in (("train", "num-envs"), ("run", "num-env"), ("run", "max-eplen"))
    ]
    assert table(rows).splitlines()[2:] == [
        "| `fls train`, `fls run` | out of range: `--num-envs 0`, `--num-env 0`, `--max-eplen 0` "
        "| `OPTION VALUE: expected 1 or more` | 2 |"
    ]


def test_what_markdown_would_read_is_escaped() -> None:
    row = BadInput(command="", wrong="a_b | <c>", words=("a|b", "x\ny", ""), said="a | 'b'")
    (line,) = table([row]).splitlines()[2:]
    assert line == r"| `fls` | a\_b \| \<c\>: `a\|b 'x\ny' ''` | `a \| 'b'` | 2 |"
