"""Scores a network's attention against people's gaze: the benchmark of Nikulin et al. 2019.

Each trial is played back to the network; its attention at every decision is drawn over the frame
and compared with the fixations on the frames that it saw, by the `paper` metrics.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from fl_saliency.atari_head.audit import TrialAudit
from fl_saliency.atari_head.fixations import (
    PROCESSED_SHAPE,
    SCREEN_SHAPE,
    Alignment,
    decision_fixations,
)
from fl_saliency.atari_head.reader import Trial, TrialError, TrialRef, open_trial
from fl_saliency.atari_head.replay import Decision, play_back
from fl_saliency.base import Agent, AttentionGeometry, FloatArray, IntArray, UInt8Array
from fl_saliency.envs.protocol import Protocol
from fl_saliency.errors import InputError
from fl_saliency.metrics.fixation import Fixations
from fl_saliency.metrics.paper import SEED, SequenceScores, score_sequence
from fl_saliency.render.overlay import attention_to_input, normalise, upscale
from fl_saliency.render.spool import ArraySpool

__all__ = [
    "BenchmarkSettings",
    "Example",
    "SkippedTrial",
    "TrialScores",
    "attention_geometry",
    "score_trial",
    "score_trials",
]

BATCH = 64
"""Decisions in one call of the network."""

Progress = Callable[[int], object]
"""Told of that many further steps: every decision is one to replay and one to score."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkSettings:
    """What a score depends on besides the network and the trial."""

    protocol: Protocol
    """The preprocessing that the network was trained with; no-ops and FIRE play no part."""
    processed: bool = False
    """Compare on the network's 84x84 input instead of the 210x160 screen."""
    alignment: Alignment = "frames"
    seed: int = SEED
    """Of the shuffled AUC's draws."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the maps that are compared."""
        return PROCESSED_SHAPE if self.processed else SCREEN_SHAPE

    @property
    def sigma(self) -> float:
        """Blur of the fixations for KL, in pixels of those maps."""
        return 2.0 if self.processed else 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """One decision to show, on the frame that was compared."""

    decision: int
    frame_number: int
    picture: UInt8Array
    """The screen [210, 160, 3], or the newest 84x84 frame [84, 84]."""
    saliency: FloatArray
    """[H, W], 0..1 over the trial."""
    fixations: Fixations


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialScores:
    """The scores of one trial's T decisions."""

    ref: TrialRef
    metrics: SequenceScores
    """Each float64 [T], NaN where undefined."""
    frame_numbers: IntArray
    """The newest frame at each decision, int [T]."""
    num_fixations: IntArray
    """Fixations at each decision, int [T]."""
    audit: TrialAudit
    example: Example


@dataclass(frozen=True, kw_only=True)
class SkippedTrial:
    """A trial without scores."""

    ref: TrialRef
    reason: str
    """One line, which names the trial."""
    absent: bool = False
    """It is not broken: meta_data.csv lists it, but none of its files is here."""


def attention_geometry(agent: Agent, name: str = "the network") -> AttentionGeometry:
    """How the agent's attention lies over its input; InputError if it has none to score."""
    if agent.geometry is None:
        raise InputError(
            f"{name} has no built-in attention to score; perturbation and gradient saliency "
            "will serve such networks, but are not available yet"
        )
    return agent.geometry


def score_trials(
    agent: Agent,
    refs: Iterable[TrialRef],
    settings: BenchmarkSettings,
    *,
    progress: Callable[[Trial], Progress] = lambda trial: lambda steps: None,
    scratch: Path | None = None,
    finished: Mapping[int, TrialScores] | None = None,
) -> Iterator[TrialScores | SkippedTrial]:
    """Score trial after trial; one that is broken or cannot be scored is skipped, with a reason.

    `progress` is called as a trial begins, and what it returns as the trial goes on. Trials whose
    number is among the `finished` are not scored again.
    """
    for ref in refs:
        if finished is not None and ref.number in finished:
            yield finished[ref.number]
            continue
        if ref.absent:
            reason = f"trial {ref.name} ({ref.game}): none of its files is here"
            yield SkippedTrial(ref=ref, reason=reason, absent=True)
            continue
        try:
            with open_trial(ref) as trial:
                result = score_trial(
                    agent, trial, settings, progress=progress(trial), scratch=scratch
                )
        except TrialError as error:
            yield SkippedTrial(ref=ref, reason=str(error))
        else:
            yield result


def score_trial(
    agent: Agent,
    trial: Trial,
    settings: BenchmarkSettings,
    *,
    progress: Progress = lambda steps: None,
    scratch: Path | None = None,
) -> TrialScores:
    """Play `trial` back to `agent` and score its attention at every decision.

    Attention waits in a nameless file in `scratch` (default: the system's temporary folder) until
    the largest value of the trial is known, so memory does not grow with the trial's frames.
    Raises TrialError if nothing can be scored, InputError if the network has no attention.
    """
    geometry = attention_geometry(agent)
    fixations = _fixations(trial, settings)
    shown = int(np.argmax([points.total for points in fixations]))
    with closing(ArraySpool(scratch or Path(tempfile.gettempdir()))) as spool:
        tape = _Tape(spool, shown)
        decisions = play_back(trial.frames(), settings.protocol)
        for batch in _batches(tape.watch(decisions), BATCH):
            tape.record(agent.attention(batch), geometry)
            progress(len(batch))
        maps = tape.maps(geometry, settings, progress)
        metrics = score_sequence(maps, fixations, sigma=settings.sigma, seed=settings.seed)
    return TrialScores(
        ref=trial.ref,
        metrics=metrics,
        frame_numbers=np.array(tape.frame_numbers),
        num_fixations=np.array([points.total for points in fixations]),
        audit=trial.audit,
        example=tape.example(settings, fixations[shown]),
    )


def _fixations(trial: Trial, settings: BenchmarkSettings) -> list[Fixations]:
    """The fixations of every decision; TrialError if there is no decision or no fixation."""
    fixations = decision_fixations(
        trial.gaze,
        trial.frame_numbers,
        alignment=settings.alignment,
        shape=settings.shape,
        frame_skip=settings.protocol.frame_skip,
        stack=settings.protocol.stack,
    )
    name = f"trial {trial.ref.name} ({trial.ref.game})"
    if not fixations:
        count = len(trial.frame_numbers)
        raise TrialError(f"{name}: too short to play back ({count} frame, at least 2 are needed)")
    if not any(points.total for points in fixations):
        raise TrialError(f"{name}: no gaze on any frame that the network sees")
    return fixations


def _batches(observations: Iterator[UInt8Array], size: int) -> Iterator[UInt8Array]:
    """Observations [84, 84, 4] in batches [B, 84, 84, 4], the last one perhaps shorter."""
    while batch := list(islice(observations, size)):
        yield np.stack(batch)


class _Tape:
    """Attention of a trial on its way from the network to the metrics."""

    def __init__(self, spool: ArraySpool, shown: int) -> None:
        self.frame_numbers: list[int] = []
        """The newest frame at each decision."""
        self._spool = spool
        self._shown = shown
        self._peak = 0.0
        self._decision: Decision | None = None
        self._saliency: FloatArray | None = None

    def watch(self, decisions: Iterable[Decision]) -> Iterator[UInt8Array]:
        """The observations of `decisions`; keeps the decision that will be shown."""
        for decision in decisions:
            self.frame_numbers.append(decision.frame_number)
            if decision.index == self._shown:
                self._decision = decision
            yield decision.observation

    def record(self, attention: FloatArray, geometry: AttentionGeometry) -> None:
        """Append attention [B, h, w]; the largest value that is drawn normalises the trial."""
        drawn = attention_to_input(attention, geometry)
        finite = np.isfinite(drawn)
        self._peak = max(self._peak, float(drawn.max(where=finite, initial=0.0)))
        for cells in attention:
            self._spool.append([cells])

    def maps(
        self, geometry: AttentionGeometry, settings: BenchmarkSettings, progress: Progress
    ) -> Iterator[FloatArray]:
        """Each decision's map over the compared frame, [H, W] in 0..1."""
        for index, (cells,) in enumerate(self._spool):
            drawn = normalise(attention_to_input(cells[None], geometry), self._peak)[0]
            saliency = drawn if settings.processed else upscale(drawn, settings.shape)
            if index == self._shown:
                self._saliency = saliency
            yield saliency
            progress(1)

    def example(self, settings: BenchmarkSettings, fixations: Fixations) -> Example:
        """The decision that is shown, once all maps were drawn."""
        if self._decision is None or self._saliency is None:
            raise RuntimeError(f"decision {self._shown} was not played back")
        newest = self._decision.observation[..., -1]
        return Example(
            decision=self._shown,
            frame_number=self._decision.frame_number,
            picture=newest if settings.processed else self._decision.screen,
            saliency=self._saliency,
            fixations=fixations,
        )
