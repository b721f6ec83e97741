import csv
import json
import pickle
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from fl_saliency.atari_head.averages import method_summaries
from fl_saliency.atari_head.benchmark import (
    BenchmarkSettings,
    SkippedTrial,
    TrialScores,
    score_trial,
)
from fl_saliency.atari_head.frames_picture import frames_figure
from fl_saliency.atari_head.methods_picture import methods_figure
from fl_saliency.atari_head.picture import benchmark_figure
from fl_saliency.atari_head.prior import OTHER_HALF
from fl_saliency.atari_head.report import (
    COMPARISON_FILES,
    CSV_COLUMNS,
    METHOD_CSV_COLUMNS,
    RESULT_FILES,
    benchmark_summary,
    write_report,
)
from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.metrics.mit import MIT_METRICS
from fl_saliency.saliency.options import MethodOptions
from tests.atari_head.gaze_fakes import FakeAgent, FakeTrial, square_gaze
from tests.helpers import read_strict_json

SETTINGS = BenchmarkSettings(protocol=resolve_protocol("BreakoutNoFrameskip-v4"))
PROVENANCE = {"network": "cnn_fake", "env_name": "BreakoutNoFrameskip-v4", "eval_seed": 1000}


def scored(settings: BenchmarkSettings = SETTINGS) -> TrialScores:
    """Six decisions; number 2 has a constant map, the last one no gaze."""
    trial: Any = FakeTrial(range(1, 24), square_gaze(range(1, 6)))
    maps = np.random.default_rng(0).uniform(0.1, 1, (6, 84, 84))
    maps[2] = 0.5
    return score_trial(FakeAgent(maps), trial, settings)


def written(tmp_path: Path, *trials: TrialScores) -> Path:
    skipped = [
        SkippedTrial(ref=replace(trials[0].ref, number=8, name="8_x"), reason="trial 8_x: broken"),
        SkippedTrial(ref=replace(trials[0].ref, number=9), reason="not here", absent=True),
    ]
    summary = benchmark_summary(trials, skipped, SETTINGS, PROVENANCE)
    files = write_report(tmp_path, trials, summary, SETTINGS)
    assert [path.name for path in files] == list(RESULT_FILES)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(RESULT_FILES)
    return tmp_path


def test_pickle_has_the_originals_structure_for_old_and_new_numpy(tmp_path: Path) -> None:
    trial = scored()
    path = written(tmp_path, trial) / "saliency.pkl"
    records = pickle.loads(path.read_bytes())
    assert isinstance(records, list)
    assert isinstance(records[0], OrderedDict)
    assert list(records[0]) == ["trial_number", "metrics"]
    assert type(records[0]["trial_number"]) is int
    assert list(records[0]["metrics"]) == ["nss", "kldiv", "sauc"]
    for name, values in records[0]["metrics"].items():
        assert values.dtype == np.float64
        assert np.array_equal(values, getattr(trial.metrics, name), equal_nan=True)
    assert np.isnan(records[0]["metrics"]["nss"][[2, 5]]).all()
    assert b"numpy.core.multiarray" in path.read_bytes()
    assert b"numpy._core" not in path.read_bytes()  # NumPy 1 has no such module
    assert load_foreign(path)[0]["trial_number"] == 7  # type: ignore[index]


def test_json_says_all_that_the_figures_depend_on(tmp_path: Path) -> None:
    found = read_strict_json(written(tmp_path, scored(), scored()) / "saliency.json")
    expected = {
        "network": "cnn_fake",
        "eval_seed": 1000,
        "convention": "paper",
        "gaze_alignment": "frames",
        "observation": "raw",
        "map_shape": [210, 160],
        "kl_sigma_pixels": 5.0,
        "sauc": {"seed": 42, "splits": 100, "other_frames": 10},
        "protocol": SETTINGS.protocol.as_dict(),
        "skipped": [{"trial_number": 8, "name": "8_x", "reason": "trial 8_x: broken"}],
        "absent": [9],
    }
    assert {key: found[key] for key in expected} == expected
    assert found["map"]["source"] == "attention"
    assert found["overall"]["trials"] == 2
    assert found["overall"]["decisions"] == 12
    for block, n in ((found["trials"][0], 1), (found["overall"], 2)):
        assert block["metrics"]["nss"]["n"] == 4 * n
        assert block["metrics"]["nss"]["dropped"] == {"constant_map": n, "no_fixation": n}
        assert block["metrics"]["kldiv"]["dropped"] == {"no_fixation": n}
        assert block["metrics"]["sauc"]["n"] == 4 * n
    assert found["trials"][0]["audit"]["trial"] == 7


def test_processed_results_say_so() -> None:
    settings = BenchmarkSettings(
        protocol=SETTINGS.protocol, processed=True, alignment="original", seed=3
    )
    found = benchmark_summary([scored(settings)], [], settings, PROVENANCE)
    assert (found["observation"], found["map_shape"]) == ("processed", (84, 84))
    assert (found["kl_sigma_pixels"], found["gaze_alignment"]) == (2.0, "original")
    assert found["sauc"]["seed"] == 3


def test_csv_has_a_row_per_decision_with_full_precision(tmp_path: Path) -> None:
    trial = scored()
    with (written(tmp_path, trial) / "saliency.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert [int(row["frame"]) for row in rows] == [1, 5, 9, 13, 17, 21]
    assert [int(row["decision"]) for row in rows] == list(range(6))
    assert [int(row["n_fixations"]) for row in rows] == trial.num_fixations.tolist()
    assert rows[2]["nss"] == rows[5]["kldiv"] == ""
    assert float(rows[1]["sauc"]) == trial.metrics.sauc[1]
    assert float(rows[1]["nss"]) == trial.metrics.nss[1]


def texts(figure: Figure) -> str:
    axes = [
        (panel.get_xlabel(), panel.get_ylabel(), panel.get_title()) for panel in figure.get_axes()
    ]
    return f"{figure.get_suptitle()} {axes}"


@pytest.mark.parametrize("processed", [False, True])
def test_picture_shows_every_metric_and_one_frame(processed: bool, tmp_path: Path) -> None:
    settings = BenchmarkSettings(protocol=SETTINGS.protocol, processed=processed)
    figure = benchmark_figure([scored(settings)] * 3, settings, "cnn_fake on Breakout")
    shown = texts(figure)
    for text in ("NSS", "shuffled AUC", "KL(gaze || map)", "trial", "x (pixels)", "y (pixels)"):
        assert text in shown
    assert ("84x84" in shown) == processed
    picture = figure.get_axes()[3].images[0].get_array()
    assert picture is not None
    assert picture.shape == ((84, 84) if processed else (210, 160, 3))
    figure.savefig(tmp_path / "picture.png")
    image = cv2.imread(str(tmp_path / "picture.png"))
    assert image is not None
    assert len(np.unique(image)) > 50


@pytest.mark.parametrize("value", [0.0, 0.5, np.nan])
def test_picture_of_undefined_scores_is_drawn(value: float, tmp_path: Path) -> None:
    trial: Any = FakeTrial(range(1, 12), square_gaze(range(1, 12)))
    agent = FakeAgent(np.full((3, 84, 84), value))
    written(tmp_path, score_trial(agent, trial, SETTINGS))


COMPARED = BenchmarkSettings(
    protocol=SETTINGS.protocol,
    processed=True,
    saliency=("attention", "perturbation"),
    options=MethodOptions(stride=28, target="policy"),
)


def compared(**more: Any) -> TrialScores:
    trial: Any = FakeTrial(range(1, 120), square_gaze(range(1, 119)))
    agent = FakeAgent(lambda obs: obs[..., -1].astype(np.float32) + 1)
    return score_trial(agent, trial, COMPARED, **{"keep_frames": True} | more)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrialScores]:
    folder, scores = tmp_path_factory.mktemp("comparison"), compared()
    summary = benchmark_summary([scores], [], COMPARED, PROVENANCE)
    files = write_report(folder, [scores], summary, COMPARED)
    assert [path.name for path in files] == [*RESULT_FILES, *COMPARISON_FILES]
    return folder, scores


def test_a_comparison_has_a_csv_row_per_decision_and_method(
    comparison: tuple[Path, TrialScores],
) -> None:
    folder, scores = comparison
    with (folder / "saliency.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == METHOD_CSV_COLUMNS
    assert METHOD_CSV_COLUMNS[4:8] == ("method", "nss", "kldiv", "sauc")
    assert METHOD_CSV_COLUMNS[8:] == tuple(f"mit_{name}" for name in MIT_METRICS)
    decisions = len(scores.frame_numbers)
    assert len(rows) == 8 * decisions
    for method in scores.methods:
        own = [row for row in rows if row["method"] == method.name]
        assert [int(row["decision"]) for row in own] == list(range(decisions))
        assert [int(row["n_fixations"]) for row in own] == method.num_fixations.tolist()
        assert [float(row["mit_ig"]) for row in own] == method.mit.ig.tolist()
    uniform = next(row for row in rows if row["method"] == "uniform")
    assert uniform["nss"] == ""
    assert uniform["mit_nss"] == "0.0"


def test_a_comparison_says_in_json_what_each_convention_found(
    comparison: tuple[Path, TrialScores],
) -> None:
    folder, scores = comparison
    found = json.loads((folder / "saliency.json").read_text())
    assert found["map"]["source"] == "attention"
    assert found["overall"]["metrics"]["nss"]["mean"] == np.nanmean(scores.metrics.nss)
    assert [method["name"] for method in found["methods"]][:3] == [
        "attention",
        "perturbation",
        "uniform",
    ]
    for method, expected in zip(found["methods"], scores.methods, strict=True):
        assert list(method["paper"]) == ["nss", "kldiv", "sauc"]
        assert list(method["mit"]) == list(MIT_METRICS)
        assert set(method["mit"]["ig"]) == {"mean", "std", "n", "dropped", "interval95"}
        assert method["fixations"] == expected.num_fixations.sum()
        assert list(method["shifted"]) == ["-1", "+1"]
        assert set(method["shifted"]["+1"]) == {"nss", "kldiv", "sauc"}
    perturbation, uniform = found["methods"][1:3]
    assert (perturbation["kind"], perturbation["target"]) == ("agent", "policy")
    assert uniform["paper"]["nss"]["dropped"] == {"constant_map": len(scores.frame_numbers)}
    assert uniform["paper"]["nss"]["mean"] is None
    assert uniform["paper"]["nss"]["interval95"] is None
    assert found["comparison"]["options"]["stride"] == 28
    assert found["trials"][0]["mean_gaze"] == OTHER_HALF
    assert [each["name"] for each in found["trials"][0]["methods"]] == list(COMPARED.methods)


def test_the_pickle_of_a_comparison_is_the_first_methods(
    comparison: tuple[Path, TrialScores],
) -> None:
    folder, scores = comparison
    (record,) = pickle.loads((folder / "saliency.pkl").read_bytes())
    assert list(record["metrics"]) == ["nss", "kldiv", "sauc"]
    assert np.array_equal(record["metrics"]["nss"], scores.methods[0].paper.nss)


def test_figures_of_several_trials_are_of_all_their_decisions() -> None:
    trial, other = compared(), compared(others=np.ones((84, 84), np.int64))
    found = method_summaries([trial, other])
    for method, one, two in zip(found, trial.methods, other.methods, strict=True):
        values = np.concatenate([one.mit.ig, two.mit.ig])
        assert method["mit"]["ig"]["mean"] == pytest.approx(np.mean(values))
        assert method["decisions"] == len(values)
    attention = trial.methods[0].shifted[-1].nss
    assert found[0]["shifted"]["-1"]["nss"] == pytest.approx(np.nanmean(attention))


def test_the_comparisons_picture_has_a_row_per_method_and_says_what_is_undefined(
    comparison: tuple[Path, TrialScores],
) -> None:
    _, scores = comparison
    figure = methods_figure(method_summaries([scores]), COMPARED, "cnn_fake on Breakout")
    nss, sauc = figure.get_axes()
    rows = [label.get_text() for label in nss.get_yticklabels()]
    assert rows[0] == "human"
    assert set(rows[1:3]) == {"attention", "perturbation (policy)"}
    assert len(rows) == 8
    assert "NSS" in nss.get_xlabel()
    assert "shuffled AUC" in sauc.get_xlabel()
    assert "undefined (constant map)" in [text.get_text() for text in nss.texts]


def test_the_frames_picture_names_method_frame_and_score(
    comparison: tuple[Path, TrialScores],
) -> None:
    folder, scores = comparison
    figure = frames_figure([scores], "cnn_fake on Breakout")
    titles = [panel.get_title() for panel in figure.get_axes()]
    assert len(titles) == 6
    best = scores.methods[1].frames[0]
    nss = scores.methods[1].paper.nss[best.decision]
    expected = f"perturbation: best\nframe {best.frame_number}, NSS {nss:.2f}, sAUC "
    assert titles[3].startswith(expected)
    image = cv2.imread(str(folder / "saliency_frames.png"))
    assert image is not None
    assert len(np.unique(image)) > 50


def test_pictures_of_a_comparison_without_a_single_score_are_drawn(tmp_path: Path) -> None:
    trial: Any = FakeTrial(range(1, 12), square_gaze(range(1, 12)))
    settings = BenchmarkSettings(
        protocol=SETTINGS.protocol, saliency=("attention", "uniform"), baselines=False
    )
    agent = FakeAgent(np.full((3, 84, 84), np.nan))
    scores = score_trial(agent, trial, settings, keep_frames=True)
    summary = benchmark_summary([scores], [], settings, PROVENANCE)
    files = write_report(tmp_path, [scores], summary, settings)
    assert all(path.stat().st_size for path in files)
