"""A small training run from the command line: every file, and the same numbers for a seed."""

import json
import signal
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from fl_saliency.cli import train as command
from fl_saliency.experiments.load import load_run
from fl_saliency.experiments.training import train
from fl_saliency.logs.readers import read_monitors, read_progress, read_tensorboard

SMALL = ["--num-envs", "2", "--num-steps", "32", "--env-workers", "0", "--network", "cnn_daqn"]


def run(path: Path, *arguments: str) -> int:
    return command.main([*SMALL, "--output-dir", str(path), *arguments])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("train") / "run"
    assert run(path, "--num-timesteps", "640", "--train-seed", "5") == 0
    return path


def test_a_run_leaves_every_file_of_its_folder(finished: Path) -> None:
    files = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    events = {name for name in files if name.startswith("tb/events.out.tfevents.")}
    assert len(events) == 1
    assert files - events == {
        *(
            f"checkpoints/{update}/{name}"
            for update in ("00000000", "00000010")
            for name in ("arrays.safetensors", "state.json", "checksums.json")
        ),
        "config.json",
        "curve.png",
        "model.pkl",
        "logs/log.txt",
        "logs/progress.csv",
        "logs/0.0.monitor.csv",
        "logs/0.1.monitor.csv",
    }


def test_config_holds_settings_protocol_and_versions(finished: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    assert config["network"] == "cnn_daqn"
    assert config["train_seed"] == 5
    assert config["gamma"] == 0.99
    assert config["protocol"]["game"] == "breakout"
    assert set(config["versions"]) >= {"python", "tensorflow", "ale-py", "numpy"}


def test_progress_and_tensorboard_have_a_row_per_update(finished: Path) -> None:
    progress = read_progress(finished / "logs" / "progress.csv")
    assert progress["nupdates"].tolist() == list(range(1, 11))
    assert progress["total_timesteps"].tolist() == [64 * n for n in range(1, 11)]
    assert progress["serial_timesteps"].tolist() == [32 * n for n in range(1, 11)]
    events = read_tensorboard(finished / "tb")
    np.testing.assert_allclose(events["value_loss"], progress["value_loss"], rtol=1e-6)


def test_every_finished_game_is_in_its_envs_monitor_file(finished: Path) -> None:
    games = read_monitors(sorted((finished / "logs").glob("*.monitor.csv")))
    progress = read_progress(finished / "logs" / "progress.csv")
    assert len(games) >= 2
    assert progress["eprewmean"].iloc[-1] == pytest.approx(games["r"].mean())
    assert progress["eplenmean"].iloc[-1] == pytest.approx(games["l"].mean())


def test_model_loads_back_as_an_agent_that_acts(finished: Path) -> None:
    agent = load_run(finished, seed=0).agent
    step = agent.step(np.zeros((2, 84, 84, 4), np.uint8))
    assert step.actions.shape == (2,)
    assert step.attention is not None


def test_a_seed_repeats_a_run_to_the_last_bit_whoever_plays_the_games(
    finished: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    assert run(again, "--num-timesteps", "640", "--train-seed", "5", "--env-workers", "2") == 0
    first, second = (joblib.load(path / "model.pkl") for path in (finished, again))
    assert all((first[name] == second[name]).all() for name in first)
    timed = ["fps", "time_elapsed"]
    logs = [read_progress(path / "logs" / "progress.csv") for path in (finished, again)]
    pd.testing.assert_frame_equal(*(log.drop(columns=timed) for log in logs))


def test_a_run_never_writes_into_a_folder_that_holds_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    assert run(tmp_path, "--num-timesteps", "64") == 2
    assert "expected a new or empty folder, found 'precious.txt'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network", "cnn_spars_fls"], "unknown network 'cnn_spars_fls'; did you mean"),
        (["--env-name", "BreakoutNoFrameskip-v5"], "BreakoutNoFrameskip-v4"),
        (["--env-name", "Breakot"], "Breakout"),
        (["--num-timesteps", "63"], "--num-timesteps 63: expected at least one update, 64"),
        (["--num-timesteps", "many"], "--num-timesteps"),
        (["--train-seed", "-1"], "--train-seed -1: expected a seed"),
        (["--num-envs", "0"], "--num-envs 0: expected at least 1"),
        (["--frame-skip", "0"], "frame_skip 0: expected 1 or more"),
        (["--precision", "float8"], "float8"),
        (["--extra-import", "no_such_module"], "--extra-import no_such_module"),
        (["--no-such-flag", "1"], "--no-such-flag"),
        (["--env-workers", "-1"], "--env-workers -1: expected 0 or more"),
        (["--full-action-set", "perhaps"], "--full-action-set"),
    ],
)
def test_a_wrong_argument_is_one_line_status_2_and_nothing_written(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    status = run(path, "--num-timesteps", "64", *arguments)
    lines = capsys.readouterr().err.strip().splitlines()
    assert status == 2
    assert len(lines) == 1
    assert message in lines[0]
    assert not path.exists()


def test_an_interrupted_run_keeps_its_logs_and_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    from fl_saliency.experiments import training

    show = training._show

    def interrupt_at_the_third(bar: object, update: training.Update, size: int) -> None:
        show(bar, update, size)  # type: ignore[arg-type]
        if update.index == 3:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(training, "_show", interrupt_at_the_third)
    assert run(path, "--num-timesteps", "6400") == 130
    assert "interrupted" in capsys.readouterr().err
    assert len(read_progress(path / "logs" / "progress.csv")) == 3
    assert load_run(path, seed=0).agent.num_actions == 4
    assert (path / "curve.png").stat().st_size > 0


def test_a_loss_that_is_not_finite_fails_the_job_and_saves_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fl_saliency.agents.ppo2.learner import PPO2Learner

    monkeypatch.setattr(
        PPO2Learner, "update", lambda *_: {"policy_loss": np.float32("nan"), "value_loss": 1.0}
    )
    path = tmp_path / "run"
    assert run(path, "--num-timesteps", "64") == 1
    assert "policy_loss not finite at update 1" in capsys.readouterr().err
    assert not (path / "model.pkl").exists()


def test_the_default_folder_is_named_after_game_network_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    from fl_saliency.experiments.configs import TrainConfig

    config = TrainConfig(
        network="cnn_daqn", num_envs=2, num_steps=8, num_timesteps=16, train_seed=9, env_workers=0
    )
    assert train(config).path == Path("runs/Breakout.cnn_daqn/9")


def test_every_part_of_the_protocol_is_a_flag(tmp_path: Path) -> None:
    path = tmp_path / "run"
    flags = "--fire-reset False --full-action-set True --frame-skip 2 --noop-max 0"
    assert run(path, "--num-timesteps", "64", *flags.split()) == 0
    protocol = json.loads((path / "config.json").read_text())["protocol"]
    assert protocol["fire_reset"] is False
    assert protocol["full_action_set"] is True
    assert protocol["frame_skip"] == 2
    assert load_run(path, seed=0).agent.num_actions == 18


def test_a_run_whose_worker_fails_keeps_its_model_and_shows_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fl_saliency.errors import JobError
    from fl_saliency.experiments import training

    def fail_at_the_second(bar: object, update: training.Update, size: int) -> None:
        if update.index == 2:
            failure = JobError("env worker 0 failed: KeyError")
            failure.add_note("Traceback of the worker")
            raise failure

    monkeypatch.setattr(training, "_show", fail_at_the_second)
    path = tmp_path / "run"
    assert run(path, "--num-timesteps", "640") == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "train_baselines.py: error: env worker 0 failed: KeyError",
        "Traceback of the worker",
    ]
    assert load_run(path, seed=0).agent.num_actions == 4
