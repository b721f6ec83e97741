import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fl_saliency.atari_head.fixations import (
    PROCESSED_SHAPE,
    SCREEN_SHAPE,
    decision_fixations,
    gaze_to_fixations,
    label_numbers,
    num_decisions,
    seen_positions,
)
from fl_saliency.atari_head.reader import find_trials, open_trial
from fl_saliency.errors import InputError

GOLDEN = Path(__file__).parents[1] / "golden" / "atari_head"
ALIGNMENT = json.loads((GOLDEN / "frame_alignment.json").read_text())


def steps() -> list[Any]:
    return [
        pytest.param(step, id=f"{frames}-{step['t']}")
        for frames, golden in ALIGNMENT.items()
        for step in golden["steps"]
    ]


@pytest.mark.parametrize("step", steps())
def test_seen_frames_and_original_labels_equal_the_original(step: dict[str, Any]) -> None:
    channels = step["channels_png(oldest..newest)"]
    seen = seen_positions(step["t"])
    assert [position + 1 for position in seen] == list(chain.from_iterable(channels))
    assert [seen[-1] + 1] == step["raw_rendered_png"]
    labels = label_numbers(seen, np.arange(1, 60), "original")
    assert labels == step["fixations_taken_from_label_rows(frame number)"]
    assert label_numbers(seen, np.arange(1, 60), "frames") == list(chain.from_iterable(channels))


@pytest.mark.parametrize("num_frames", sorted(ALIGNMENT))
def test_number_of_decisions_equals_the_original(num_frames: str) -> None:
    assert num_decisions(int(num_frames)) == ALIGNMENT[num_frames]["n_model_steps"]


def test_playbacks_that_are_too_short_have_no_decision() -> None:
    assert [num_decisions(n) for n in (0, 1, 2, 5, 6)] == [0, 0, 1, 1, 2]


def test_other_skips_and_stacks() -> None:
    assert seen_positions(3, frame_skip=1, stack=2) == [2, 3]
    assert seen_positions(2, frame_skip=2, stack=3) == [0, 1, 2, 3, 4]
    assert num_decisions(5, frame_skip=1) == 4


@pytest.mark.parametrize(
    ("game", "network", "number"),
    [
        ("Breakout", "cnn_sparse_fls", 9901),
        ("MsPacman", "cnn_sparse_fls", 9902),
        ("Breakout", "cnn_daqn", 9903),
    ],
)
def test_maps_equal_the_original(game: str, network: str, number: int) -> None:
    golden = np.load(GOLDEN / "intermediates" / f"{game}.{network}.{number}.npz")
    ref = next(ref for ref in find_trials(GOLDEN / "trials", game) if ref.number == number)
    with open_trial(ref) as trial:
        for shape, key in ((SCREEN_SHAPE, "raw_fix"), (PROCESSED_SHAPE, "prc_fix")):
            fixations = decision_fixations(
                trial.gaze, trial.frame_numbers, alignment="original", shape=shape
            )
            maps = np.array([points.counts() for points in fixations])
            assert np.array_equal(maps, golden[key])


def test_gaze_is_rounded_half_to_even_and_dropped_off_the_screen() -> None:
    gaze = [(-0.5, 0), (-0.51, 0), (159.5, 0), (159.49, 209.49), (0, 209.5), (80.5, 101.5)]
    counts = gaze_to_fixations(np.array(gaze)).counts()
    assert np.argwhere(counts).tolist() == [[0, 0], [102, 80], [209, 159]]
    assert counts.sum() == 3


def test_gaze_on_the_processed_frame_is_scaled_before_it_is_rounded() -> None:
    counts = gaze_to_fixations(np.array([[159.0, 209.0], [100.0, 1.25]]), (84, 84)).counts()
    # 1.25 is 0.5 there; 209 is 83.6, which rounds to 84 and is off the map.
    assert np.argwhere(counts).tolist() == [[0, 52]]
    assert counts.sum() == 1


def test_missing_gaze_is_no_fixation() -> None:
    assert gaze_to_fixations(np.zeros((0, 2))).total == 0
    assert gaze_to_fixations(np.array([[np.nan, 3.0], [np.inf, 3.0]])).total == 0


def test_gaze_in_the_top_right_corner_stays_there() -> None:
    gaze = {n: np.array([[155.0, 4.0]]) for n in range(1, 10)}
    for shape, corner in ((SCREEN_SHAPE, (4, 155)), (PROCESSED_SHAPE, (2, 81))):
        for points in decision_fixations(gaze, np.arange(1, 10), alignment="frames", shape=shape):
            assert {tuple(at) for at in np.argwhere(points.counts())} == {corner}


def test_alignment_goes_by_number_not_by_position() -> None:
    # Frames 103 and 104 are missing; each frame's gaze is in the column of its number's last digit.
    numbers = np.array([101, 102, 105, 106, 107, 108, 109])
    gaze = {n: np.array([[n % 10, 0.0]]) for n in range(90, 120)}

    def columns(alignment: Any) -> list[list[int]]:
        found = decision_fixations(gaze, numbers, alignment=alignment)
        return [sorted(np.flatnonzero(points.counts()[0]).tolist()) for points in found]

    # Decision 1 sees positions 3 and 4, frames 106 and 107, and frame 101 below it in the stack.
    assert columns("frames") == [[1], [1, 6, 7]]
    assert columns("original") == [[], [5, 6]]


def test_a_sample_counts_as_often_as_its_frame_was_seen() -> None:
    gaze = {1: np.array([[5.0, 5.0], [5.0, 5.0]]), 4: np.array([[5.0, 5.0]])}
    found = decision_fixations(gaze, np.arange(1, 30), alignment="frames")
    assert [points.total for points in found] == [2, 3, 3, 3, 1, 0, 0]
    assert found[1].counts()[5, 5] == 3


def test_an_unknown_alignment_names_the_nearest() -> None:
    wrong: Any = "frame"
    with pytest.raises(InputError, match="unknown gaze alignment 'frame'; did you mean 'frames'"):
        label_numbers([0], np.arange(3), wrong)
