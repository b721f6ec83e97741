import collections
import shutil

import pytest

from fl_saliency.atari_head.download import RECORD as DEFAULT_RECORD
from fl_saliency.atari_head.download import download_game, list_record
from fl_saliency.atari_head.reader import audit_trials, find_trials
from fl_saliency.atari_head.transfer import Transfer
from fl_saliency.errors import InputError, JobError
from tests.atari_head.makers import (
    FLAT_META,
    NAME,
    NEW_META,
    frame_files,
    label_row,
    label_text,
    tar_bytes,
    zip_bytes,
)
from tests.atari_head.zenodo import RECORD, serve

ARCHIVE = tar_bytes(frame_files([2, 1, 3]))
LABELS = label_text([label_row(n) for n in (1, 2, 3)]).encode()
OTHER = "8_RZ_50_Jan-01-00-00-00"


def zipped_record() -> dict[str, bytes]:
    bundle = [
        (f"breakout/{NAME}.tar.bz2", ARCHIVE),
        (f"breakout/{NAME}.txt", LABELS),
        ("breakout/notes", bytes(2**17)),  # so that there is something to interrupt
    ]
    return {
        "alien.zip": b"not asked for",
        "action_enums.txt": b"PLAYER_A_NOOP = 0\n",
        "breakout.zip": zip_bytes(bundle),
        "meta_data.csv": f"{NEW_META}\nbreakout,7,R,0,1,3,1,1,1,1,0%,FALSE,20\n".encode(),
        "README.txt": b"Atari-HEAD",
    }


def flat_record() -> dict[str, bytes]:
    return {
        f"{OTHER}.tar.bz2": b"not asked for",
        f"{OTHER}.txt": b"not asked for",
        f"{NAME}.tar.bz2": ARCHIVE,
        f"{NAME}.txt": LABELS,
        "meta_data.csv": f"{FLAT_META}\nBreakout,7,RZ,3,1\nSeaquest,8,RZ,3,1\n".encode(),
    }


@pytest.fixture(params=[zipped_record, flat_record])
def any_record(request):
    with serve(request.param()) as running:
        yield running


@pytest.fixture
def server():
    with serve(zipped_record()) as running:
        yield running


def get(server, folder, game="Breakout"):
    with Transfer(sleep=lambda seconds: None, retries=2, timeout=(5, 5)) as transfer:
        return download_game(game, folder, record=RECORD, base_url=server.url, transfer=transfer)


def test_the_default_is_the_newest_version_of_the_data_set():
    assert DEFAULT_RECORD == 3451402


def test_the_files_of_a_zipped_record_are_the_games_and_the_common_ones(server, tmp_path):
    paths = get(server, tmp_path / "new" / "folder")
    names = {"action_enums.txt", "breakout.zip", "meta_data.csv", "README.txt"}
    assert {path.name for path in paths} == names
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == names
    for path in paths:
        assert path.read_bytes() == server.files[path.name]


def test_the_files_of_a_flat_record_are_those_of_the_games_numbers(tmp_path):
    with serve(flat_record()) as server:
        get(server, tmp_path)
    names = {f"{NAME}.tar.bz2", f"{NAME}.txt", "meta_data.csv"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_what_was_downloaded_is_read(any_record, tmp_path):
    get(any_record, tmp_path)
    (audit,) = audit_trials(find_trials(tmp_path, "breakout"), decode=True)
    assert (audit.frames, audit.labels, audit.problem) == (3, 3, None)


def test_whole_files_are_not_fetched_again(any_record, tmp_path):
    first = get(any_record, tmp_path)
    any_record.requests.clear()
    assert get(any_record, tmp_path) == first
    assert any_record.requests == [("record", None)]


def test_an_interrupted_download_goes_on_where_it_stopped(server, tmp_path):
    server.always["breakout.zip"] = {"drop": 0.5, "ignore_range": True}
    with pytest.raises(JobError, match=r"^breakout.zip: gave up"):
        get(server, tmp_path)
    server.always.clear()
    server.requests.clear()
    get(server, tmp_path)
    assert [name for name, _ in server.requests] == ["record", "breakout.zip"]
    (ranges,) = server.asked("breakout.zip")
    assert ranges is not None
    start = int(ranges.removeprefix("bytes=").removesuffix("-"))
    half = len(server.files["breakout.zip"]) // 2
    assert half - 2**13 < start <= half
    assert not list(tmp_path.glob("*.part"))


def test_every_fault_at_once_ends_right(server, tmp_path):
    wait = {"status": 429, "headers": {"Retry-After": "1"}}
    server.script = {
        "record": [wait, {"drop": 0.3}],
        "meta_data.csv": [{"status": 502}],
        "breakout.zip": [{"drop": 0.5}, wait, wait, {"ignore_range": True, "drop": 0.9}],
    }
    for path in get(server, tmp_path):
        assert path.read_bytes() == server.files[path.name]


def test_a_file_of_that_name_with_other_content_is_left_alone(server, tmp_path):
    (tmp_path / "meta_data.csv").write_text("mine")
    with pytest.raises(InputError, match=r"meta_data.csv: it is not the file of the Zenodo record"):
        get(server, tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_an_unknown_game_is_told_before_anything_is_asked(server, tmp_path):
    with pytest.raises(InputError, match="did you mean 'breakout'"):
        get(server, tmp_path / "out", "braekout")
    assert server.requests == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("record", [zipped_record, flat_record])
def test_a_game_that_the_record_lacks_is_named(tmp_path, record):
    with (
        serve(record()) as server,
        pytest.raises(JobError, match=r"77: it holds no file of venture"),
    ):
        get(server, tmp_path, "venture")


def test_a_record_of_another_data_set_is_told(tmp_path):
    with serve({"x.zip": b"1"}) as server, pytest.raises(JobError, match="so it is no Atari-HEAD"):
        get(server, tmp_path)


def test_a_record_that_does_not_exist_is_named(server, tmp_path):
    server.always["record"] = {"status": 404}
    with pytest.raises(JobError, match=r"Zenodo record 77: .*/api/records/77 answered 404"):
        get(server, tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html></html>", "sent an HTML or XML page, expected JSON"),
        (b"", "sent an empty file, expected JSON"),
        (b"\xff\xfe", "sent something else, expected JSON"),
        (b"[]", "its list of files is not understood"),
        (b'{"files": [{"key": "a"}]}', "its list of files is not understood"),
        (b'{"files": 3}', "its list of files is not understood"),
    ],
)
def test_an_answer_that_is_no_record_is_one_line(server, tmp_path, body, reason):
    server.always["record"] = {"body": body}
    with pytest.raises(JobError, match=reason):
        get(server, tmp_path)


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/x", "a/b.txt", ".hidden", "a\\b", ""])
def test_a_record_cannot_write_outside_the_folder(server, tmp_path, name):
    server.entries["README.txt"] = {"key": name}
    with pytest.raises(JobError, match="not understood"):
        get(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_record_cannot_lead_to_an_address_without_https(server, tmp_path):
    server.entries["README.txt"] = {"links": {"self": "http://example.org/x"}}
    with pytest.raises(InputError, match=r"'http://example.org/x': expected https"):
        get(server, tmp_path)


def test_older_answers_of_zenodo_are_understood(server):
    data = server.files["README.txt"]
    entry = server.entry("README.txt")
    old = {"filename": "README.txt", "filesize": len(data), "checksum": entry["checksum"][4:]}
    body = f'{{"files": [{old}]}}'.replace("'", '"').encode()
    server.script["record"] = [{"body": body}]
    with Transfer() as transfer:
        (file,) = list_record(RECORD, base_url=server.url + "/", transfer=transfer)
    assert (file.name, file.size) == ("README.txt", len(data))
    assert file.md5 == entry["checksum"][4:]
    assert file.url == entry["links"]["self"]


def test_an_output_dir_that_cannot_serve_is_one_line(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"file: expected a folder, found a file"):
        get(server, tmp_path / "file")
    with pytest.raises(InputError, match=r"file/below: cannot write there"):
        get(server, tmp_path / "file" / "below")
    usage = collections.namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(9, 0, 9))
    with pytest.raises(InputError, match=r"GB are needed, 0.0 GB free"):
        get(server, tmp_path / "out")


def test_a_plain_http_site_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"'http://zenodo.org': expected https"):
        download_game(
            "breakout", tmp_path, base_url="http://zenodo.org", transfer=Transfer(retries=0)
        )
