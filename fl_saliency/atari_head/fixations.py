"""Gaze samples as fixations on the frames that a network saw at each of its decisions.

The network sees a stack of observations, each the maximum over two frames of the game; a person's
gaze at a decision is the union over all of those frames (Nikulin et al. 2019).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from fl_saliency.base import FloatArray, IntArray
from fl_saliency.errors import unknown_choice
from fl_saliency.metrics.fixation import Fixations

__all__ = [
    "ALIGNMENTS",
    "PROCESSED_SHAPE",
    "SCREEN_SHAPE",
    "Alignment",
    "decision_fixations",
    "gaze_to_fixations",
    "label_numbers",
    "num_decisions",
    "seen_positions",
]

SCREEN_SHAPE = (210, 160)
"""Rows and columns of the game's screen, on which gaze is recorded."""
PROCESSED_SHAPE = (84, 84)

Alignment: TypeAlias = Literal["frames", "original"]
"""Which gaze belongs to a frame: its own (`frames`), or the frame before's (`original`).

The published numbers were made with the second: frames counted from 0, labels from 1.
"""
ALIGNMENTS: tuple[str, ...] = get_args(Alignment)


def gaze_to_fixations(gaze: FloatArray, shape: tuple[int, int] = SCREEN_SHAPE) -> Fixations:
    """Gaze [K, 2], (x, y) in pixels of the 210x160 screen -> fixations on a map of `shape`.

    Coordinates are scaled, then rounded half to even; what then lies off the map is dropped,
    never moved on to its border. A coordinate that is NaN is off the map.
    """
    rows, columns = shape
    size = np.array([columns, rows])
    scale = size / np.array(SCREEN_SHAPE[::-1])
    cells = np.rint(np.asarray(gaze, np.float64).reshape(-1, 2) * scale)
    x, y = cells[((cells >= 0) & (cells < size)).all(axis=1)].astype(np.int32).T
    return Fixations(shape, y * np.int32(columns) + x)


def num_decisions(num_frames: int, frame_skip: int = 4) -> int:
    """How many decisions the network takes while `num_frames` are played back.

    The frame that ends the playback comes with no decision: its observation starts nothing.
    """
    return max(0, -(-(num_frames - 1) // frame_skip))


def seen_positions(decision: int, *, frame_skip: int = 4, stack: int = 4) -> list[int]:
    """Positions (from 0) in the playback of the frames that the network sees, oldest first.

    Decision 0 sees frame 0 alone; decision t adds frames 4t-1 and 4t; a stack holds four of these.
    """
    seen: list[int] = []
    for newest in range(decision - stack + 1, decision + 1):
        if newest >= 0:
            last = newest * frame_skip
            before = last - 1 if newest and frame_skip > 1 else last
            seen += range(before, last + 1)
    return seen


def label_numbers(
    positions: Sequence[int], frame_numbers: IntArray, alignment: Alignment
) -> list[int]:
    """The frame numbers whose gaze belongs to the frames at `positions` of the playback.

    frame_numbers [N], the numbers of the frames played back, in order. With `original` it is the
    number before each frame's own, and the first frame played back has none.
    """
    if alignment == "frames":
        return [int(frame_numbers[position]) for position in positions]
    if alignment == "original":
        return [int(frame_numbers[position]) - 1 for position in positions if position > 0]
    raise unknown_choice("gaze alignment", alignment, ALIGNMENTS)


def decision_fixations(
    gaze: Mapping[int, FloatArray],
    frame_numbers: IntArray,
    *,
    alignment: Alignment,
    shape: tuple[int, int] = SCREEN_SHAPE,
    frame_skip: int = 4,
    stack: int = 4,
) -> list[Fixations]:
    """The fixations of each decision of a playback, on a map of `shape`.

    gaze: samples [K, 2] by frame number; a number that it lacks was not looked at.
    frame_numbers [N]: the frames played back, in order.
    """
    by_number = {number: gaze_to_fixations(points, shape) for number, points in gaze.items()}
    fixations = []
    for decision in range(num_decisions(len(frame_numbers), frame_skip)):
        positions = seen_positions(decision, frame_skip=frame_skip, stack=stack)
        numbers = label_numbers(positions, frame_numbers, alignment)
        found = [by_number[number] for number in numbers if number in by_number]
        fixations.append(Fixations.union(found, shape))
    return fixations
