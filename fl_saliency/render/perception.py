"""The perception video: what agents saw and where they looked, over whole games, in fixed memory.

Frames go to disk as they come; the video is drawn in a second pass, because the maps are divided
by one maximum over the whole run (Nikulin et al. 2019), which only its end knows.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypedDict

import cv2
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from fl_saliency.base import AttentionGeometry, BoolArray, FloatArray, UInt8Array, atomic_path
from fl_saliency.errors import InputError, JobError
from fl_saliency.render.overlay import attention_to_input
from fl_saliency.render.painter import Painter, Step
from fl_saliency.render.spool import ArraySpool, SpoolState
from fl_saliency.render.video import VideoWriter, require_encoder

__all__ = ["PerceptionRecorder", "RecordingState", "VideoReport", "save_still"]

_OBSERVED = (84, 84)
_SMALL = 200
"""A drawn picture of at most this many pixels a side (observations alone) is shown larger."""
_PLAYABLE = 4096
"""Widest and highest H.264 picture that hardware decoders commonly take, in pixels."""


@dataclass(frozen=True, kw_only=True)
class VideoReport:
    """What a recording left on disk."""

    frames: int
    """Frames in each video, as counted by decoding it."""
    fps: float
    width: int
    """Width of the drawn picture and of the lossless video, in pixels."""
    height: int
    scale: int
    """The H.264 video and the still are this many times as large."""
    files: tuple[Path, ...]
    """perception.mkv (FFV1), perception.mp4 (H.264), perception.png (a still)."""
    still_frame: int
    """Index of the frame in the still."""


def save_still(path: Path, picture: UInt8Array, *, scale: int = 1) -> None:
    """Write RGB uint8 [H, W, 3] as a PNG, each pixel `scale` x `scale` large, atomically."""
    large = picture.repeat(scale, axis=0).repeat(scale, axis=1)
    done, data = cv2.imencode(".png", cv2.cvtColor(large, cv2.COLOR_RGB2BGR))
    if not done:
        raise JobError(f"{path}: the picture could not be encoded")
    try:
        with atomic_path(path) as partial:
            partial.write_bytes(data.tobytes())
    except OSError as error:
        raise JobError(f"{path}: picture not written ({error.strerror})") from error


class RecordingState(TypedDict):
    """How far a recording has got, in types that JSON has."""

    maximum: float
    contrast: float
    best_frame: int | None
    spool: SpoolState


class PerceptionRecorder:
    """Records agent steps of N envs; `close` makes perception.mkv, .mp4 and .png of them.

    raw: screens uint8 [N, *screen_shape, 3] under their maps; processed: the newest observation
    frames uint8 [N, 84, 84]; both: raw above processed. Envs are tiled row by row. An env that is
    not active keeps its last picture, dimmed; one that never was is black. Without a `geometry`
    (a network without attention) the pictures are shown as they are. `metadata` goes into the
    videos. Frames wait in file `kept`, if given, from which another recorder can go on after
    `state` (as `sync` told it). As a context it closes at the end, and after an exception leaves
    nothing but that file behind.
    `InputError` at the start for settings no video can be made of; `JobError` for failures later.
    """

    def __init__(
        self,
        directory: Path,
        *,
        raw: bool,
        processed: bool,
        geometry: AttentionGeometry | None,
        num_envs: int,
        fps: int | Fraction = 30,
        screen_shape: tuple[int, int] = (210, 160),
        metadata: Mapping[str, str] | None = None,
        kept: Path | None = None,
        state: RecordingState | None = None,
    ) -> None:
        if not (raw or processed):
            raise InputError("a video needs raw screens, processed frames or both; got neither")
        if num_envs < 1 or not fps > 0:
            raise InputError(f"num_envs {num_envs}, fps {fps}: expected numbers above 0")
        for encoder in ("ffv1", "libx264"):
            require_encoder(encoder)
        self._directory = directory
        self._geometry = geometry
        self._fps = fps
        self._metadata = dict(metadata or {})
        self._shapes: dict[str, tuple[int, ...]] = {"active": (num_envs,)}
        if raw:
            self._shapes["screens"] = (num_envs, *screen_shape, 3)
        if processed:
            self._shapes["newest"] = (num_envs, *_OBSERVED)
        self._maximum = 0.0
        self._contrast = 0.0
        self._best_frame: int | None = None
        self._report: VideoReport | None = None
        if state is not None:
            self._maximum, self._contrast = state["maximum"], state["contrast"]
            self._best_frame = state["best_frame"]
        spool = None if state is None else state["spool"]
        self._spool = ArraySpool(directory, path=kept, state=spool)

    def sync(self) -> RecordingState:
        """Have what was recorded on disk; returns what a further recorder goes on from."""
        return {
            "maximum": self._maximum,
            "contrast": self._contrast,
            "best_frame": self._best_frame,
            "spool": self._spool.sync(),
        }

    def add(
        self,
        screens: UInt8Array | None,
        newest: UInt8Array | None,
        attention: FloatArray | None,
        active: BoolArray,
    ) -> None:
        """Record one agent step; what is not drawn may be None.

        attention float32 [N, h, w] or [N, h, w, 1]; active bool [N]: who still plays a game that
        counts. A missing or misshapen array raises `ValueError`, a NaN in attention `JobError`.
        """
        given = {"screens": screens, "newest": newest, "active": active}
        record = [self._checked(name, given[name]) for name in self._shapes]
        if self._geometry is not None:
            record.append(self._measured(attention, active, self._geometry))
        self._spool.append(record)

    def close(self, *, progress: bool = False) -> VideoReport:
        """Draw, encode, decode back and count; `progress` shows a bar if stderr is a terminal.

        Either all files stand complete under their names, or none was made (`JobError`).
        """
        if self._report is None:
            try:
                self._report = self._render(progress)
            finally:
                self._spool.close()
        return self._report

    def abort(self) -> None:
        """Drop what was recorded; nothing stays on disk."""
        self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _checked(self, name: str, array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        dtype, shape = np.dtype(bool if name == "active" else np.uint8), self._shapes[name]
        if array is None or array.dtype != dtype or array.shape != shape:
            got = "None" if array is None else f"{array.dtype} {array.shape}"
            raise ValueError(f"{name}: expected {dtype} {shape}, got {got}")
        return array

    def _measured(
        self, attention: FloatArray | None, active: BoolArray, geometry: AttentionGeometry
    ) -> FloatArray:
        """The attention as it is kept; takes note of how its drawn maps compare to the rest."""
        if attention is None or len(attention) != len(active):
            raise ValueError(f"attention: expected a map for each of {len(active)} envs")
        drawn = attention_to_input(attention[active], geometry)
        if not np.isfinite(drawn).all():
            raise JobError(f"attention at frame {len(self._spool)} is not finite: no video")
        self._maximum = max(self._maximum, float(drawn.max(initial=0.0)))
        contrast = float(drawn.std(axis=(1, 2)).sum())
        if contrast > self._contrast:
            self._contrast, self._best_frame = contrast, len(self._spool)
        return attention.astype(np.float32, copy=False)

    def _steps(self) -> Iterator[Step]:
        names = [*self._shapes, *([] if self._geometry is None else ["attention"])]
        for record in self._spool:
            yield Step(**dict(zip(names, record, strict=True)))

    def _render(self, progress: bool) -> VideoReport:
        frames = len(self._spool)
        if frames == 0:
            raise JobError(f"{self._directory}: no frame was recorded, so there is no video")
        painter = Painter(self._geometry, self._maximum)
        pictures = (painter.paint(step) for step in self._steps())
        still = frames // 2 if self._best_frame is None else self._best_frame
        silent = None if progress else True  # None: tqdm looks whether stderr is a terminal
        with tqdm(total=frames, desc="video", unit="frame", disable=silent) as bar:
            return _write_files(self._directory, pictures, self._fps, self._metadata, still, bar)


def _write_files(
    directory: Path,
    pictures: Iterator[UInt8Array],
    fps: int | Fraction,
    metadata: Mapping[str, str],
    still_frame: int,
    bar: "tqdm[NoReturn]",
) -> VideoReport:
    """Encode `pictures` twice, write the `still_frame`-th as PNG, count what decodes."""
    first = next(pictures)
    height, width, _ = first.shape
    scale = _viewing_scale(height, width)
    still = first
    with contextlib.ExitStack() as stack:
        lossless, viewing = writers = [
            stack.enter_context(
                VideoWriter(path, width, height, fps, codec, scale=large, metadata=metadata)
            )
            for path, codec, large in (
                (directory / "perception.mkv", "ffv1", 1),
                (directory / "perception.mp4", "libx264", scale),
            )
        ]
        pool = stack.enter_context(ThreadPoolExecutor(len(writers)))
        for index, picture in enumerate(_encoded(pool, writers, chain([first], pictures))):
            still = picture if index == still_frame else still
            bar.update()
        bar.set_description("video: decoding back")
        frames = set(pool.map(VideoWriter.finish, writers))
        still_path = directory / "perception.png"
        save_still(still_path, still, scale=scale)
    return VideoReport(
        frames=frames.pop(),
        fps=float(fps),
        width=width,
        height=height,
        scale=scale,
        files=(lossless.path, viewing.path, still_path),
        still_frame=still_frame,
    )


def _encoded(
    pool: ThreadPoolExecutor, writers: Sequence[VideoWriter], pictures: Iterable[UInt8Array]
) -> Iterator[UInt8Array]:
    """Pass `pictures` on; the writers encode one, side by side, while the next is drawn."""
    running: list[Future[None]] = []
    for picture in pictures:
        for future in running:
            future.result()
        running = [pool.submit(writer.add, picture) for writer in writers]
        yield picture
    for future in running:
        future.result()


def _viewing_scale(height: int, width: int) -> int:
    """How many times larger the H.264 pictures are than the drawn ones.

    A 4:2:0 chroma sample spans 2 x 2 pixels, so a game's own pixel keeps its colour only if it is
    two wide and high; a picture of observations alone is tiny and grows more.
    """
    side = max(height, width)
    if side <= _SMALL:
        return 4
    return 2 if 2 * side <= _PLAYABLE else 1
