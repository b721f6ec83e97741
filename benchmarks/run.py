"""Measure this project beside its peers: python -m benchmarks.run NAME... (or `all`).

Writes benchmarks/results/NAME.json and NAME.md, and puts the tables into docs/performance.md. The
machine should do nothing else meanwhile. --quick takes minutes, writes to out/bench and leaves the
page alone.
"""

import argparse
import importlib
import json
import re
import sys
from pathlib import Path

from benchmarks.harness import ROOT, Settings, Table, machine, machine_line, report
from fl_saliency.errors import FlsError

STUDIES = (
    "train",
    "attention_cost",
    "roofline",
    "eval",
    "metrics",
    "perturbation",
    "saliency",
    "scaling",
)
"""In the order of `all`."""
SLOW_STUDIES = ("learning",)
"""Hours; only by name."""
PAGE = ROOT / "docs" / "performance.md"


def run_study(name: str, settings: Settings) -> list[Table]:
    """The tables of one study."""
    module = importlib.import_module(f"benchmarks.studies.{name}")
    tables: list[Table] = module.run(settings)
    return tables


def write_results(name: str, tables: list[Table], folder: Path) -> None:
    """NAME.json and NAME.md in `folder`."""
    where = machine()
    folder.mkdir(parents=True, exist_ok=True)
    found = {"machine": where, "tables": {table.name: table.as_dict() for table in tables}}
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
    text = "\n".join(table.markdown() for table in tables)
    (folder / f"{name}.md").write_text(f"{text}\n{machine_line(where)}\n")


def put_into_page(page: str, tables: list[Table]) -> str:
    """`page` with each table between its markers; ValueError names a table that has none."""
    for table in tables:
        start, end = f"<!-- {table.name} -->", f"<!-- /{table.name} -->"
        if start not in page or end not in page:
            raise ValueError(f"no markers {start} ... {end} in the page")
        inside = f"{start}\n{table.markdown()}{end}"
        page = re.sub(
            f"{re.escape(start)}.*?{re.escape(end)}", lambda _, s=inside: s, page, flags=re.S
        )
    return page


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="+",
        choices=["all", *STUDIES, *SLOW_STUDIES],
        metavar="NAME",
        help=f"all, {', '.join([*STUDIES, *SLOW_STUDIES])}",
    )
    parser.add_argument("--quick", action="store_true", help="a short version of each")
    parser.add_argument("--rounds", type=int, default=None, help="default 3; quick 1")
    parser.add_argument(
        "--output-dir", type=Path, help="default benchmarks/results; quick out/bench"
    )
    arguments = parser.parse_args(argv)
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: expected 1 or more")
    names = list(STUDIES) if "all" in arguments.names else list(dict.fromkeys(arguments.names))
    settings = Settings(
        quick=arguments.quick, rounds=arguments.rounds or (1 if arguments.quick else 3)
    )
    committed = ROOT / "benchmarks" / "results"
    folder = arguments.output_dir or (ROOT / "out" / "bench" if settings.quick else committed)
    for name in names:
        report(f"== {name}")
        try:
            tables = run_study(name, settings)
        except FlsError as error:
            print(f"benchmarks.run: error: {name}: {error}", file=sys.stderr)
            return 1
        write_results(name, tables, folder)
        if folder == committed:
            PAGE.write_text(put_into_page(PAGE.read_text(), tables))
        print("\n".join(table.markdown() for table in tables), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
