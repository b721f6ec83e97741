"""The training log: the original's formats, on disk at once, continued after a restart."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.logs.readers import read_progress, read_tensorboard
from fl_saliency.logs.writers import CsvWriter, Logger, TableWriter, TensorBoardWriter

EXAMPLE = Path(__file__).parents[1] / "golden" / "train_example"

# The one row of the original's example, in the order and the types in which it was logged.
ROW: dict[str, Any] = {
    "serial_timesteps": 128,
    "nupdates": 1,
    "total_timesteps": 1024,
    "fps": 70,
    "explained_variance": -0.0981132984161377,
    "eprewmean": 0.0,
    "eplenmean": 129.0,
    "time_elapsed": 14.43054817999996,
    "policy_loss": np.float32(-0.0023011619),
    "value_loss": np.float32(0.059577137),
    "policy_entropy": np.float32(1.3856766),
    "approxkl": np.float32(0.0005685276),
    "clipfrac": np.float32(0.0),
}


def test_log_and_csv_equal_the_originals_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Logger(Path("run/logs")) as logger:
        logger.write(ROW, 1)
    assert Path("run/logs/log.txt").read_text() == (EXAMPLE / "log.txt").read_text()
    assert Path("run/logs/progress.csv").read_bytes() == (EXAMPLE / "progress.csv").read_bytes()


def test_tensorboard_has_the_originals_tags_at_the_update_number(tmp_path: Path) -> None:
    golden = json.loads((EXAMPLE / "tensorboard_tags.json").read_text())
    with Logger(tmp_path / "logs", tmp_path / "tb") as logger:
        logger.write(ROW, 1)
    table = read_tensorboard(tmp_path / "tb")
    assert [tag for tag in table if tag != "wall_time"] == golden["tags_in_order_of_first_record"]
    assert list(table.index) == [1]
    assert all(table.loc[1, key] == np.float32(value) for key, value in ROW.items())


def test_tensorboards_own_reader_reads_ours(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['tensorflow'] = None  # tensorboard takes its own stand-in then\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "found = EventAccumulator(sys.argv[1]).Reload()\n"
        "print([(e.step, e.value) for e in found.Scalars('fps')], found.file_version)\n"
    )
    writer = TensorBoardWriter(tmp_path)
    writer.write({"fps": 70}, 1)
    writer.write({"fps": 80.5}, 2)
    command = [sys.executable, "-c", script, str(tmp_path)]
    writer.close()
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found == "[(1, 70.0), (2, 80.5)] 2.0\n"


def test_every_row_is_on_disk_when_write_returns(tmp_path: Path) -> None:
    logger = Logger(tmp_path, tmp_path / "tb")
    for step in (1, 2):
        logger.write({"nupdates": step, "loss": 0.5}, step)
        assert len(read_progress(tmp_path / "progress.csv")) == step
        assert len(read_tensorboard(tmp_path / "tb")) == step
        assert (tmp_path / "log.txt").read_text().count("nupdates") == step
    logger.close()


def test_a_second_logger_continues_the_files(tmp_path: Path) -> None:
    for step in (1, 2):
        with Logger(tmp_path, tmp_path / "tb") as logger:
            logger.write({"nupdates": step}, step)
    assert (tmp_path / "progress.csv").read_text() == "nupdates\n1\n2\n"
    assert (tmp_path / "log.txt").read_text().count("Logging to") == 2
    assert len(list((tmp_path / "tb").iterdir())) == 2
    assert list(read_tensorboard(tmp_path / "tb").index) == [1, 2]


def test_a_torn_last_line_is_removed_before_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("a,b\n1,2\n3")
    writer = CsvWriter(path)
    writer.write({"a": 3, "b": 4}, 2)
    writer.close()
    assert path.read_text() == "a,b\n1,2\n3,4\n"


def test_a_later_key_adds_a_column_that_is_empty_before(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    writer = CsvWriter(path)
    writer.write({"b": 1}, 1)
    writer.write({"b": 2, "z": 7, "a": 8}, 2)
    writer.write({"a": 9}, 3)
    writer.close()
    assert path.read_text() == "b,a,z\n1,,\n2,8,7\n,9,\n"
    assert read_progress(path)["z"].isna().tolist() == [True, False, True]


def test_long_names_and_values_are_cut_in_the_table_only(tmp_path: Path) -> None:
    stream = io.StringIO()
    TableWriter(stream).write({"k" * 23: 1, "m" * 24: 10**30}, 1)
    lines = stream.getvalue().splitlines()
    assert lines[1] == f"| {'k' * 23} | 1                       |"
    assert lines[2] == f"| {'m' * 20}... | {str(10**30)[:20]}... |"
    assert {len(line) for line in lines} == {53}


def test_nan_is_written_and_read_as_nan(tmp_path: Path) -> None:
    with Logger(tmp_path, tmp_path / "tb") as logger:
        logger.write({"eprewmean": float("nan")}, 1)
    assert read_progress(tmp_path / "progress.csv")["eprewmean"].isna().all()
    assert read_tensorboard(tmp_path / "tb")["eprewmean"].isna().all()


def test_logs_and_model_files_work_without_tensorflow(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "import fl_saliency.checkpoints.baselines, fl_saliency.logs.monitor\n"
        "from fl_saliency.logs.readers import read_tensorboard\n"
        "from fl_saliency.logs.writers import Logger\n"
        "root = Path(sys.argv[1])\n"
        "with Logger(root, root / 'tb') as logger:\n"
        "    logger.write({'a': 1}, 1)\n"
        "assert len(read_tensorboard(root / 'tb')) == 1\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("[]\n", "")
