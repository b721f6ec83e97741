"""Recorded frames played back as a network would have seen them (Mnih et al. 2015's preprocessing).

No no-op start and no FIRE: the recording decides what happens, whatever the network would do.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from streaming_image_env import StreamingImageEnv

from fl_saliency.base import UInt8Array
from fl_saliency.envs.protocol import Protocol

__all__ = ["Decision", "observe", "play_back"]

_ANY_ACTION = 0
"""The recording goes on the same way whatever is pressed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """One moment at which a network would have acted."""

    index: int
    frame_number: int
    """The number of the newest frame in its recording."""
    screen: UInt8Array
    """The newest frame as recorded, uint8 [210, 160, 3] RGB."""
    observation: UInt8Array
    """What the network sees, uint8 [size, size, stack], newest frame last."""


def play_back(frames: Iterable[tuple[int, UInt8Array]], protocol: Protocol) -> Iterator[Decision]:
    """Play (number, uint8 [210, 160, 3] RGB) `frames` back under `protocol`'s preprocessing.

    Frames are drawn as they are needed. The frame that ends the playback brings no decision.
    """
    env = StreamingImageEnv(frames)
    empty = np.zeros((protocol.size, protocol.size), np.uint8)
    stack = deque([empty] * protocol.stack, maxlen=protocol.stack)
    try:
        first, info = env.reset()
        seen, index = [first], 0
        while seen:
            stack.append(observe(seen[-2:], protocol))
            yield Decision(
                index=index,
                frame_number=info["frame_id"],
                screen=seen[-1],
                observation=np.stack(stack, axis=-1),
            )
            seen, info = _skip(env, protocol.frame_skip)
            index += 1
    finally:
        env.close()


def _skip(env: Any, frame_skip: int) -> tuple[list[UInt8Array], dict[str, Any]]:
    """The frames of one action and the last one's info; none if the playback ends with them."""
    frames, info = [], {}
    for _ in range(frame_skip):
        frame, _, terminated, truncated, info = env.step(_ANY_ACTION)
        if terminated or truncated:
            return [], info
        frames.append(frame)
    return frames, info


def observe(frames: list[UInt8Array], protocol: Protocol) -> UInt8Array:
    """One frame, or the maximum of two, uint8 [210, 160, 3] -> grey, uint8 [size, size].

    The order of maximum and grey is the protocol's: it can change a pixel by 37 grey levels.
    """
    if protocol.max_pool == "rgb":
        grey = _grey(np.maximum.reduce(frames))
    else:
        grey = np.maximum.reduce([_grey(frame) for frame in frames])
    size = (protocol.size, protocol.size)
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)


def _grey(frame: UInt8Array) -> UInt8Array:
    return np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), np.uint8)
