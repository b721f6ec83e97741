"""What a benchmark finds: the scores of every method on a trial, and decisions worth showing."""

from collections.abc import Mapping
from dataclasses import dataclass

from fl_saliency.atari_head.audit import TrialAudit
from fl_saliency.atari_head.reader import TrialRef
from fl_saliency.base import FloatArray, IntArray, UInt8Array
from fl_saliency.metrics.fixation import Fixations
from fl_saliency.metrics.mit import MitScores
from fl_saliency.metrics.paper import SequenceScores

__all__ = ["Example", "MethodScores", "SkippedTrial", "TrialScores"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """One decision to show, on the frame that was compared."""

    decision: int
    frame_number: int
    picture: UInt8Array
    """The screen [210, 160, 3], or the newest 84x84 frame [84, 84]."""
    saliency: FloatArray
    """[H, W], of no fixed scale."""
    fixations: Fixations


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodScores:
    """One method's scores on a trial's T decisions."""

    name: str
    target: str
    """What its maps explain; `none` where the target plays no part."""
    num_fixations: IntArray
    """Fixations that each decision was scored on, int [T]."""
    paper: SequenceScores
    """Each float64 [T], NaN where undefined."""
    mit: MitScores
    """Each float64 [T], NaN where undefined."""
    shifted: Mapping[int, SequenceScores]
    """`paper` again, by the number of frames that gaze was shifted by."""
    frames: tuple[Example, ...] = ()
    """The decisions with the best, median and worst NSS, if they are to be shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialScores:
    """The scores of one trial's T decisions."""

    ref: TrialRef
    methods: tuple[MethodScores, ...]
    """At least one."""
    frame_numbers: IntArray
    """The newest frame at each decision, int [T]."""
    num_fixations: IntArray
    """Fixations at each decision, int [T]."""
    prior: str
    """What the mean gaze is made of."""
    audit: TrialAudit
    example: Example
    """The decision with the most fixations, and the first method's map."""

    @property
    def metrics(self) -> SequenceScores:
        """The first method's scores, convention `paper`."""
        return self.methods[0].paper


@dataclass(frozen=True, kw_only=True)
class SkippedTrial:
    """A trial without scores."""

    ref: TrialRef
    reason: str
    """One line, which names the trial."""
    absent: bool = False
    """It is not broken: meta_data.csv lists it, but none of its files is here."""
