"""Stand-ins for agents and trials, and the golden numbers, for the tests of the benchmark."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fl_saliency.atari_head.audit import TrialAudit
from fl_saliency.atari_head.reader import TrialRef
from fl_saliency.base import AttentionGeometry, FloatArray, PolicyStep, UInt8Array

GOLDEN = Path(__file__).parents[1] / "golden" / "atari_head"
TRIALS = GOLDEN / "trials"
PIXELS = AttentionGeometry(receptive_field=1, stride=1, padding=0)
"""Attention that is already a map over the input."""


def golden_metrics(game: str, network: str, stage: str) -> dict[int, dict[str, FloatArray]]:
    """The original's metrics by trial number, NaN where it had none."""
    text = (GOLDEN / f"saliency.{game}.{network}.{stage}.json").read_text()
    return {
        record["trial_number"]: {
            name: np.array(values, float) for name, values in record["metrics"].items()
        }
        for record in json.loads(text)["records"]
    }


class FakeAgent:
    """Answers with attention that is a function of the observations, or a recorded one.

    Its scores are the mean grey levels of four columns of the newest frame: a blur changes them.
    """

    name = "cnn_fake"
    num_actions = 4
    layers: Mapping[str, tuple[int, ...]] = {}
    feature_layer = None
    pools = False

    def __init__(
        self, attention: Any, geometry: AttentionGeometry | None = PIXELS, keep: bool = True
    ) -> None:
        self.geometry = geometry
        self.seen: list[UInt8Array] = []
        self.scored = 0
        self._attention = attention
        self._keep = keep

    def attention(self, obs: UInt8Array) -> FloatArray:
        if self._keep:
            self.seen.extend(obs)
        if callable(self._attention):
            return np.asarray(self._attention(obs), np.float32)
        end = len(self.seen)
        return np.asarray(self._attention[end - len(obs) : end], np.float32)

    def step(self, obs: UInt8Array) -> PolicyStep:
        raise AssertionError("a recording is played back: nothing may act")

    def scores(self, obs: UInt8Array) -> FloatArray:
        self.scored += len(obs)
        return np.asarray(obs[..., -1].reshape(len(obs), 84, 4, 21).mean(axis=(1, 3)), np.float32)

    def value(self, obs: UInt8Array) -> FloatArray:
        raise AssertionError("not asked for")


class FakeTrial:
    """A trial of synthetic frames: a bright square that moves, and the gaze that it is given."""

    def __init__(self, numbers: range | list[int], gaze: Mapping[int, FloatArray]) -> None:
        self.ref = TrialRef(
            number=7, name="7_RZ_42", game="breakout", labels=Path("a"), archive=Path("b")
        )
        self.frame_numbers = np.array(numbers)
        self.gaze = gaze
        self.audit = TrialAudit(trial=7, name="7_RZ_42", game="breakout")

    def frames(self) -> Iterator[tuple[int, UInt8Array]]:
        for number in self.frame_numbers.tolist():
            frame = np.full((210, 160, 3), 20, np.uint8)
            row, column = 5 * number % 180, 3 * number % 130
            frame[row : row + 30, column : column + 30] = 250
            yield number, frame


def square_gaze(numbers: range) -> dict[int, FloatArray]:
    """Twenty samples in the square of each frame of a FakeTrial."""
    rng = np.random.default_rng(0)
    return {n: rng.uniform(0, 29, (20, 2)) + np.array([3 * n % 130, 5 * n % 180]) for n in numbers}
