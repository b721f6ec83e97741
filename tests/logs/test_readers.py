"""Log readers: the original's files in full, a clear error for a broken line, never another."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_saliency.errors import FileFormatError
from fl_saliency.logs.readers import (
    event_steps,
    monitor_files,
    read_monitor,
    read_monitors,
    read_progress,
    read_tensorboard,
)
from fl_saliency.logs.writers import TensorBoardWriter
from tests.fuzz import damaged, fuzz

ORIGINAL = Path(__file__).parents[1] / "golden" / "original_run"
EVENTS = next((ORIGINAL / "tb").iterdir())
HEADER = '#{"t_start": 10.5, "env_id": "Pong"}\nr,l,t\n'


def monitor(folder: Path, text: str, name: str = "0.0.monitor.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_progress_and_tensorboard_of_the_original_agree() -> None:
    progress = read_progress(ORIGINAL / "logs" / "progress.csv")
    events = read_tensorboard(ORIGINAL / "tb")
    assert progress["nupdates"].tolist() == list(events.index) == [1, 2, 3]
    assert set(events.columns) == {*progress.columns, "wall_time"}
    for key in progress:
        assert np.array_equal(progress[key].astype("float32"), events[key].astype("float32"))


def test_both_forms_of_monitor_header_are_read(tmp_path: Path) -> None:
    for mark in ("#", "# "):
        text = HEADER.replace("#", mark, 1) + "-2.0,7,1.5\n"
        found = read_monitor(monitor(tmp_path, text))
        assert (found.t_start, found.env_id) == (10.5, "Pong")
        assert found.episodes.to_dict("records") == [{"r": -2.0, "l": 7, "t": 1.5}]


def test_further_monitor_columns_are_left_out(tmp_path: Path) -> None:
    text = HEADER.replace("r,l,t", "l,extra,r,t") + "7,x,-2.0,1.5\n"
    found = read_monitor(monitor(tmp_path, text)).episodes
    assert found.to_dict("records") == [{"r": -2.0, "l": 7, "t": 1.5}]


def test_files_that_started_at_different_times_are_merged_by_clock(tmp_path: Path) -> None:
    one = monitor(tmp_path, '#{"t_start": 100}\nr,l,t\n1,10,5.0\n3,30,25.0\n', "0.0.monitor.csv")
    two = monitor(tmp_path, '#{"t_start": 110}\nr,l,t\n2,20,2.0\n', "0.1.monitor.csv")
    games = read_monitors([one, two])
    assert games["r"].tolist() == [1, 2, 3]
    assert games["env"].tolist() == [0, 1, 0]
    assert games["t"].tolist() == [5.0, 12.0, 25.0]
    assert games["steps"].tolist() == [10, 30, 60]


@pytest.mark.parametrize("text", [HEADER, HEADER.splitlines()[0] + "\n", HEADER + "1.0,7"])
def test_a_monitor_file_without_a_finished_game_has_no_rows(tmp_path: Path, text: str) -> None:
    games = read_monitors([monitor(tmp_path, text)])
    assert games.empty
    assert list(games.columns) == ["env", "r", "l", "t", "steps"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("r,l,t\n1,2,3\n", "line 1: expected a monitor header"),
        ("#{}\n", "line 1: expected a monitor header"),
        ('#{"t_start": NaN}\n', "line 1: expected a monitor header"),
        ('#{"t_start": "x"}\n', "line 1: expected a monitor header"),
        ("#[1]\n", "line 1: expected a monitor header"),
        ("#" + "[" * 100_000 + "\n", "line 1: expected a monitor header"),
        (HEADER.replace("r,l,t", "r,t"), "line 2: expected the columns r,l,t"),
        (HEADER.replace("r,l,t", "r,l,t,t"), "line 2: expected the columns r,l,t"),
        (HEADER + "1.0,7,0.5\n1.0,7\n", "line 4: expected 3 values, found 2"),
        (HEADER + "1.0,seven,0.5\n", "line 3: expected a number, found 'seven'"),
        (HEADER + "1.0,7.5,0.5\n", "line 3: expected r,l,t of a game"),
        (HEADER + "1.0,-7,0.5\n", "line 3: expected r,l,t of a game"),
        (HEADER + "nan,7,0.5\n", "line 3: expected r,l,t of a game"),
        (HEADER + "\n1.0,7,0.5\n", "line 3: expected 3 values, found 0"),
    ],
)
def test_a_broken_monitor_line_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = monitor(tmp_path, text)
    with pytest.raises(FileFormatError) as caught:
        read_monitor(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a,a\n", "line 1: expected distinct column names"),
        ("a,,b\n", "line 1: expected distinct column names"),
        ("a,b\n1,2\n3\n4,5\n", "line 3: expected 2 values, found 1"),
        ("a,b\n1,2,3\n", "line 2: expected 2 values, found 3"),
        ("a,b\n1,two\n", "line 2: expected a number, found 'two'"),
    ],
)
def test_a_broken_progress_line_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "progress.csv"
    path.write_text(text)
    with pytest.raises(FileFormatError) as caught:
        read_progress(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)


def test_an_unfinished_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("a,b\n1,2\n3,4")
    assert read_progress(path).to_dict("records") == [{"a": 1.0, "b": 2.0}]


def test_an_unfinished_last_event_is_left_out(tmp_path: Path) -> None:
    content = EVENTS.read_bytes()
    path = tmp_path / "events.out.tfevents.1"
    for size in range(len(content) - 285, len(content), 7):
        path.write_bytes(content[:size])
        assert list(read_tensorboard(path).index) == [1, 2]


def test_event_steps_are_all_of_a_file_and_tell_a_torn_tail(tmp_path: Path) -> None:
    content = EVENTS.read_bytes()
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content)
    assert event_steps(path) == ([1, 2, 3], False)
    path.write_bytes(content[:-3])
    assert event_steps(path) == ([1, 2], True)
    first = int.from_bytes(content[:8], "little") + 16  # the file's version, no step
    path.write_bytes(content + content[first:])
    assert event_steps(path) == ([1, 2, 3, 1, 2, 3], False)


@pytest.mark.parametrize("place", [0, 8, 20, 60, 500, -1])
def test_a_damaged_event_is_named(tmp_path: Path, place: int) -> None:
    content = bytearray(EVENTS.read_bytes())
    content[place] ^= 1
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"record \d: damaged"):
        read_tensorboard(path)


def test_a_later_event_file_replaces_steps_from_its_first_on(tmp_path: Path) -> None:
    for steps in ((1, 2, 3), (3, 4)):
        writer = TensorBoardWriter(tmp_path)
        for step in steps:
            writer.write({"x": step * len(steps), f"only_{len(steps)}": 1}, step)
        writer.close()
    table = read_tensorboard(tmp_path)
    assert table["x"].tolist() == [3, 6, 6, 8]
    assert table["only_3"].isna().tolist() == [False, False, True, True]


def test_an_event_file_without_scalars_gives_an_empty_table(tmp_path: Path) -> None:
    TensorBoardWriter(tmp_path).close()
    assert read_tensorboard(tmp_path).empty


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    reads: list[Callable[[], Any]] = [
        lambda: read_monitor(tmp_path / "absent"),
        lambda: read_progress(tmp_path / "absent"),
        lambda: read_tensorboard(tmp_path / "absent"),
        lambda: event_steps(tmp_path / "absent"),
        lambda: read_progress(tmp_path),
        lambda: read_tensorboard(tmp_path),
        lambda: monitor_files(tmp_path),
        lambda: monitor_files(tmp_path / "absent"),
        lambda: read_monitors([]),
    ]
    for read in reads:
        with pytest.raises(FileFormatError):
            read()


READERS: list[tuple[Callable[[Path], Any], list[bytes]]] = [
    (read_monitor, [b"#{", b'"t_start": ', b"1e999", b"}", b"\nr,l,t\r\n", b"1,2,3\n", b'"']),
    (read_progress, [b"a,b", b"\n", b"1,", b"nan", b'"', b"\r", b"\0", b"1_0"]),
    (read_tensorboard, [EVENTS.read_bytes()[:40], b"\x18\0\0\0\0\0\0\0", b"\0\0\0\0"]),
]


@pytest.mark.parametrize(("read", "words"), READERS)
@fuzz(80)
@given(data=st.data())
def test_whatever_a_file_holds_it_is_read_or_refused(
    tmp_path: Path, read: Callable[[Path], Any], words: list[bytes], data: st.DataObject
) -> None:
    parts = data.draw(st.lists(st.sampled_from(words) | st.binary(max_size=8), max_size=12))
    path = tmp_path / "file"
    path.write_bytes(b"".join(parts))
    with contextlib.suppress(FileFormatError):
        read(path)


@pytest.mark.parametrize(
    ("read", "source"),
    [
        (read_monitor, ORIGINAL / "logs" / "0.1.monitor.csv"),
        (read_progress, ORIGINAL / "logs" / "progress.csv"),
        (read_tensorboard, EVENTS),
    ],
)
@fuzz(200)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(
    tmp_path: Path, read: Callable[[Path], Any], source: Path, data: st.DataObject
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data.draw(damaged(source.read_bytes())))
    with contextlib.suppress(FileFormatError):
        read(path)
