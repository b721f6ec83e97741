"""Log positions: cut back to where they were, whatever came after, and nothing else touched."""

from pathlib import Path

import pytest

from fl_saliency.errors import FileFormatError
from fl_saliency.logs.positions import cut_back, log_sizes, sync_logs


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for folder in ("logs", "tb", "eval/logs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "logs" / "progress.csv").write_text("a\n1\n")
    (tmp_path / "logs" / "0.0.monitor.csv").write_text("#{}\n")
    (tmp_path / "tb" / "events.out.tfevents.1").write_bytes(b"abc")
    (tmp_path / "eval" / "logs" / "progress.csv").write_text("another run\n")
    (tmp_path / "logs" / "notes.md").write_text("mine")
    return tmp_path


def test_logs_come_back_to_their_sizes_and_later_files_go(run: Path) -> None:
    sizes = log_sizes(run)
    sync_logs(run)
    assert sizes == {
        "logs/progress.csv": 4,
        "logs/0.0.monitor.csv": 4,
        "tb/events.out.tfevents.1": 3,
    }
    with (run / "logs" / "progress.csv").open("a") as file:
        file.write("2\n3,to")
    (run / "tb" / "events.out.tfevents.2").write_bytes(b"later")
    cut_back(run, sizes)
    assert (run / "logs" / "progress.csv").read_text() == "a\n1\n"
    assert [path.name for path in (run / "tb").iterdir()] == ["events.out.tfevents.1"]
    assert (run / "logs" / "notes.md").read_text() == "mine"
    assert (run / "eval" / "logs" / "progress.csv").read_text() == "another run\n"


@pytest.mark.parametrize("size", [5, -1, True, None])
def test_a_log_that_is_shorter_than_the_checkpoint_says_changes_nothing(
    size: int, run: Path
) -> None:
    (run / "tb" / "events.out.tfevents.2").write_bytes(b"later")
    sizes = {"logs/0.0.monitor.csv": 1, "logs/progress.csv": size}
    with pytest.raises(FileFormatError, match=r"progress\.csv"):
        cut_back(run, sizes)
    assert (run / "logs" / "0.0.monitor.csv").stat().st_size == 4
    assert (run / "tb" / "events.out.tfevents.2").exists()


def test_a_log_that_is_gone_is_named(run: Path) -> None:
    sizes = log_sizes(run)
    (run / "logs" / "0.0.monitor.csv").unlink()
    with pytest.raises(FileFormatError, match=r"0\.0\.monitor\.csv: the log file .* missing"):
        cut_back(run, sizes)
