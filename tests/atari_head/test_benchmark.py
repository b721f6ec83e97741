import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.atari_head.benchmark import (
    BenchmarkSettings,
    SkippedTrial,
    TrialScores,
    num_steps,
    score_trial,
    score_trials,
)
from fl_saliency.atari_head.reader import TrialError, find_trials, open_trial
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.errors import InputError
from fl_saliency.saliency.options import MethodOptions
from tests.atari_head.gaze_fakes import (
    GOLDEN,
    TRIALS,
    FakeAgent,
    FakeTrial,
    golden_metrics,
    square_gaze,
)
from tests.atari_head.makers import (
    FLAT_META,
    frame_files,
    label_row,
    label_text,
    tar_bytes,
    write_flat,
)

SETTINGS = BenchmarkSettings(protocol=resolve_protocol("BreakoutNoFrameskip-v4"))


def settings(**changes: Any) -> BenchmarkSettings:
    return BenchmarkSettings(**{"protocol": SETTINGS.protocol, **changes})


def newest_frame(obs: Any) -> Any:
    return obs[..., -1].astype(np.float32) + 1


@pytest.mark.parametrize("stage", ["raw", "prc"])
@pytest.mark.parametrize(
    ("game", "network", "number"),
    [
        ("Breakout", "cnn_sparse_fls", 9901),
        ("Breakout", "cnn_daqn", 9903),
        ("MsPacman", "cnn_sparse_fls", 9902),
    ],
)
def test_the_originals_maps_get_the_originals_scores(
    game: str, network: str, number: int, stage: str
) -> None:
    golden = np.load(GOLDEN / "intermediates" / f"{game}.{network}.{number}.npz")
    agent = FakeAgent(golden["sal"])
    how = settings(processed=stage == "prc", alignment="original")
    ref = next(ref for ref in find_trials(TRIALS, game) if ref.number == number)
    with open_trial(ref) as trial:
        scores = score_trial(agent, trial, how)
    assert np.array_equal(agent.seen, golden["prc"])
    key = "prc_fix" if stage == "prc" else "raw_fix"
    assert scores.num_fixations.tolist() == golden[key].sum(axis=(1, 2)).tolist()
    expected = golden_metrics(game, network, stage)[number]
    assert scores.metrics.nss == pytest.approx(expected["nss"], abs=1e-6, nan_ok=True)
    assert scores.metrics.kldiv == pytest.approx(expected["kldiv"], abs=1e-6, nan_ok=True)
    assert scores.metrics.sauc == pytest.approx(expected["sauc"], abs=1e-3, nan_ok=True)


def test_attention_that_follows_the_gaze_scores_well_and_the_right_gaze_better() -> None:
    numbers = range(1, 120)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    by_alignment = {}
    for alignment in ("frames", "original"):
        agent = FakeAgent(lambda obs: (obs == 250).mean(axis=-1) + 0.01)
        scores = score_trial(agent, trial, settings(alignment=alignment))
        by_alignment[alignment] = scores.metrics
    assert np.nanmean(by_alignment["frames"].nss) > np.nanmean(by_alignment["original"].nss) > 1
    assert np.nanmean(by_alignment["frames"].sauc) > 0.9
    assert np.isfinite(by_alignment["frames"].nss).all()
    assert by_alignment["original"].dropped["nss"] == {"no_fixation": 1}


def test_gaze_in_the_top_right_corner_meets_attention_there_only() -> None:
    numbers = range(1, 42)
    corner = {n: np.array([[155.0, 4.0]]) for n in numbers}
    trial: Any = FakeTrial(numbers, corner)
    for processed in (False, True):
        means = []
        for rows, columns in ((slice(12), slice(72, 84)), (slice(72, 84), slice(12))):
            attention = np.full((84, 84), 0.1)
            attention[rows, columns] = 1
            agent = FakeAgent(lambda obs, drawn=attention: np.broadcast_to(drawn, obs.shape[:3]))
            metrics = score_trial(agent, trial, settings(processed=processed)).metrics
            means.append(metrics.nss.mean())
        assert means[0] > 5
        assert means[1] < 0


def test_scores_are_of_the_frames_numbers_when_some_are_missing() -> None:
    numbers = [101, 102, 105, 106, 107, 108, 109, 120, 121, 122]
    trial: Any = FakeTrial(numbers, square_gaze(range(90, 130)))
    scores = score_trial(FakeAgent(newest_frame), trial, SETTINGS)
    assert scores.frame_numbers.tolist() == [101, 107, 121]
    assert scores.num_fixations.tolist() == [20, 60, 100]
    assert scores.example.frame_number == 121
    assert scores.example.picture.shape == (210, 160, 3)
    assert scores.example.saliency.max() <= 1


def test_scores_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(1, 62)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    first = score_trial(FakeAgent(newest_frame), trial, SETTINGS).metrics
    monkeypatch.setattr("fl_saliency.atari_head.benchmark.BATCH", 4)
    agent = FakeAgent(newest_frame)
    second = score_trial(agent, trial, SETTINGS).metrics
    assert len(agent.seen) == 15
    for name in ("nss", "kldiv", "sauc"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_maps_that_are_constant_zero_or_not_finite_are_dropped_and_counted() -> None:
    numbers = range(1, 14)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    ramp = np.linspace(0.1, 1, 84 * 84).reshape(84, 84)
    maps = np.stack([ramp, np.full((84, 84), 0.3), np.where(ramp > 0.9, np.nan, ramp)])
    scores = score_trial(FakeAgent(maps), trial, SETTINGS)
    assert scores.metrics.dropped["nss"] == {"constant_map": 1, "map_not_finite": 1}
    assert scores.metrics.dropped["kldiv"] == {"map_not_finite": 1}
    nothing = score_trial(FakeAgent(maps * 0), trial, SETTINGS)
    assert np.isnan(nothing.metrics.kldiv).all()
    assert nothing.metrics.dropped["kldiv"] == {"zero_under_gaze": 2, "map_not_finite": 1}


@pytest.mark.parametrize("saliency", [("attention",), ("perturbation", "centre", "human")])
def test_progress_counts_every_map_that_is_made_or_scored(saliency: tuple[str, ...]) -> None:
    numbers = range(1, 42)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    steps: list[int] = []
    how = settings(saliency=saliency, baselines=False, options=MethodOptions(stride=28))
    score_trial(FakeAgent(newest_frame), trial, how, progress=steps.append)
    assert sum(steps) == num_steps(trial, how)
    assert num_steps(trial, SETTINGS) == 10 * (1 + 1)


def test_memory_does_not_grow_with_the_trial() -> None:
    def peak(frames: int) -> int:
        trial: Any = FakeTrial(range(1, frames), {n: np.ones((4, 2)) for n in range(1, frames)})
        tracemalloc.start()
        try:
            score_trial(FakeAgent(newest_frame, keep=False), trial, SETTINGS)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(20)  # what is imported or cached at first use
    short, long = peak(300), peak(700)
    # 100 further maps at 210x160 would be 27 MB, their observations or processed maps 2.8 MB.
    assert long - short < 1e6


def test_a_network_without_attention_is_an_error_that_says_what_serves() -> None:
    trial: Any = FakeTrial(range(1, 9), square_gaze(range(1, 9)))
    agent = FakeAgent(newest_frame, geometry=None)
    with pytest.raises(
        InputError, match=r"'cnn_fake' has no built-in attention; .* perturbation, "
    ):
        score_trial(agent, trial, SETTINGS)


@pytest.mark.parametrize(
    ("numbers", "gaze", "reason"),
    [
        ([1], {1: np.ones((3, 2))}, "too short to play back (1 frame, at least 2 are needed)"),
        ([1, 2, 3, 4, 5, 6], {}, "no gaze on any frame that the network sees"),
        ([1, 2, 3, 4, 5, 6], {3: np.ones((3, 2))}, "no gaze on any frame"),
        ([1, 2, 3, 4, 5, 6], {1: np.array([[-9.0, 5.0]])}, "no gaze on any frame"),
    ],
)
def test_a_trial_that_cannot_be_scored_is_an_error(
    numbers: list[int], gaze: dict[int, Any], reason: str
) -> None:
    trial: Any = FakeTrial(numbers, gaze)
    with pytest.raises(TrialError, match="trial 7_RZ_42 ") as caught:
        score_trial(FakeAgent(newest_frame), trial, SETTINGS)
    assert reason in str(caught.value)


def test_broken_and_absent_trials_are_skipped_and_the_others_scored(tmp_path: Path) -> None:
    write_flat(tmp_path, numbers=range(1, 10))
    meta = [FLAT_META, *(f"Breakout,{n},RZ,9,1.0" for n in (7, 8, 9, 10, 11))]
    (tmp_path / "meta_data.csv").write_text("\n".join(meta) + "\n")
    labels = label_text([label_row(n) for n in range(1, 10)])
    for name in ("8_RZ_42_x", "9_RZ_42_x", "10_RZ_42_x"):
        (tmp_path / f"{name}.txt").write_text(labels)
    files = frame_files(range(1, 10), "8_RZ_42_x")
    files[6] = (files[6][0], files[6][1][:50])  # frame 7 is truncated
    (tmp_path / "8_RZ_42_x.tar.bz2").write_bytes(tar_bytes(files))
    (tmp_path / "9_RZ_42_x.tar.bz2").write_bytes(
        tar_bytes(frame_files(range(1, 10), "9_RZ_42_x"))[:200]
    )
    refs = find_trials(tmp_path, "breakout")
    begun: list[int] = []

    def progress(trial: Any) -> Any:
        begun.append(trial.ref.number)
        return lambda steps: None

    results = list(score_trials(FakeAgent(newest_frame), refs, SETTINGS, progress=progress))
    assert isinstance(results[0], TrialScores)
    assert results[0].ref.number == 7
    skipped = [result for result in results[1:] if isinstance(result, SkippedTrial)]
    assert [trial.ref.number for trial in skipped] == [8, 9, 10, 11]
    assert [trial.absent for trial in skipped] == [False, False, False, True]
    assert "RZ_42_7.png" in skipped[0].reason
    assert "archive cannot be found" in skipped[2].reason
    assert 7 in begun
    assert 10 not in begun


def test_odd_rows_of_a_recording_do_not_shift_its_gaze(tmp_path: Path) -> None:
    """Frame 4 has no picture, 3 null gaze, 5 a point off the screen and a second row, 9 no row."""
    rows = {n: label_row(n, f"{10.0 * n},{20.0 * n}") for n in (1, 2, 4, 6, 7, 8, 20)}
    rows[3] = label_row(3, "null")
    rows[5] = label_row(5, "50.00,100.00,170.00,-3.00")
    extra = label_row(5, "1.00,1.00")
    write_flat(tmp_path, numbers=[1, 2, 3, 5, 6, 7, 8, 9], rows=[*rows.values(), extra])
    (ref,) = find_trials(tmp_path, "breakout")
    with open_trial(ref) as trial:
        scores = score_trial(FakeAgent(newest_frame), trial, SETTINGS)
    # Positions 0, 3 and 4: frames 1, 5 and 6.
    assert scores.frame_numbers.tolist() == [1, 6]
    assert scores.num_fixations.tolist() == [1, 3]
    assert scores.example.decision == 1
    points = np.argwhere(scores.example.fixations.counts())
    assert points.tolist() == [[20, 10], [100, 50], [120, 60]]
    assert scores.audit.missing == 1
    assert scores.audit.duplicates == 1
