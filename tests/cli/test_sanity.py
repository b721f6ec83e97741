"""`fls sanity`: files, what they say, resuming, and refusals that write nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from fl_saliency.cli import sanity_job
from fl_saliency.cli.main import main
from fl_saliency.cli.sanity import RESULT_FILES, SanityConfig
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.experiments.load import load_run
from fl_saliency.experiments.maps import MapJob
from fl_saliency.experiments.sanity.verdicts import CHECKS
from fl_saliency.playback.states import moments_of_play
from tests.experiments.html_page import Page
from tests.helpers import make_run, read_strict_json

QUICK = ("--states", "3", "--every", "5", "--methods", "attention", "gradient")


def run(experiment: Path, output: Path, *words: str) -> int:
    return main(["sanity", str(experiment), "--output-dir", str(output), *QUICK, *words])


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Let a few states be enough for a verdict."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fl_saliency.experiments.sanity.verdicts.ENOUGH", 2)
        yield


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("experiment") / "01", network="cnn_sparse_fls")


@pytest.fixture(scope="module")
def results(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("out") / "sanity"
    assert run(experiment, output) == 0
    return output


def record(results: Path) -> dict[str, Any]:
    return read_strict_json(results / "sanity.json")


def test_the_files_are_there_and_nothing_else(results: Path) -> None:
    assert sorted(path.name for path in results.iterdir()) == sorted(RESULT_FILES)
    for name in RESULT_FILES:
        if name.endswith(".png"):
            assert min(cv2.imread(str(results / name)).shape[:2]) > 300


def test_the_record_says_what_was_checked_and_how(results: Path) -> None:
    found = record(results)
    assert found["network"] == "cnn_sparse_fls"
    assert (found["states"], found["every"], found["seed"], found["eval_seed"]) == (3, 5, 0, 1000)
    assert found["methods"] == ["attention", "gradient"]
    assert found["baselines"] == ["centre", "random"]
    assert found["protocol"]["game"] == "breakout"
    assert {one["check"] for one in found["verdicts"]} == set(CHECKS) == set(found["rules"])
    assert any("2021" in one["source"] for one in found["caveats"])
    assert any("nearly uniform" in text for text in found["cautions"])


def test_the_record_has_every_figure_with_its_interval(results: Path) -> None:
    found = record(results)
    cascade = found["randomisation"]["cascading"]
    assert [stage["layer"] for stage in cascade][:3] == ["pi", "vf", "fc1"]
    assert len(cascade) == len(found["randomisation"]["independent"]) == 8
    assert len(cascade[-1]["redrawn"]) == 8
    for measure in ("spearman", "spearman_nonzero", "ssim", "hog"):
        one = cascade[-1]["methods"]["centre"][measure]
        assert (one["mean"], one["n"], one["undefined"]) == (pytest.approx(1), 3, 0)
    curve = found["insertion_deletion"]["curves"]["deletion_logit"]["gradient"]
    assert len(curve["share"]) == len(curve["mean"]) == 21
    assert set(curve["over_random"]) == {"mean", "low", "high", "n", "undefined"}
    assert "attention cells" in found["high_against_low"]["effects"]["kl"]
    assert set(found["agreement"]["ranks"]) == {"attention", "gradient"}


def test_the_page_needs_no_other_file_and_no_script(results: Path) -> None:
    page = Page((results / "sanity.html").read_text(encoding="utf-8"))
    assert page.open == []
    images = page.all("img")
    assert len(images) == 5
    for image in images:
        assert str(image["src"]).startswith("data:image/png;base64,")
        assert len(str(image["alt"])) > 30
    assert not page.all("script")
    assert not page.all("link")
    assert all(str(a["href"]).startswith("https://arxiv.org/abs/") for a in page.all("a"))
    assert page.all("html") == [{"lang": "en"}]


def test_the_page_says_verdicts_rules_and_caveats(results: Path) -> None:
    text = " ".join(Page((results / "sanity.html").read_text(encoding="utf-8")).texts)
    for part in ("Caution", "✗ fails", "(baseline)", "The rules", "Before you believe it", "ROAR"):
        assert part in text
    for verdict in record(results)["verdicts"]:
        assert all(part in text for part in verdict["because"].split("; "))


def test_an_interrupted_job_goes_on_and_ends_alike(
    experiment: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sanity_job, "_pictures", stop)
        assert run(experiment, tmp_path / "out") == 130
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["sanity.partial"]
    monkeypatch.setattr("fl_saliency.saliency.makers.gradients.plain_gradients", stop)
    assert run(experiment, tmp_path / "out") == 0
    assert record(tmp_path / "out") == record(results)
    assert not (tmp_path / "out" / "sanity.partial").exists()


def test_an_unfinished_job_with_other_settings_is_refused(
    experiment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fl_saliency.experiments.sanity.checks.Checks.run", stop)
    assert run(experiment, tmp_path / "out") == 130
    assert run(experiment, tmp_path / "out", "--seed", "1") == 2
    assert "an unfinished job with other settings (seed 0, now 1)" in capsys.readouterr().err


def test_results_are_replaced_only_if_that_is_said(
    experiment: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (results / "sanity.html").read_bytes()
    assert run(experiment, results) == 2
    assert "sanity.json exists; add --overwrite" in capsys.readouterr().err
    assert (results / "sanity.html").read_bytes() == before


def test_a_network_without_attention_is_checked_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fl_saliency.cli.sanity_job.METHODS", ("attention", "gradient"))
    experiment = make_run(tmp_path / "cnn", network="cnn")
    words = ["--experiment-dir", str(experiment), "--states", "2", "--every", "3"]
    assert main(["sanity", *words]) == 0
    found = record(experiment / "sanity")
    assert found["methods"] == ["gradient"]
    assert "attention cells" not in found["high_against_low"]["effects"]["logit"]
    out, err = capsys.readouterr()
    assert "randomisation     centre    fails      Spearman 1 [1, 1]" in out
    assert "caution: There are 2 states only" in out
    assert out.splitlines()[-1] == str(experiment / "sanity" / "agreement.png")
    assert err == ""


def test_states_are_of_play_at_equal_distances(experiment: Path, tmp_path: Path) -> None:
    loaded = load_run(experiment, seed=1000)
    config = SanityConfig(run=experiment, states=3, every=4, progress=False)
    found = sanity_job._states(config, loaded, MapJob(tmp_path / "job", {}))
    again = load_run(experiment, seed=1000)
    with AtariVectorEnv(again.protocol, 1, 1000, workers=0, screens=True) as env:
        played = moments_of_play(again.agent, env)
        frames = [next(played).observation.copy() for _ in range(13)]
    np.testing.assert_array_equal(found.observations, [frames[i] for i in (4, 8, 12)])


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--states", "1"), "--states 1: expected 2 to 1000"),
        (("--states", "1001"), "--states 1001: expected 2 to 1000"),
        (("--every", "0"), "--every 0: expected 1 to 10000 decisions"),
        (("--seed", "-1"), "--seed -1: expected a seed from 0 to 2147483647"),
        (("--eval-seed", "-1"), "--eval-seed -1: expected a seed from 0 to 2147483647"),
        (("--methods", "gradcm"), "unknown saliency method 'gradcm'; did you mean 'gradcam'?"),
        (("--methods", "rise", "rise"), "saliency method 'rise' is given twice"),
        (("--methods",), "no saliency method given; choose from: "),
        (
            ("--methods", "centre", "rise"),
            "--methods centre: expected other methods; this baseline always comes along",
        ),
        (("--experiment-dir", "x"), "RUN: expected one run directory (or --experiment-dir instead"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    experiment: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    assert run(experiment, tmp_path / "out", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fls sanity: error: {said}")
    assert not (tmp_path / "out").exists()


def test_no_run_directory_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sanity"]) == 2
    assert "RUN: expected one run directory" in capsys.readouterr().err


def test_attention_is_refused_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = make_run(tmp_path / "cnn", network="cnn")
    assert run(experiment, tmp_path / "out") == 2
    assert "has no built-in attention" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
