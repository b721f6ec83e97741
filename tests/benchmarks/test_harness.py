"""Benchmarks: turns, medians, what is not available, tables, and the page they go into."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.flops import forward_flops, training_flops
from benchmarks.harness import Settings, Table, UnavailableError, in_turn, median, worker
from benchmarks.run import PAGE, STUDIES, main, put_into_page, write_results
from fl_saliency.errors import JobError
from fl_saliency.networks.policy import build_policy

TABLE = Table(
    name="speed",
    title="Speed",
    columns=["", "steps/s", "ratio"],
    rows=[["ours", 512.34, 1.7], ["theirs", 300.0, None]],
    notes=["other: not measured, no such Python."],
    figures={"ours": [{"steps_per_s": 512.34}]},
)


def test_contenders_run_in_turn_and_one_that_is_not_available_is_left_out_with_its_reason() -> None:
    order: list[str] = []

    def contender(name: str, speeds: list[float]) -> dict[str, float]:
        order.append(name)
        return {"speed": speeds.pop()}

    def absent() -> dict[str, float]:
        order.append("c")
        raise UnavailableError("it needs Python 2")

    fast, slow = [1.0, 5.0, 3.0], [9.0, 8.0, 7.0]
    jobs = {"a": lambda: contender("a", fast), "b": lambda: contender("b", slow), "c": absent}
    runs, notes = in_turn(jobs, 3)
    assert order == ["a", "b", "c", "a", "b", "a", "b"]
    assert notes == ["c: not measured, it needs Python 2."]
    assert {name: median(found, "speed") for name, found in runs.items()} == {"a": 3.0, "b": 8.0}


def test_a_table_is_markdown_with_three_digits_and_blanks_for_nothing() -> None:
    assert TABLE.markdown().splitlines() == [
        "Speed",
        "",
        "|  | steps/s | ratio |",
        "| --- | --- | --- |",
        "| ours | 512 | 1.7 |",
        "| theirs | 300 |  |",
        "",
        "other: not measured, no such Python.",
    ]


def test_a_table_replaces_what_stood_between_its_markers_and_nothing_else() -> None:
    page = "before\n<!-- speed -->\nold \\1\n<!-- /speed -->\nafter\n"
    once = put_into_page(page, [TABLE])
    assert once.startswith("before\n<!-- speed -->\nSpeed\n")
    assert once.endswith("<!-- /speed -->\nafter\n")
    assert "old" not in once
    assert put_into_page(once, [TABLE]) == once
    with pytest.raises(ValueError, match="speed"):
        put_into_page("no markers", [TABLE])


def test_results_are_strict_json_beside_markdown_and_name_the_machine(tmp_path: Path) -> None:
    write_results("speed", [TABLE], tmp_path / "new")
    found = json.loads((tmp_path / "new" / "speed.json").read_text())
    assert found["tables"]["speed"]["rows"][0] == ["ours", 512.34, 1.7]
    assert found["tables"]["speed"]["figures"] == {"ours": [{"steps_per_s": 512.34}]}
    assert found["machine"]["cores"] >= 1
    assert "tensorflow" in (tmp_path / "new" / "speed.md").read_text()


def test_a_worker_gives_its_last_line_and_its_memory_and_a_failed_one_its_last_words() -> None:
    found = worker([sys.executable, "-c", "print('noise'); print('{\"speed\": 3}')"])
    assert found["speed"] == 3
    assert found["peak_mib"] >= 0
    with pytest.raises(JobError, match="exit status 1: ValueError: too slow"):
        worker([sys.executable, "-c", "raise ValueError('too slow')"])
    with pytest.raises(JobError, match="no output"):
        worker([sys.executable, "-c", ""])


def test_an_unknown_study_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["trian"])
    assert stop.value.code == 2
    assert "roofline" in capsys.readouterr().err


def test_every_study_exists_and_has_its_place_on_the_page() -> None:
    page = PAGE.read_text()
    folder = Path(__file__).resolve().parents[2] / "benchmarks" / "studies"
    for name in STUDIES:
        assert (folder / f"{name}.py").is_file()
        assert f"<!-- {name} -->" in page


def test_flops_of_the_nature_network_are_those_counted_by_hand() -> None:
    model = build_policy("cnn", 4)
    convolutions = [400 * 8 * 8 * 4 * 32, 81 * 4 * 4 * 32 * 64, 49 * 3 * 3 * 64 * 64]
    products = [3136 * 512, 512 * 4, 512 * 1]
    assert forward_flops(model) == 2 * sum(convolutions + products)
    assert training_flops(model) == 3 * forward_flops(model) - 2 * convolutions[0]


def test_a_quick_look_is_shorter() -> None:
    assert (Settings().pick(10, 2), Settings(quick=True).pick(10, 2)) == (10, 2)
