"""Scores saliency maps against people's gaze: the benchmark of Nikulin et al. 2019, widened.

Each trial is played back to the network; the maps of every method at every decision are drawn over
the frame and compared with the fixations on the frames that the network saw, by the metrics of both
conventions, `paper` and `mit`.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np

from fl_saliency.atari_head.fixations import decision_fixations, num_decisions
from fl_saliency.atari_head.prior import (
    GazePrior,
    OtherGaze,
    prior_of_halves,
    prior_of_trials,
)
from fl_saliency.atari_head.reader import Trial, TrialError, TrialRef, open_trial
from fl_saliency.atari_head.replay import Decision, play_back
from fl_saliency.atari_head.scores import Example, MethodScores, SkippedTrial, TrialScores
from fl_saliency.atari_head.scoring import Progress, Result, score_track
from fl_saliency.atari_head.settings import GAZE_METHODS, BenchmarkSettings, kind_of
from fl_saliency.atari_head.tracks import SHIFTS, MethodSpool, Shifted, Track, gaze_track
from fl_saliency.base import Agent, Closing, IntArray, UInt8Array
from fl_saliency.metrics.fixation import Fixations
from fl_saliency.render.spool import ArraySpool
from fl_saliency.saliency.methods import SaliencyMethod, make_methods

__all__ = [
    "BenchmarkSettings",
    "Example",
    "MethodScores",
    "SkippedTrial",
    "TrialScores",
    "agent_methods",
    "num_steps",
    "score_trial",
    "score_trials",
]

BATCH = 64
"""Decisions in one call of a method."""


def agent_methods(agent: Agent, settings: BenchmarkSettings) -> list[SaliencyMethod]:
    """The methods that are asked about observations; InputError for what `agent` cannot serve."""
    names = [name for name in settings.methods if name not in GAZE_METHODS]
    return make_methods(names, agent, settings.options) if names else []


def num_steps(trial: Trial, settings: BenchmarkSettings) -> int:
    """The steps of a trial: each decision once for every map made, and for every one scored."""
    made = sum(name not in GAZE_METHODS for name in settings.methods)
    decisions = num_decisions(len(trial.frame_numbers), settings.protocol.frame_skip)
    return decisions * (made + len(settings.methods))


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

    `progress` is called as a trial begins, and what it returns as the trial goes on, `num_steps` in
    all. Trials whose number is among the `finished` are not scored again. Mean gaze is that of the
    other `refs`. Unless attention alone is scored, the first trial scored keeps frames to show.
    """
    refs = list(refs)
    others = OtherGaze(refs, settings)
    wants_frames = not settings.is_plain
    for ref in refs:
        result = finished.get(ref.number) if finished else None
        if result is None and ref.absent:
            reason = f"trial {ref.name} ({ref.game}): none of its files is here"
            yield SkippedTrial(ref=ref, reason=reason, absent=True)
            continue
        try:
            if result is None:
                with open_trial(ref) as trial:
                    result = score_trial(
                        agent,
                        trial,
                        settings,
                        others=others.without(ref),
                        keep_frames=wants_frames,
                        progress=progress(trial),
                        scratch=scratch,
                    )
        except TrialError as error:
            yield SkippedTrial(ref=ref, reason=str(error))
        else:
            wants_frames = False
            yield result


def score_trial(
    agent: Agent,
    trial: Trial,
    settings: BenchmarkSettings,
    *,
    others: IntArray | None = None,
    keep_frames: bool = False,
    progress: Progress = lambda steps: None,
    scratch: Path | None = None,
) -> TrialScores:
    """Play `trial` back to `agent` once, and score the maps of all methods at every decision.

    others [H, W]: fixations of other trials, which mean gaze is made of; without them it comes
    from the other half of this trial. keep_frames: keep each method's decisions to show.
    What methods compute waits in nameless files in `scratch` (default: the system's temporary
    folder) until the largest value of the trial is known, so memory does not grow with the frames.
    Raises TrialError if nothing can be scored, InputError for a method that cannot be served.
    """
    fixations = _fixations(trial, settings)
    shown = int(np.argmax([points.total for points in fixations[0]]))
    prior = _prior(others, fixations[0], settings)
    with ExitStack() as stack:
        methods = agent_methods(agent, settings)
        spools = [stack.enter_context(MethodSpool(method, scratch)) for method in methods]
        tape = stack.enter_context(_Tape(settings, scratch, only=None if keep_frames else shown))
        _record(agent, tape.watch(play_back(trial.frames(), settings.protocol)), spools, progress)
        results: list[Result] = []
        for track in _tracks(spools, prior, fixations, settings):
            first = () if results else (shown,)
            tell = keep_frames and kind_of(track.name) == "agent"
            results.append(score_track(track, prior, settings, progress, shown=first, tell=tell))
        tape.illustrate(results, fixations[0])
    return TrialScores(
        ref=trial.ref,
        methods=tuple(result.with_frames() for result in results),
        frame_numbers=np.array(tape.frame_numbers),
        num_fixations=np.array([points.total for points in fixations[0]]),
        prior=prior.source,
        audit=trial.audit,
        example=results[0].examples[shown],
    )


def _fixations(trial: Trial, settings: BenchmarkSettings) -> Shifted:
    """The fixations of every decision; TrialError if there is no decision or no fixation."""
    fixations = {shift: _shifted_fixations(trial, settings, shift) for shift in (0, *SHIFTS)}
    name = f"trial {trial.ref.name} ({trial.ref.game})"
    if not fixations[0]:
        count = len(trial.frame_numbers)
        raise TrialError(f"{name}: too short to play back ({count} frame, at least 2 are needed)")
    if not any(points.total for points in fixations[0]):
        raise TrialError(f"{name}: no gaze on any frame that the network sees")
    return fixations


def _shifted_fixations(trial: Trial, settings: BenchmarkSettings, shift: int) -> list[Fixations]:
    """With the gaze of `shift` frames later on each frame."""
    return decision_fixations(
        {number - shift: points for number, points in trial.gaze.items()},
        trial.frame_numbers,
        alignment=settings.alignment,
        shape=settings.shape,
        frame_skip=settings.protocol.frame_skip,
        stack=settings.protocol.stack,
    )


def _prior(
    others: IntArray | None, fixations: Sequence[Fixations], settings: BenchmarkSettings
) -> GazePrior:
    if others is not None:
        return prior_of_trials(others, len(fixations), sigma=settings.sigma)
    return prior_of_halves(fixations, stack=settings.protocol.stack, sigma=settings.sigma)


def _record(
    agent: Agent,
    observations: Iterator[UInt8Array],
    spools: Sequence[MethodSpool],
    progress: Progress,
) -> None:
    """Ask every method about all observations, in which the agent's best actions are explained."""
    explains = any(spool.method.target != "none" for spool in spools)
    for batch in _batches(observations, BATCH):
        best = agent.scores(batch).argmax(axis=1) if explains else np.zeros(len(batch), np.int64)
        for spool in spools:
            spool.record(batch, best)
            progress(len(batch))


def _batches(observations: Iterator[UInt8Array], size: int) -> Iterator[UInt8Array]:
    """Observations [84, 84, 4] in batches [B, 84, 84, 4], the last one perhaps shorter."""
    while batch := list(islice(observations, size)):
        yield np.stack(batch)


def _tracks(
    spools: Iterable[MethodSpool],
    prior: GazePrior,
    fixations: Shifted,
    settings: BenchmarkSettings,
) -> Iterator[Track]:
    """What is scored, in the order of the settings' methods."""
    recorded = {spool.method.name: spool for spool in spools}
    for name in settings.methods:
        if name in recorded:
            yield recorded[name].track(settings, fixations)
        else:
            yield gaze_track(name, prior, fixations, settings)


class _Tape(Closing):
    """What is remembered of a playback: frame numbers, and the pictures of decisions to show."""

    def __init__(
        self, settings: BenchmarkSettings, scratch: Path | None, *, only: int | None
    ) -> None:
        """`only`: the one decision that can be shown; None for all, which wait in a file."""
        self.frame_numbers: list[int] = []
        """The newest frame at each decision."""
        self._processed = settings.processed
        self._only = only
        self._decisions: list[int] = []
        self._spool = ArraySpool(scratch or Path(tempfile.gettempdir()))

    def watch(self, decisions: Iterable[Decision]) -> Iterator[UInt8Array]:
        """The observations of `decisions`, whose pictures are kept."""
        for decision in decisions:
            self.frame_numbers.append(decision.frame_number)
            if self._only in (None, decision.index):
                newest = decision.observation[..., -1]
                self._decisions.append(decision.index)
                self._spool.append([newest if self._processed else decision.screen])
            yield decision.observation

    def illustrate(self, results: Sequence[Result], fixations: Sequence[Fixations]) -> None:
        """Give each of the `results` the examples of its maps, on one picture after the other."""
        for decision, (picture,) in zip(self._decisions, self._spool, strict=True):
            for result in results:
                if decision in result.maps:
                    result.examples[decision] = Example(
                        decision=decision,
                        frame_number=self.frame_numbers[decision],
                        picture=picture,
                        saliency=result.maps[decision],
                        fixations=fixations[decision],
                    )

    def close(self) -> None:
        """Give the disk space back."""
        self._spool.close()
