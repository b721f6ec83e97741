"""An environment whose observations are the frames of a recording, one a step."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded

__all__ = ["Frame", "FrameStreamError", "Frames", "StreamingImageEnv"]

Frame: TypeAlias = npt.NDArray[np.uint8]
"""uint8 [H, W, C]."""

Frames: TypeAlias = Iterable[Frame] | Iterable[tuple[Any, Frame]]
"""Frames, or (id, frame) pairs."""


class FrameStreamError(ValueError):
    """The frames are none, not alike, or cannot be read a second time."""


_END = object()


class _Item(NamedTuple):
    position: int
    frame: Frame
    info: dict[str, Any]


class StreamingImageEnv(gymnasium.Env[Frame, Any]):
    """Plays back a stream of frames: `reset` yields the first one, `step` the next, whatever the
    action.

    An episode is one pass over the stream. Of N frames, `reset` yields frame 1 and step k frame
    k + 1; the reward is always 0, `truncated` never True, and `terminated` is True in the step
    that yields frame N, so an episode has N - 1 steps. A stream of one frame has one step, which
    yields that frame again. After the last step, `step` raises `gymnasium.error.ResetNeeded`.

    `info` holds `frame_index`, counted from 0, and `frame_id` where the stream has ids.
    Besides the current frame only the next one is held, in copies of the stream's arrays.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(
        self,
        frames: Frames | Callable[[], Frames],
        *,
        num_actions: int = 18,
        render_mode: str | None = None,
    ) -> None:
        """Take `frames`, uint8 [H, W, C] all of one shape, or (id, frame) pairs of them.

        A list or a function that returns a new iterable can be played back again and again; an
        iterator, such as a generator, once. The first frame is read here, and is the model of the
        observation space. Raises FrameStreamError if there is none or it is no image.
        """
        if num_actions < 1:
            raise ValueError(f"num_actions: expected 1 or more, got {num_actions}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode: expected 'rgb_array' or None, got {render_mode!r}")
        self._frames = frames
        self._shape: tuple[int, ...] | None = None
        self._stream: Iterator[Any] | None = None
        self._current: _Item | None = None
        self._next: _Item | None = None
        self._ended = False
        first = self._next = self._restart()
        self._fresh = True
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(num_actions)
        self.observation_space = gymnasium.spaces.Box(0, 255, first.frame.shape, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """Start over: the first frame and its info.

        Raises FrameStreamError if the frames came from an iterator that was already played back.
        """
        super().reset(seed=seed)
        self._current = self._next if self._fresh and self._next else self._restart()
        self._fresh = False
        self._ended = False
        self._next = self._pull(self._current.position + 1)
        return self._current.frame.copy(), dict(self._current.info)

    def step(self, action: Any) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """The next frame; `action` is ignored."""
        if self._current is None or self._ended:
            raise ResetNeeded("the stream has ended or was never started: call reset() first")
        if self._next is not None:
            self._current = self._next
            self._next = self._pull(self._current.position + 1)
        self._ended = self._next is None
        return self._current.frame.copy(), 0.0, self._ended, False, dict(self._current.info)

    def render(self) -> Frame | None:
        """The current frame in render mode "rgb_array"; None in none, and before `reset`."""
        if self.render_mode is None or self._current is None:
            return None
        return self._current.frame.copy()

    def close(self) -> None:
        """Let go of the stream, and close it if it is a generator; `reset` starts it anew."""
        close = getattr(self._stream, "close", None)
        if callable(close):
            close()
        self._stream = self._current = self._next = None
        self._fresh = False

    def _restart(self) -> _Item:
        """Open the stream at its beginning; its first item."""
        if isinstance(self._frames, Iterator) and self._shape is not None:
            raise FrameStreamError(
                "the frames came from an iterator, which can be played back only once; pass a "
                "list, or a function that returns a new iterator, to reset again"
            )
        self.close()
        frames = self._frames if isinstance(self._frames, Iterable) else self._frames()
        self._stream = iter(frames)
        first = self._pull(0)
        if first is None:
            raise FrameStreamError("the stream holds no frame")
        return first

    def _pull(self, index: int) -> _Item | None:
        """The next item of the stream; None at its end."""
        item: Any = next(self._stream, _END) if self._stream is not None else _END
        if item is _END:
            return None
        has_id = isinstance(item, tuple) and len(item) == 2
        frame = self._checked(item[1] if has_id else item, index)
        info = {"frame_index": index} | ({"frame_id": item[0]} if has_id else {})
        return _Item(index, frame, info)

    def _checked(self, value: Any, index: int) -> Frame:
        frame = np.array(value)  # a copy: the stream may fill the same array again
        if frame.dtype != np.uint8 or frame.ndim != 3 or not frame.size:
            raise FrameStreamError(
                f"frame {index}: expected uint8 [H, W, C], got {frame.dtype} {list(frame.shape)}"
            )
        if self._shape is None:
            self._shape = frame.shape
        if frame.shape != self._shape:
            raise FrameStreamError(
                f"frame {index}: expected the first one's shape {list(self._shape)}, "
                f"got {list(frame.shape)}"
            )
        return frame
