"""Whatever is wrong about options and files: one line, a status, and nothing is written."""

import dataclasses
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from fl_saliency.cli.benchmark import BenchmarkConfig
from fl_saliency.cli.data import AuditConfig, DownloadConfig
from fl_saliency.cli.doctor import DoctorConfig
from fl_saliency.cli.intervene import InterveneConfig
from fl_saliency.cli.main import main
from fl_saliency.cli.networks import NetworksConfig
from fl_saliency.cli.saliency import SaliencyConfig
from fl_saliency.cli.sanity import SanityConfig
from fl_saliency.experiments.configs import EvaluationConfig, TrainConfig
from tests.atari_head.zenodo import serve
from tests.cli.bad_input import BASE, EXEMPT, ROWS, BadInput

CONFIGS = {
    "train": TrainConfig,
    "run": EvaluationConfig,
    "benchmark": BenchmarkConfig,
    "saliency": SaliencyConfig,
    "sanity": SanityConfig,
    "intervene": InterveneConfig,
    "networks": NetworksConfig,
    "data atari-head": DownloadConfig,
    "data audit": AuditConfig,
    "doctor": DoctorConfig,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a command runs in; emptied afterwards, for a row may need megabytes."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for path in tmp_path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(*arguments: Any, **more: Any) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setattr(requests.Session, "get", get)


def contents(folder: Path) -> dict[str, bytes | None]:
    """The files in and below `folder`; None stands for a folder."""
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): None if p.is_dir() else p.read_bytes() for p in paths}


def run(row: BadInput, *more: str) -> int:
    return main(
        [*row.command.split(), *(() if row.alone else BASE[row.command]), *row.words, *more]
    )


def status_of(row: BadInput, request: pytest.FixtureRequest) -> int:
    if row.server is None:
        request.getfixturevalue("offline")
        return run(row)
    with serve({}) as zenodo:
        row.server(zenodo)
        return run(row, "--base-url", zenodo.url)


def pattern(said: str) -> str:
    """What the error's line has to match: "..." stands for any text."""
    return ".*?: (error|skipped): " + ".*".join(map(re.escape, said.split("...")))


def marked(row: BadInput) -> Any:
    words = " ".join(row.words).replace("x" * 300, "x...")
    name = re.sub(r"\s+", " ", f"{row.command}: {row.wrong} {words}").strip()
    return pytest.param(row, id=name)


@pytest.mark.parametrize("row", [marked(row) for row in ROWS])
def test_bad_input_is_one_line_and_nothing_is_written(
    row: BadInput, folder: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    for build in row.files:
        build(folder)
    before = contents(folder)
    status = status_of(row, request)
    lines = capsys.readouterr().err.splitlines()
    prog = " ".join(["fls", *row.command.split()])
    errors = [line for line in lines if line.startswith(f"{prog}: error: ")]
    assert len(errors) == 1, lines
    assert status == row.status
    if status == 1:  # the job may tell of each of its parts before, and leave an empty folder
        errors += [line for line in lines if ": skipped: " in line]
        before |= {"out": None} if (folder / "out").is_dir() else {}
    assert sorted(lines) == sorted(errors)
    assert any(re.fullmatch(pattern(row.said), line) for line in errors), lines
    assert contents(folder) == before


def option_names(config: Any) -> Iterator[str]:
    """The fields of a config, and of those that are configs themselves, whose names are left out"""
    for field in dataclasses.fields(config):
        if dataclasses.is_dataclass(field.default_factory):
            yield from option_names(field.default_factory)
        else:
            yield field.name


@pytest.mark.parametrize("command", CONFIGS)
def test_every_option_that_can_be_wrong_has_a_row(command: str) -> None:
    words = [word for row in ROWS if row.command == command for word in row.words]
    tried = {word.split("=")[0] for word in words}
    fields = list(option_names(CONFIGS[command]))
    missing = [
        name
        for name in fields
        if f"--{name.replace('_', '-')}" not in tried and (command, name) not in EXEMPT
    ]
    assert missing == []
    exempt = [name for of, name in EXEMPT if of == command]
    assert set(exempt) <= set(fields)


def test_the_rows_differ() -> None:
    keys = [(row.command, row.words, row.wrong) for row in ROWS]
    assert len(set(keys)) == len(keys)
