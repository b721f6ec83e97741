import contextlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl_saliency.atari_head import labels as labels_module
from fl_saliency.atari_head.labels import Labels, frame_number, read_labels
from fl_saliency.errors import FileFormatError
from tests.atari_head.makers import HEADER, label_row, label_text
from tests.fuzz import damaged, fuzz

SHOWN = Path("7_RZ_42.txt")


def parse(text: str | bytes, prefix: str = "RZ_42") -> Labels:
    data = text.encode() if isinstance(text, str) else text
    return read_labels(io.BytesIO(data), shown=SHOWN, prefix=prefix)


# The starts of two rows as the data set has them.
GENUINE = [
    "RZ_3279899_1,0,0,1160,0,4,80.39,106.97,80.31,107.12,80.22,107.20",
    "RZ_5037271_1,0,66481,611,0,0,79.85,105.17,79.84,105.30",
]


def test_genuine_rows_are_read():
    (first,) = parse(label_text(GENUINE[:1]), "RZ_3279899").rows.values()
    assert (first.episode, first.score, first.duration) == (0, 0, 1160)
    assert (first.reward, first.action) == (0, 4)
    np.testing.assert_array_equal(
        first.gaze, [[80.39, 106.97], [80.31, 107.12], [80.22, 107.20]], strict=True
    )
    (second,) = parse(label_text(GENUINE[1:]), "RZ_5037271").rows.values()
    assert (second.score, second.duration, second.action) == (66481, 611, 0)


def test_null_is_none_and_null_gaze_is_no_sample():
    (row,) = parse(label_text(["RZ_42_1,null,null,null,null,null,null"])).rows.values()
    assert (row.episode, row.score, row.duration, row.reward, row.action) == (None,) * 5
    assert row.gaze.shape == (0, 2)
    assert row.gaze.dtype == np.float64


@pytest.mark.parametrize("tail", ["", ",", ",null", ",null,null", ",null,null,null", ",,,"])
def test_every_way_to_write_no_gaze(tail):
    found = parse(label_text([f"RZ_42_1,0,0,5,0,0{tail}"]))
    assert found.rows[1].gaze.shape == (0, 2)
    assert (found.malformed, found.null_samples) == (0, 0)


def test_a_null_sample_among_others_is_counted_and_left_out():
    found = parse(label_text([label_row(1, "1.00,2.00,null,null,3.00,4.00,5.00,null")]))
    assert found.rows[1].gaze.tolist() == [[1, 2], [3, 4]]
    assert found.null_samples == 2


def test_samples_off_the_screen_stay_where_they_are():
    found = parse(label_text([label_row(1, "-21.00,419.00,159.99,0.00")]))
    assert found.rows[1].gaze.tolist() == [[-21, 419], [159.99, 0]]


def test_rows_may_differ_in_length_up_to_thousands_of_samples():
    gaze = ",".join(["1.25,2.50"] * 5000)
    found = parse(label_text([label_row(1), label_row(2, gaze)]))
    assert [len(row.gaze) for row in found.rows.values()] == [1, 5000]


def test_the_header_may_be_missing():
    rows = [label_row(1), label_row(2)]
    with_header, without = parse(label_text(rows)), parse(label_text(rows, header=False))
    assert with_header.rows.keys() == without.rows.keys() == {1, 2}
    assert (with_header.header, without.header) == (True, False)


def test_columns_are_found_by_the_header():
    text = (
        "frame_id,action,score,episode_id,duration(ms),unclipped_reward,gaze_positions\n"
        "RZ_42_1,5,99,3,50,7,1.0,2.0\n"
    )
    row = parse(text).rows[1]
    assert (row.action, row.score, row.episode, row.reward) == (5, 99, 3, 7)


def test_line_ends_blank_lines_spaces_and_a_byte_order_mark_do_not_matter():
    text = "\ufeff" + HEADER + "\r\n\r\n RZ_42_1 , 0,10, 50,0,3, 1.0, 2.0 \r\n"
    assert parse(text).rows[1].gaze.tolist() == [[1, 2]]


def test_of_two_rows_with_one_frame_id_the_first_counts():
    found = parse(label_text([label_row(1, "1,1"), label_row(1, "2,2"), label_row(1, "3,3")]))
    assert found.rows[1].gaze.tolist() == [[1, 1]]
    assert found.duplicates == 2


def test_rows_of_another_recording_are_ignored_and_counted():
    found = parse(label_text([label_row(1), label_row(2, prefix="RZ_43"), "odd,0,0,0,0,0"]))
    assert found.rows.keys() == {1}
    assert found.foreign == 2


def test_rows_stay_in_the_order_of_the_file():
    assert list(parse(label_text([label_row(n) for n in (3, 1, 2)])).rows) == [3, 1, 2]


BAD_ROWS = [
    "RZ_42_9,0",
    "RZ_42_9,0,0,0,0,0,1.0",
    "RZ_42_9,0,0,0,0,0,1.0,x",
    "RZ_42_9,0,0,0,0,0,1.0,inf",
    "RZ_42_9,0,0,0,0,0.5,1.0,2.0",
    "RZ_42_9,0,0,1e999,0,0,1.0,2.0",
    ",0,0,0,0,0,1.0,2.0",
]


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_few_bad_rows_are_dropped_and_counted(bad):
    found = parse(label_text([*(label_row(n) for n in range(1, 41)), bad]))
    assert found.malformed == 1
    assert list(found.rows) == list(range(1, 41))


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_file_of_bad_rows_is_refused_with_the_first_line(bad):
    with pytest.raises(FileFormatError, match=r"7_RZ_42.txt: 1 of 2 rows are no labels; line 3: "):
        parse(label_text([label_row(1), bad]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found an empty file"),
        ("\n\n", "found an empty file"),
        (HEADER, "found only a header"),
        ("frame_id,score,action,gaze_positions\nx", "lacks the column 'episode_id'"),
        (HEADER.replace("action,gaze_positions", "gaze_positions,action"), "not the last column"),
        (HEADER + ",more", "has 8 columns"),
        ("<html><body>429 Too Many Requests</body></html>", "1 of 1 rows are no labels"),
        (b"\x00\xff\xfe" * 50, "rows are no labels"),
    ],
)
def test_a_file_that_is_no_label_file_is_refused(text, reason):
    with pytest.raises(FileFormatError, match=reason):
        parse(text)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(labels_module, "MAX_LINE", 100)
    with pytest.raises(FileFormatError, match="line 2: longer than 100"):
        parse(label_text([label_row(1, "1.0,2.0," * 50)]))


@pytest.mark.parametrize(
    ("frame_id", "number"),
    [
        ("RZ_42_7", 7),
        ("RZ_42_0012", 12),
        ("RZ_4_7", None),
        ("RZ_42", None),
        ("RZ_42_", None),
        ("RZ_42_7x", None),
        ("XRZ_42_7", None),
        ("RZ_42_\u0663", None),
    ],
)
def test_frame_numbers_are_told_from_the_whole_frame_id(frame_id, number):
    assert frame_number(frame_id, "RZ_42") == number


ROW_PARTS = st.sampled_from(
    ["RZ_42_", "1", "null", "", ",", "\n", "\r", "1.5", "-3", "1e400", "nan", "\x00", HEADER]
)


@fuzz(300)
@given(text=st.one_of(st.lists(ROW_PARTS, max_size=60).map("".join), st.text(max_size=200)))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse(text.encode("utf-8", "surrogatepass"))
    except FileFormatError:
        return
    for number, row in found.rows.items():
        assert number >= 0
        assert row.gaze.ndim == 2
        assert row.gaze.shape[1] == 2
        assert np.isfinite(row.gaze).all()


VALID = label_text(
    [label_row(n, gaze) for n, gaze in enumerate(["1.25,2.5", "null", "-21.0,419.0,159.99,0.0"], 1)]
    + [label_row(n) for n in range(4, 60)]
).encode()


@fuzz(400)
@given(data=damaged(VALID))
def test_a_damaged_file_is_read_or_refused(data):
    with contextlib.suppress(FileFormatError):
        found = parse(data)
        assert all(number >= 0 for number in found.rows)
        assert all(np.isfinite(row.gaze).all() for row in found.rows.values())


@fuzz(200)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(FileFormatError):
        assert all(number >= 0 for number in parse(data).rows)


numbers = st.integers(-3000, 42000).map(lambda n: n / 100)


@fuzz(100)
@given(
    rows=st.dictionaries(
        st.integers(1, 99999), st.lists(st.tuples(numbers, numbers), max_size=5), min_size=1
    )
)
def test_what_is_written_with_two_decimals_is_read_back(rows):
    lines = [
        label_row(n, ",".join(f"{x:.2f},{y:.2f}" for x, y in gaze) or "null")
        for n, gaze in rows.items()
    ]
    found = parse(label_text(lines))
    assert {n: [tuple(p) for p in row.gaze.tolist()] for n, row in found.rows.items()} == rows
