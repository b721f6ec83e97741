"""Several methods scored side by side on one playback of a trial."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.atari_head.benchmark import (
    BenchmarkSettings,
    TrialScores,
    score_trial,
    score_trials,
)
from fl_saliency.atari_head.prior import OTHER_HALF, OTHER_TRIALS
from fl_saliency.atari_head.reader import find_trials
from fl_saliency.atari_head.settings import ALL_BASELINES
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.errors import InputError
from fl_saliency.metrics.mit import MIT_METRICS
from fl_saliency.metrics.paper import METRICS
from fl_saliency.saliency.options import MethodOptions
from tests.atari_head.gaze_fakes import FakeAgent, FakeTrial, square_gaze
from tests.atari_head.makers import FLAT_META, frame_files, label_row, label_text, tar_bytes

PROTOCOL = resolve_protocol("BreakoutNoFrameskip-v4")
COARSE = MethodOptions(stride=28)


def settings(*saliency: str, **changes: Any) -> BenchmarkSettings:
    base = {"protocol": PROTOCOL, "saliency": saliency, "processed": True, "options": COARSE}
    return BenchmarkSettings(**(base | changes))


def bright(obs: Any) -> Any:
    return (obs == 250).mean(axis=-1) + 0.01


def scored(how: BenchmarkSettings, *, frames: int = 60, **more: Any) -> TrialScores:
    numbers = range(1, frames)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    return score_trial(FakeAgent(bright), trial, how, **more)


def by_name(scores: TrialScores) -> dict[str, Any]:
    return {method.name: method for method in scores.methods}


def test_all_methods_are_scored_on_one_playback_in_the_order_asked_for() -> None:
    numbers = range(1, 60)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    agent = FakeAgent(bright)
    scores = score_trial(agent, trial, settings("perturbation", "attention"))
    names = [method.name for method in scores.methods]
    assert names == ["perturbation", "attention", *ALL_BASELINES]
    assert len(agent.seen) == len(scores.frame_numbers) == 15
    assert scores.metrics is scores.methods[0].paper
    for method in scores.methods:
        for name in METRICS:
            assert getattr(method.paper, name).shape == (15,)
        for name in MIT_METRICS:
            assert getattr(method.mit, name).shape == (15,)
    assert [method.target for method in scores.methods[:3]] == ["action", "none", "none"]


def test_attention_has_the_same_scores_alone_and_beside_others() -> None:
    alone = scored(settings("attention")).methods[0]
    beside = by_name(scored(settings("centre", "attention", "perturbation")))["attention"]
    for name in METRICS:
        assert np.array_equal(getattr(alone.paper, name), getattr(beside.paper, name))
    for name in MIT_METRICS:
        assert np.array_equal(getattr(alone.mit, name), getattr(beside.mit, name))


def test_scores_come_out_as_the_maps_deserve() -> None:
    found = by_name(scored(settings("attention")))
    found |= by_name(scored(settings("perturbation"), frames=120))
    nss = {name: np.nanmean(each.mit.nss) for name, each in found.items()}
    assert nss["uniform"] == 0
    assert abs(nss["random"]) < 0.1
    assert nss["attention"] > 1 > nss["centre"]
    assert nss["human"] > nss["centre"]
    assert np.nanmean(found["human"].mit.sauc) > 0.6  # the gaze moves far in a decision
    assert np.abs(found["mean_gaze"].mit.ig).max() < 1e-9
    assert np.nanmean(found["attention"].mit.ig) > np.nanmean(found["random"].mit.ig)


def test_a_constant_map_is_dropped_and_counted_by_one_convention_and_chance_by_the_other() -> None:
    uniform = by_name(scored(settings("uniform", baselines=False)))["uniform"]
    assert uniform.paper.dropped["nss"] == {"constant_map": 15}
    assert np.isnan(uniform.paper.nss).all()
    assert uniform.mit.dropped["nss"] == {}
    assert uniform.mit.auc_judd.tolist() == [0.5] * 15


def test_maps_that_are_not_finite_are_dropped_and_counted_by_both() -> None:
    numbers = range(1, 14)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    maps = np.random.default_rng(0).uniform(0.1, 1, (3, 84, 84))
    maps[1, 2, 3] = np.nan
    method = score_trial(FakeAgent(maps), trial, settings("attention")).methods[0]
    assert method.paper.dropped["nss"] == method.mit.dropped["ig"] == {"map_not_finite": 1}
    assert np.isfinite(method.mit.ig).tolist() == [True, False, True]


def test_the_agents_best_action_is_explained() -> None:
    def scores(obs: Any) -> Any:
        brightness = obs[..., -1].astype(np.float32).reshape(len(obs), -1).mean(axis=1)
        return np.stack([np.zeros_like(brightness), np.ones_like(brightness) + brightness], axis=1)

    numbers = range(1, 30)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    found = []
    for target in ("action", "action:1", "action:0"):
        agent = FakeAgent(bright)
        agent.num_actions = 2
        agent.scores = scores  # type: ignore[method-assign]
        options = MethodOptions(stride=28, target=target)
        how = settings("perturbation", baselines=False, options=options)
        found.append(score_trial(agent, trial, how).metrics.nss)
    assert np.array_equal(found[0], found[1])
    assert np.isnan(found[2]).all()  # nothing changes action 0


def test_methods_without_a_target_ask_for_no_action() -> None:
    numbers = range(1, 30)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    agent = FakeAgent(bright)
    score_trial(agent, trial, settings("attention", baselines=True))
    assert agent.scored == 0


def test_a_network_without_attention_is_scored_by_other_methods() -> None:
    numbers = range(1, 30)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    agent = FakeAgent(bright, geometry=None)
    scores = score_trial(agent, trial, settings("perturbation"))
    assert np.isfinite(scores.metrics.nss).any()
    with pytest.raises(InputError, match="method 'attention': network 'cnn_fake' has no built-in"):
        score_trial(agent, trial, settings("perturbation", "attention"))


def test_methods_that_are_made_of_gaze_alone_ask_no_agent() -> None:
    numbers = range(1, 60)
    trial: Any = FakeTrial(numbers, square_gaze(numbers))
    agent = FakeAgent(bright)
    scores = score_trial(agent, trial, settings("human", "mean_gaze", baselines=False))
    assert [method.name for method in scores.methods] == ["human", "mean_gaze"]
    assert agent.seen == []


def test_gaze_that_is_shifted_is_that_of_the_frame_before_and_after() -> None:
    numbers = range(1, 60)
    gaze = square_gaze(range(62))
    agent, how = FakeAgent(bright), settings("attention")
    trial: Any = FakeTrial(numbers, gaze)
    method = score_trial(agent, trial, how).methods[0]
    assert sorted(method.shifted) == [-1, 1]
    for shift, found in method.shifted.items():
        moved: Any = FakeTrial(numbers, {n: gaze[n + shift] for n in numbers if n + shift in gaze})
        expected = score_trial(FakeAgent(bright), moved, how).metrics
        for name in METRICS:
            assert np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
    assert np.nanmean(method.paper.nss) > np.nanmean(method.shifted[-1].nss)


def test_human_gaze_is_judged_by_the_later_half_of_its_own_samples() -> None:
    numbers = range(1, 10)
    gaze = {1: np.array([[10.0, 10.0], [10.0, 10.0], [150.0, 200.0]]), 5: np.zeros((1, 2)) + 80}
    trial: Any = FakeTrial(numbers, gaze)
    scores = score_trial(FakeAgent(bright), trial, settings("human", processed=False))
    human = scores.methods[0]
    # Decision 0: one early sample, two late ones, one of them far away. Decision 1: 2 and 2.
    assert scores.num_fixations.tolist() == [3, 4]
    assert human.num_fixations.tolist() == [2, 2]
    assert human.paper.nss[0] > 5
    alone: Any = FakeTrial(numbers, {5: np.zeros((1, 2)) + 80})
    human = score_trial(FakeAgent(bright), alone, settings("human")).methods[0]
    assert human.paper.dropped["nss"] == {"no_fixation": 2}


def test_mean_gaze_comes_from_the_other_trials_and_from_the_other_half_of_a_single_one(
    tmp_path: Path,
) -> None:
    meta = [FLAT_META, *(f"Breakout,{n},RZ,9,1.0" for n in (1, 2))]
    (tmp_path / "meta_data.csv").write_text("\n".join(meta) + "\n")
    for number, gaze in ((1, "20.00,30.00"), (2, "140.00,180.00")):
        name = f"{number}_RZ_42_x"
        rows = [label_row(n, gaze) for n in range(1, 10)]
        (tmp_path / f"{name}.txt").write_text(label_text(rows))
        (tmp_path / f"{name}.tar.bz2").write_bytes(tar_bytes(frame_files(range(1, 10), name)))
    refs = find_trials(tmp_path, "breakout")
    how = settings("mean_gaze", baselines=False)
    both = list(score_trials(FakeAgent(bright), refs, how))
    assert all(isinstance(result, TrialScores) for result in both)
    assert [result.prior for result in both] == [OTHER_TRIALS] * 2  # type: ignore[union-attr]
    assert both[0].metrics.nss.max() < 0  # type: ignore[union-attr]
    (alone,) = score_trials(FakeAgent(bright), refs[:1], how)
    assert isinstance(alone, TrialScores)
    assert alone.prior == OTHER_HALF


def test_best_median_and_worst_frames_are_kept_of_the_agents_methods_if_asked_for() -> None:
    how = settings("attention", "centre", "human", processed=False, baselines=False)
    scores = scored(how, frames=60, keep_frames=True)
    attention, centre, human = scores.methods[:3]
    nss = attention.paper.nss
    best, median, worst = (frame.decision for frame in attention.frames)
    assert nss[best] == np.nanmax(nss)
    assert nss[worst] == np.nanmin(nss)
    assert nss[worst] < nss[median] < nss[best]
    for frame in attention.frames:
        assert frame.frame_number == scores.frame_numbers[frame.decision]
        assert frame.picture.shape == (210, 160, 3)
        row, column = 5 * frame.frame_number % 180, 3 * frame.frame_number % 130
        assert (frame.picture[row : row + 30, column : column + 30] == 250).all()
        assert frame.saliency.shape == (210, 160)
        assert frame.fixations.total == scores.num_fixations[frame.decision]
    assert centre.frames == human.frames == ()
    assert all(method.frames == () for method in scored(how).methods)
    assert scored(how, keep_frames=True).example.decision == scored(how).example.decision


def test_memory_does_not_grow_with_the_trial_whatever_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fl_saliency.atari_head.benchmark.BATCH", 8)

    def peak(frames: int) -> int:
        numbers = range(1, frames)
        trial: Any = FakeTrial(numbers, {n: np.ones((4, 2)) for n in numbers})
        agent = FakeAgent(bright, keep=False)
        tracemalloc.start()
        try:
            score_trial(
                agent,
                trial,
                settings("attention", "perturbation", "random", "human", baselines=False),
                keep_frames=True,
                scratch=tmp_path,
            )
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(20)  # what is imported or cached at first use
    short, long = peak(100), peak(240)
    # The further 35 decisions' maps would be 1 MB for each method, their screens 3.5 MB.
    assert long - short < 1e6
    assert list(tmp_path.iterdir()) == []
