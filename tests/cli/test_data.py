import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from fl_saliency.cli import main as entry
from fl_saliency.cli.data import main
from tests.atari_head.makers import NAME, write_flat
from tests.atari_head.test_download import zipped_record
from tests.atari_head.zenodo import RECORD, serve

GOLDEN = Path(__file__).parents[1] / "golden" / "atari_head" / "trials"


@pytest.fixture
def server():
    with serve(zipped_record()) as running:
        yield running


def download(server, folder, game="breakout"):
    words = ["--game", game, "--output-dir", str(folder), "--record", str(RECORD)]
    return main(["atari-head", *words, "--base-url", server.url])


def test_download_ends_with_the_audit_table(server, tmp_path, capsys):
    assert download(server, tmp_path / "data", "ALE/Breakout-v5") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split()[:4] == ["7", "breakout", "3", "3"]
    assert err == ""
    assert (tmp_path / "data" / "breakout.zip").read_bytes() == server.files["breakout.zip"]


def test_download_that_fails_is_one_line_and_status_1(server, tmp_path, capsys):
    server.files["breakout.zip"] += b"!"
    server.entries["breakout.zip"] = {"checksum": "md5:" + "0" * 32}
    assert download(server, tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("fls data atari-head: error: breakout.zip: ")
    assert not (tmp_path / "breakout.zip").exists()


def test_download_of_an_unknown_game_is_status_2(server, tmp_path, capsys):
    assert download(server, tmp_path / "data", "braekout") == 2
    assert "did you mean 'breakout'?" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_audit_shows_every_trial_and_names_absent_ones(capsys):
    assert main(["audit", "--atari-head-dir", str(GOLDEN)]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["trial", "9901", "9903", "9902"]
    assert err == f"listed in meta_data.csv, but not in {GOLDEN}: 1 (9999)\n"


def test_audit_of_one_game(capsys):
    assert main(["audit", "--atari-head-dir", str(GOLDEN), "--game", "MsPacman"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["trial", "9902"]


def test_audit_as_json_and_csv(capsys):
    words = ["audit", "--atari-head-dir", str(GOLDEN), "--game", "Breakout", "--format"]
    assert main([*words, "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["trial"], row["samples"]) for row in rows] == [(9901, 581), (9903, 236)]
    assert main([*words, "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["trial"] for row in table] == ["9901", "9903"]


def test_audit_goes_on_after_a_broken_trial_and_is_status_1(tmp_path, capsys):
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    archive = next(tmp_path.glob("9901*.tar.bz2"))
    archive.write_bytes(archive.read_bytes()[:9000])
    assert main(["audit", "--atari-head-dir", str(tmp_path), "--game", "breakout"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[0] == "9903"
    assert lines[3].startswith("broken: trial 9901_RZ_2404569_Aug-10-14-52-11 (breakout): ")
    assert "damaged or truncated" in lines[3]


def test_audit_decodes_the_frames(tmp_path, capsys):
    import tarfile

    write_flat(tmp_path)
    with tarfile.open(tmp_path / f"{NAME}.tar.bz2") as tar:
        tar.extractall(tmp_path, filter="data")
    (tmp_path / f"{NAME}.tar.bz2").unlink()
    (tmp_path / NAME / "RZ_42_3.png").write_bytes(b"junk")
    assert main(["audit", "--atari-head-dir", str(tmp_path)]) == 1
    assert "frame 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "--atari-head-dir", "none"], "none: there is no such folder"),
        (["audit", "--atari-head-dir", str(GOLDEN), "--game", "breakot"], "did you mean"),
        (["audit", "--atari-head-dir", str(GOLDEN), "--game", "alien"], "no trial of alien"),
        (["audit"], "--atari-head-dir"),
        (["audti"], "did you mean 'audit'?"),
        (["x"], "choose one of: atari-head, audit"),
        (["atari-head", "--game", "breakout", "--output-dir", "o", "--record", "x"], "record"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_usage_is_shown(capsys):
    assert main(["--help"]) == 0
    assert main([]) == 2
    assert entry.main(["data", "--help"]) == 0
    assert capsys.readouterr().out.count("usage: fls data COMMAND") == 3
