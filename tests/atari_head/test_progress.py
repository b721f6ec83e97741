from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.atari_head.benchmark import BenchmarkSettings, TrialScores, score_trials
from fl_saliency.atari_head.progress import TrialStore
from fl_saliency.atari_head.reader import find_trials
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.errors import InputError
from fl_saliency.saliency.options import MethodOptions
from tests.atari_head.gaze_fakes import TRIALS, FakeAgent

JOB = {"network": "cnn_fake", "methods": ("attention", "perturbation")}
SETTINGS = BenchmarkSettings(
    protocol=resolve_protocol("BreakoutNoFrameskip-v4"),
    processed=True,
    saliency=("attention", "perturbation"),
    options=MethodOptions(stride=28),
)
REFS = [ref for ref in find_trials(TRIALS, "breakout") if not ref.absent]


def scores() -> list[TrialScores]:
    agent = FakeAgent(lambda obs: obs[..., -1].astype(np.float32) + 1)
    results = list(score_trials(agent, REFS, SETTINGS))
    assert all(isinstance(result, TrialScores) for result in results)
    return results  # type: ignore[return-value]


@pytest.fixture(scope="module")
def scored() -> list[TrialScores]:
    return scores()


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if is_dataclass(expected):
        for field in fields(expected):
            assert_same(getattr(found, field.name), getattr(expected, field.name))
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, Mapping):
        assert list(found) == list(expected)
        assert_same(list(found.values()), list(expected.values()))
    else:
        assert found == expected


def test_a_scored_trial_comes_back_with_all_methods_and_frames(
    tmp_path: Path, scored: list[TrialScores]
) -> None:
    for each in scored:
        TrialStore(tmp_path, JOB, REFS).add(each)
    found = TrialStore(tmp_path, JOB, REFS).find()
    assert sorted(found) == [9901, 9903]
    for each in scored:
        assert_same(found[each.ref.number], each)
    assert len(scored[0].methods[1].frames) == 3
    assert scored[1].methods[1].frames == ()


def test_scores_of_other_methods_are_refused(tmp_path: Path, scored: list[TrialScores]) -> None:
    TrialStore(tmp_path, JOB, REFS).add(scored[0])
    other = JOB | {"methods": ("attention",)}
    with pytest.raises(InputError, match="an unfinished job with other settings"):
        TrialStore(tmp_path, other, REFS).find()


def test_scores_whose_mean_gaze_came_from_other_trials_are_scored_again(
    tmp_path: Path, scored: list[TrialScores]
) -> None:
    TrialStore(tmp_path, JOB, REFS).add(scored[0])
    store = TrialStore(tmp_path, JOB, REFS[:1])
    assert store.find() == {}
    store.add(scored[0])
    assert list(store.find()) == [REFS[0].number]
    store.remove()
    assert not tmp_path.exists()


def test_a_damaged_trial_is_scored_again(tmp_path: Path, scored: list[TrialScores]) -> None:
    store = TrialStore(tmp_path, JOB, REFS)
    store.add(scored[0])
    (file,) = tmp_path.rglob("arrays.safetensors")
    file.write_bytes(file.read_bytes()[:-9])
    assert store.find() == {}
    store.add(scored[0])
    assert list(store.find()) == [scored[0].ref.number]
