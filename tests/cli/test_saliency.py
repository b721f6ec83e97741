"""`fls saliency`: the files, the video decoded back, going on after an interrupt, trials."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from fl_saliency.atari_head.replay import play_back
from fl_saliency.cli.main import main
from fl_saliency.experiments import maps as maps_module
from fl_saliency.experiments.load import load_run
from fl_saliency.saliency.methods import SaliencyMethod, make_methods
from tests.helpers import make_run, read_strict_json

ROOT = Path(__file__).parents[2]
METHODS = ("attention", "gradcam", "random")
VIDEO = "attention+gradcam+random_action_inferno_c200_s1.mp4"
FILES = sorted([VIDEO, "maps.npz", "maps.json", "states.npz", "stills.png"])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("experiment") / "01", network="cnn_sparse_fls")


def run(experiment: Path, output: Path, *words: str, methods: tuple[str, ...] = METHODS) -> int:
    where = ["--experiment-dir", str(experiment), "--output-dir", str(output)]
    return main(["saliency", *where, "--methods", *methods, "--steps", "40", *words])


@pytest.fixture(scope="module")
def results(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("out") / "saliency"
    assert run(experiment, output) == 0
    return output


def test_the_files_are_there_and_nothing_else(results: Path) -> None:
    assert sorted(path.name for path in results.iterdir()) == FILES


def test_the_record_says_what_was_computed(results: Path) -> None:
    found = read_strict_json(results / "maps.json")
    assert (found["network"], found["states"], found["games"]) == ("cnn_sparse_fls", 40, 1)
    assert [(m["name"], m["target"]) for m in found["methods"]] == [
        ("attention", "none"),
        ("gradcam", "action"),
        ("random", "none"),
    ]
    assert found["options"]["stride"] == 5
    assert found["protocol"]["game"] == "breakout"


def test_maps_and_outputs_are_the_agents(results: Path, experiment: Path) -> None:
    maps, states = np.load(results / "maps.npz"), np.load(results / "states.npz")
    assert sorted(maps) == sorted(METHODS)
    assert all(maps[name].shape == (40, 84, 84) for name in METHODS)
    assert states["scores"].shape == (40, 4)
    assert np.isfinite(states["values"]).all()
    agent = load_run(experiment, seed=1000).agent
    assert (states["actions"] < agent.num_actions).all()


def test_the_video_decodes_to_a_frame_a_state(results: Path) -> None:
    with av.open(str(results / VIDEO)) as video:
        assert video.streams.video[0].codec_context.name == "h264"
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(frames) == 40
    assert frames[0].shape == (420 + 44, 4 * 320, 3)
    screen, attention = (frames[-1][22:442, 320 * i : 320 * (i + 1)] for i in (0, 1))
    assert np.abs(screen.astype(int) - attention).mean() > 1


def test_the_stills_are_a_page(results: Path) -> None:
    height, width, _ = cv2.imread(str(results / "stills.png")).shape
    assert height > 800
    assert width > 700


def test_a_finished_result_is_not_overwritten_unasked(
    results: Path, experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in results.iterdir()}
    assert run(experiment, results) == 2
    assert "add --overwrite" in capsys.readouterr().err
    assert {path.name: path.stat().st_mtime_ns for path in results.iterdir()} == before


def test_overwriting_with_other_settings_leaves_no_old_video(
    experiment: Path, tmp_path: Path
) -> None:
    assert run(experiment, tmp_path / "out", methods=("centre",)) == 0
    words = ("--overwrite", "--colour", "red", "--steps", "3")
    assert run(experiment, tmp_path / "out", *words, methods=("centre",)) == 0
    videos = [path.name for path in (tmp_path / "out").glob("*.mp4")]
    assert videos == ["centre_action_red_c200_s1.mp4"]
    assert read_strict_json(tmp_path / "out" / "maps.json")["states"] == 3


def test_an_interrupted_job_goes_on_and_gives_the_same_maps(
    results: Path, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps_module, "CHUNK", 16)
    whole, calls = SaliencyMethod.maps, []

    def counted(method: SaliencyMethod, obs: Any, actions: Any) -> Any:
        calls.append((method.name, len(obs)))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return whole(method, obs, actions)

    monkeypatch.setattr(SaliencyMethod, "maps", counted)
    output = tmp_path / "out"
    assert run(experiment, output) == 130
    assert [path.name for path in output.iterdir()] == ["maps.partial"]
    assert run(experiment, output) == 0
    sizes = [("gradcam", 16), ("gradcam", 8)]
    assert calls[4:] == [sizes[0], *sizes, ("random", 16), ("random", 16), ("random", 8)]
    assert sorted(path.name for path in output.iterdir()) == FILES
    for name in METHODS:
        found, expected = (np.load(folder / "maps.npz")[name] for folder in (output, results))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * expected.max())


def test_an_unfinished_job_of_other_settings_is_not_mixed_in(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(method: SaliencyMethod, obs: Any, actions: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SaliencyMethod, "maps", stop)
        assert run(experiment, tmp_path / "out") == 130
    assert run(experiment, tmp_path / "out", "--stride", "7") == 2
    assert "options: stride 5, now 7" in capsys.readouterr().err
    assert run(experiment, tmp_path / "out", "--stride", "7", "--overwrite") == 0


def test_a_map_that_is_not_finite_ends_the_job_and_names_its_state(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = SaliencyMethod.maps

    def spoilt(method: SaliencyMethod, obs: Any, actions: Any) -> Any:
        maps = whole(method, obs, actions)
        maps[3, 0, 0] = np.nan
        return maps

    monkeypatch.setattr(SaliencyMethod, "maps", spoilt)
    assert run(experiment, tmp_path / "out") == 1
    assert "method 'attention': the map of state 3 is not finite" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["maps.partial"]


def test_constant_maps_are_drawn_and_counted(experiment: Path, tmp_path: Path) -> None:
    assert run(experiment, tmp_path / "out", methods=("uniform",)) == 0
    (method,) = read_strict_json(tmp_path / "out" / "maps.json")["methods"]
    assert method["constant_maps"] == 40


def test_the_preset_names_its_settings(experiment: Path, tmp_path: Path) -> None:
    words = ("--preset", "procgen", "--steps", "2", "--stride", "28")
    assert run(experiment, tmp_path / "out", *words, methods=("perturbation",)) == 0
    assert (tmp_path / "out" / "perturbation_policy_red_c100_s5_mean.mp4").is_file()
    assert read_strict_json(tmp_path / "out" / "maps.json")["options"]["channels"] == "mean"


def test_what_is_said_beside_a_preset_wins_or_is_refused(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = ("--preset", "procgen", "--steps", "2", "--stride", "28")
    words = (*preset, "--colour", "green", "--intensity", "60", "--channels", "max")
    assert run(experiment, tmp_path / "out", *words, methods=("perturbation",)) == 0
    assert (tmp_path / "out" / "perturbation_policy_green_c60_s5_max.mp4").is_file()
    capsys.readouterr()
    for more, said in (
        ({"methods": ("gradcam",)}, "--methods gradcam: --preset procgen is perturbation"),
        ({}, "--target value: --preset procgen explains the policy"),
    ):
        methods = more.get("methods", ("perturbation",))
        words = (*preset, *(() if more else ("--target", "value")))
        assert run(experiment, tmp_path / "other", *words, methods=methods) == 2
        assert said in capsys.readouterr().err


def test_a_users_own_video_is_no_result_of_ours(experiment: Path, tmp_path: Path) -> None:
    own = tmp_path / "out" / "my_clip_scene.mp4"
    own.parent.mkdir()
    own.write_bytes(b"mine")
    assert run(experiment, own.parent, "--overwrite") == 2
    assert own.read_bytes() == b"mine"


def test_another_network_does_not_go_on_with_its_maps(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(method: SaliencyMethod, obs: Any, actions: Any) -> None:
        raise KeyboardInterrupt

    changed = Path(shutil.copytree(experiment, tmp_path / "run"))
    with monkeypatch.context() as patch:
        patch.setattr(SaliencyMethod, "maps", stop)
        assert run(changed, tmp_path / "out") == 130
    config = json.loads((changed / "config.json").read_text())
    (changed / "config.json").write_text(json.dumps(config | {"network": "cnn_sparse_fls_sp2"}))
    assert run(changed, tmp_path / "out") == 2
    assert 'network "cnn_sparse_fls", now "cnn_sparse_fls_sp2"' in capsys.readouterr().err


def test_a_full_disk_is_a_line_and_no_crash(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(file: int, start: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert run(experiment, tmp_path / "out") == 1
    assert "No space left on device" in capsys.readouterr().err


def test_a_recorded_trial_is_replayed(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (number,) = {
        int(path.name.split("_")[0])
        for path in (ROOT / "demo" / "atari_head" / "breakout").iterdir()
    }
    words = ("--atari-head-dir", str(ROOT / "demo" / "atari_head"), "--trial", str(number))
    assert run(experiment, tmp_path / "out", *words, "--steps", "12") == 0
    found = read_strict_json(tmp_path / "out" / "maps.json")
    assert (found["states"], found["trial"]) == (12, number)
    states, maps = (np.load(tmp_path / "out" / name) for name in ("states.npz", "maps.npz"))
    assert np.isnan(states["game_scores"]).all()
    assert np.array_equal(states["actions"], states["scores"].argmax(axis=1))
    from fl_saliency.atari_head.reader import find_trials, open_trial

    run_ = load_run(experiment, seed=1000)
    refs = find_trials(ROOT / "demo" / "atari_head", "BreakoutNoFrameskip-v4")
    with open_trial(refs[0]) as trial:
        decision = next(iter(play_back(trial.frames(), run_.protocol)))
    (attention,) = make_methods(["attention"], run_.agent)
    expected = attention.maps(decision.observation[None], np.array([0]))
    np.testing.assert_allclose(maps["attention"][:1], expected, rtol=1e-4)
