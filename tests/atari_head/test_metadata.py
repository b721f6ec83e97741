import pytest

from fl_saliency.atari_head import metadata
from fl_saliency.atari_head.metadata import MetaRow, read_metadata
from fl_saliency.errors import FileFormatError, InputError
from tests.atari_head.makers import FLAT_META, NEW_META


def meta(tmp_path, text):
    (tmp_path / "meta_data.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_metadata(tmp_path)


def test_the_newer_form(tmp_path):
    text = (
        f"{NEW_META}\r\n"
        "alien,314, R,0,21070,17727,900034,1,1.29,0.58,0.60%,FALSE,20\r\n"
        "ms_pacman_highscore,593,R,118,93721,17382,893852,2,0.73,0.38,0.70%,FALSE,30\r\n"
    )
    alien, pacman = meta(tmp_path, text)
    assert alien == MetaRow(
        number=314,
        game="alien",
        highscore=False,
        num_frames=17727,
        subject="R",  # the file has a space before it
        load_trial=0,
        fps=20,
    )
    assert (pacman.game, pacman.highscore, pacman.load_trial) == ("ms_pacman", True, 118)
    assert pacman.fps == 30


def test_the_older_form(tmp_path):
    first, second = meta(tmp_path, f"{FLAT_META}\nBreakout,9901,RZ,122,12.5\nMspacman,52,J,97,1\n")
    assert (first.number, first.game, first.num_frames, first.subject) == (
        9901,
        "breakout",
        122,
        "RZ",
    )
    assert (first.load_trial, first.fps) == (None, None)
    assert second.game == "ms_pacman"


def test_an_incomplete_row_keeps_what_it_has(tmp_path):
    (row,) = meta(tmp_path, f"{FLAT_META}\nBreakout,9999,RZ,,\n")
    assert (row.number, row.num_frames) == (9999, None)


@pytest.mark.parametrize("row", ["Breakout,,RZ,5,1", ",7,RZ,5,1", "Breakout,x,RZ,5,1", "Breakout"])
def test_a_row_without_game_or_number_is_left_out(tmp_path, row):
    assert [r.number for r in meta(tmp_path, f"{FLAT_META}\n{row}\nBreakout,8,RZ,5,1\n")] == [8]


def test_whole_numbers_may_be_written_as_decimals(tmp_path):
    (row,) = meta(tmp_path, f"{FLAT_META}\nBreakout,7.0,RZ,122.0,1\n")
    assert (row.number, row.num_frames) == (7, 122)


def test_a_game_that_is_not_in_the_data_set_keeps_its_name(tmp_path):
    (row,) = meta(tmp_path, f"{FLAT_META}\nBeamRider,7,RZ,5,1\n")
    assert row.game == "beamrider"


def test_columns_may_stand_in_any_order(tmp_path):
    (row,) = meta(tmp_path, "NumberOfFrames, TrialNumber ,Game,Extra\n5,7,Breakout,x\n")
    assert (row.number, row.game, row.num_frames) == (7, "breakout", 5)


def test_a_missing_folder_or_file_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"none: there is no such folder"):
        read_metadata(tmp_path / "none")
    with pytest.raises(InputError, match=r"it holds no meta_data.csv$"):
        read_metadata(tmp_path)


def test_the_folder_below_that_has_the_data_is_named(tmp_path):
    (tmp_path / "fragment").mkdir()
    (tmp_path / "fragment" / "meta_data.csv").touch()
    with pytest.raises(InputError, match=r"no meta_data.csv; did you mean .*/fragment\?$"):
        read_metadata(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "found an empty file"),
        ("<!doctype html><p>busy</p>", "found an HTML or XML page"),
        ("version https://git-lfs.github.com/spec/v1\n", "found a Git LFS pointer"),
        ("a,b,c\n1,2,3\n", "found a, b, c"),
        (b"\x00\x01\x02\xff", "expected the columns GameName, trial_id, total_frame or Game,"),
        (f'{FLAT_META}\n"{"x" * 200_000}",7,RZ,5,1\n', "cannot be read as CSV"),
    ],
)
def test_another_file_of_that_name_is_refused(tmp_path, text, found):
    with pytest.raises(FileFormatError, match=found):
        meta(tmp_path, text)


def test_a_list_beyond_reason_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(metadata, "MAX_BYTES", 100)
    with pytest.raises(FileFormatError, match=r"meta_data.csv: 101 bytes, more than the 100"):
        meta(tmp_path, " " * 101)
