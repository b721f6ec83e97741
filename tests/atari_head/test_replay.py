import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.atari_head.reader import find_trials, open_trial
from fl_saliency.atari_head.replay import observe, play_back
from fl_saliency.base import UInt8Array
from fl_saliency.envs.protocol import resolve_protocol

GOLDEN = Path(__file__).parents[1] / "golden" / "atari_head"
BREAKOUT = resolve_protocol("BreakoutNoFrameskip-v4")
PACMAN = resolve_protocol("MsPacmanNoFrameskip-v4")


@pytest.mark.parametrize(
    ("game", "network", "number"),
    [
        ("Breakout", "cnn_sparse_fls", 9901),
        ("MsPacman", "cnn_sparse_fls", 9902),
        ("Breakout", "cnn_sparse_fls", 9903),
    ],
)
def test_observations_and_screens_equal_the_original(game: str, network: str, number: int) -> None:
    path = GOLDEN / "intermediates" / f"{game}.{network}.{number}"
    arrays, steps = np.load(f"{path}.npz"), json.loads(Path(f"{path}.json").read_text())["steps"]
    protocol = PACMAN if game == "MsPacman" else BREAKOUT
    ref = next(ref for ref in find_trials(GOLDEN / "trials", game) if ref.number == number)
    with open_trial(ref) as trial:
        decisions = list(play_back(trial.frames(), protocol))
    observations = np.stack([decision.observation for decision in decisions])
    assert np.array_equal(observations, arrays["prc"])
    for step, decision in zip(steps, decisions, strict=True):
        assert step["t"] == decision.index
        assert decision.frame_number == 4 * decision.index + 1
        digest = hashlib.sha256(np.ascontiguousarray(decision.screen).tobytes()).hexdigest()
        assert digest[:16] == step["raw_sha16"]


def frames(numbers: range, drawn: list[int]) -> Iterator[tuple[int, UInt8Array]]:
    for number in numbers:
        drawn.append(number)
        yield number, np.full((210, 160, 3), number, np.uint8)


def test_frames_are_drawn_as_they_are_needed() -> None:
    drawn: list[int] = []
    decisions = play_back(frames(range(10, 60), drawn), BREAKOUT)
    assert drawn == []
    assert [next(decisions).frame_number for _ in range(3)] == [10, 14, 18]
    assert len(drawn) <= 10
    decisions.close()


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 1), (5, 1), (6, 2), (53, 13)])
def test_the_frame_that_ends_the_playback_brings_no_decision(count: int, expected: int) -> None:
    assert len(list(play_back(frames(range(count), []), BREAKOUT))) == expected


def test_the_pair_before_a_decision_is_pooled_and_the_rest_is_not_seen() -> None:
    bright = np.zeros((210, 160, 3), np.uint8)
    bright[:] = 200
    dark = np.zeros_like(bright)
    for shown, seen in ((2, False), (3, True), (4, True), (5, False)):
        recording = [(n, bright if n == shown else dark) for n in range(8)]
        newest = list(play_back(recording, BREAKOUT))[1].observation[..., -1]
        assert (newest.max() == 200) == seen


def test_the_order_of_maximum_and_grey_is_the_protocols() -> None:
    red, green = np.zeros((2, 210, 160, 3), np.uint8)
    red[..., 0], green[..., 1] = 255, 255
    assert observe([red, green], PACMAN)[0, 0] == 226  # 0.299 and 0.587 of 255, together
    assert observe([red, green], replace(PACMAN, max_pool="grey"))[0, 0] == 150
    assert observe([red], PACMAN)[0, 0] == observe([red], replace(PACMAN, max_pool="grey"))[0, 0]
