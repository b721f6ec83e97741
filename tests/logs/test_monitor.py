"""Monitor files: one per env, the original's bytes, continued after a restart."""

from pathlib import Path

import pytest

from fl_saliency.base import EpisodeRecord
from fl_saliency.errors import FileFormatError
from fl_saliency.logs.monitor import MonitorWriter
from fl_saliency.logs.readers import monitor_files, read_monitor, read_monitors

GOLDEN = Path(__file__).parents[1] / "golden"


def episode(env: int, reward: float, length: int, time: float) -> EpisodeRecord:
    return EpisodeRecord(
        env=env,
        episode=0,
        seed=0,
        reward=reward,
        length=length,
        frames=4 * length,
        end="game_over",
        time=time,
    )


def writer(folder: Path, envs: int = 1, start: float = 1000.0) -> MonitorWriter:
    return MonitorWriter(folder, env_id="BreakoutNoFrameskip-v4", num_envs=envs, t_start=start)


def test_a_file_equals_the_originals_byte_for_byte(tmp_path: Path) -> None:
    with writer(tmp_path, start=1796027842.432325) as monitor:
        monitor.write(episode(0, 0, 129, 3.8584921))
    golden = GOLDEN / "train_example" / "0.0.monitor.csv"
    assert (tmp_path / "0.0.monitor.csv").read_bytes() == golden.read_bytes()


def test_the_originals_files_are_read_and_merged_by_time() -> None:
    files = monitor_files(GOLDEN / "original_run" / "logs")
    assert [path.name for path in files] == [f"0.{env}.monitor.csv" for env in range(8)]
    games = read_monitors(files)
    assert list(games.columns) == ["env", "r", "l", "t", "steps"]
    assert len(games) == sum(len(read_monitor(path).episodes) for path in files) == 17
    assert games["t"].is_monotonic_increasing
    assert games["steps"].iloc[-1] == games["l"].sum()
    # The original's last row of progress.csv: 17 games, mean 0.7058823529411765, 154.588...
    assert games["r"].mean() == pytest.approx(0.7058823529411765)
    assert games["l"].mean() == pytest.approx(154.58823529411765)


def test_eight_envs_have_eight_files_and_each_game_is_in_its_own(tmp_path: Path) -> None:
    with writer(tmp_path, envs=8) as monitor:
        for number in range(20):
            monitor.write(episode(number % 8, number, 10, number + 0.5))
    files = monitor_files(tmp_path)
    assert len(files) == 8
    for env, path in enumerate(files):
        assert read_monitor(path).episodes["r"].tolist() == list(range(env, 20, 8))
    assert read_monitors(files)["r"].tolist() == list(range(20))


def test_files_of_more_than_ten_envs_stay_in_the_envs_order(tmp_path: Path) -> None:
    with writer(tmp_path, envs=12):
        pass
    names = [path.name for path in monitor_files(tmp_path)]
    assert names == [f"0.{env}.monitor.csv" for env in range(12)]


def test_a_row_is_on_disk_when_write_returns(tmp_path: Path) -> None:
    monitor = writer(tmp_path)
    monitor.write(episode(0, 3.0, 50, 1.0))
    assert len(read_monitor(tmp_path / "0.0.monitor.csv").episodes) == 1
    monitor.close()


@pytest.mark.parametrize("before", [None, b""])
def test_a_missing_or_empty_file_gets_a_header(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "0.0.monitor.csv"
    if before is not None:
        path.write_bytes(before)
    with writer(tmp_path):
        pass
    assert path.read_bytes() == (
        b'# {"t_start": 1000.0, "env_id": "BreakoutNoFrameskip-v4"} \nr,l,t\r\n'
    )


def test_a_restart_keeps_header_and_rows_and_its_times_go_on(tmp_path: Path) -> None:
    with writer(tmp_path, start=1000.0) as monitor:
        monitor.write(episode(0, 1, 10, 5.0))
    with writer(tmp_path, start=1100.0) as monitor:
        monitor.write(episode(0, 2, 20, 5.0))
    found = read_monitor(tmp_path / "0.0.monitor.csv")
    assert found.t_start == 1000.0
    assert found.episodes.values.tolist() == [[1, 10, 5.0], [2, 20, 105.0]]


def test_a_restart_after_a_torn_row_drops_that_row(tmp_path: Path) -> None:
    path = tmp_path / "0.0.monitor.csv"
    path.write_bytes(b'#{"t_start": 1000, "env_id": "A"}\nr,l,t\r\n1.0,10,5.0\r\n2.0,2')
    with writer(tmp_path) as monitor:
        monitor.write(episode(0, 3, 30, 7.0))
    assert read_monitor(path).episodes["r"].tolist() == [1.0, 3.0]


def test_a_restart_on_a_file_that_is_no_monitor_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "0.0.monitor.csv").write_text("r,l,t\n")
    with pytest.raises(FileFormatError, match="line 1: expected a monitor header"):
        writer(tmp_path)


def test_reward_and_time_are_rounded_to_six_places(tmp_path: Path) -> None:
    with writer(tmp_path) as monitor:
        monitor.write(episode(0, 1 / 3, 7, 2 / 3))
    assert (tmp_path / "0.0.monitor.csv").read_bytes().endswith(b"\n0.333333,7,0.666667\r\n")
