"""`fls doctor`: its table, its JSON, its exit statuses, and what it never does."""

import json
from pathlib import Path

import pytest

from fl_saliency.cli.main import main
from tests.helpers import make_run


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("doctor") / "01")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged"
    path.mkdir()
    (path / "results.json").write_text('{"rewards": [NaN]}')
    (path / "results.png").write_bytes(b"GIF89a")
    return path


def test_a_whole_run_is_a_table_and_status_0(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(published)]) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""
    assert printed.splitlines() == [
        "ok    .            a run directory of the published layout",
        "ok    config.json  BreakoutNoFrameskip-v4, cnn_daqn, published layout",
        "ok    model.pkl    16 variables, 130,726 parameters, with the optimizer's state",
        f"{published}: whole",
    ]


def test_each_problem_is_a_line_and_one_makes_status_1(
    published: Path, damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(damaged), str(published)]) == 1
    assert capsys.readouterr().out.splitlines()[:4] == [
        "ok    .             a folder of results",
        "bad   results.json  not strict JSON (NaN in it)",
        "bad   results.png   not a PNG picture",
        f"{damaged}: 2 problems",
    ]


def test_json_says_the_same_for_scripts(
    published: Path, damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--format", "json", str(published), str(damaged)]) == 1
    whole, broken = json.loads(capsys.readouterr().out)
    assert whole["directory"] == str(published)
    assert whole["problems"] == 0
    assert broken["problems"] == 2
    assert broken["findings"][1] == {
        "part": "results.json",
        "status": "bad",
        "text": "not strict JSON (NaN in it)",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "DIR: expected at least one run directory"),
        (["nowhere"], "nowhere: no such folder"),
        (["file"], "file: no such folder"),
        (["empty"], "empty: expected a run directory (config.json, model.pkl) or results"),
        (["parent"], "did you mean parent/01?"),
        (["parent/01", "empty"], "empty: expected a run directory"),
        (["parent/01", "--format", "xml"], "--format: unknown value 'xml'"),
        (["parent/01", "--extra-import", "no_such_module"], "--extra-import no_such_module"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "parent" / "01").mkdir(parents=True)
    (tmp_path / "parent" / "01" / "config.json").write_text("{}")
    assert main(["doctor", *words]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.startswith("fls doctor: error: ")
    assert errors.count("\n") == 1
    assert said in errors


def test_a_strangers_text_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"env_name": "BreakoutNoFrameskip-v4", "network": "cnn\x1b[2J\nok  all\r"}
    (tmp_path / "config.json").write_text(json.dumps(config | {"\x1b[31mred": 1}))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "\x1b[1m.monitor.csv").write_text("")
    assert main(["doctor", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in printed)
    lines = printed.splitlines()
    assert len([line for line in lines if line.startswith("ok ")]) == 1
    assert lines[-1] == f"{tmp_path}: 2 problems"


def test_modules_that_a_config_names_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hostile_doctor.py").write_text("raise SystemExit('ran')")
    path = make_run(tmp_path / "run")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"extra_import": ["hostile_doctor"]}))
    assert main(["doctor", str(path)]) == 0
    assert capsys.readouterr().out.endswith(": whole\n")
