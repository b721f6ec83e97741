"""Videos through PyAV: lossless FFV1 in Matroska, and H.264 in MP4 that every browser plays."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import av
import numpy as np
from av.container import InputContainer, OutputContainer
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter
from av.video.stream import VideoStream

from fl_saliency.base import UInt8Array, atomic_path
from fl_saliency.errors import FileFormatError, InputError, JobError, unknown_choice

__all__ = ["VideoWriter", "count_frames", "require_encoder"]


@dataclass(frozen=True, kw_only=True)
class _Codec:
    container: str
    pixels: str
    options: dict[str, str]
    muxing: dict[str, str] = field(default_factory=dict)
    even: bool = False
    """Width and height must be even: a chroma sample covers 2 x 2 pixels."""
    tagged: bool = False
    """The file says how its YUV is meant (BT.709, limited range), so that no player guesses."""


# bit-exact muxing leaves out dates and random ids, so the same frames give the same file.
_CODECS = {
    "ffv1": _Codec(
        container="matroska",
        pixels="bgra",
        options={"level": "3", "slices": "4"},
        muxing={"fflags": "+bitexact"},
    ),
    "libx264": _Codec(
        container="mp4",
        pixels="yuv420p",
        # Two seconds between keyframes at 30 fps keep seeking quick.
        options={"preset": "superfast", "crf": "18", "g": "60"},
        # The index goes first, so that playing starts before the whole file has arrived.
        muxing={"fflags": "+bitexact", "movflags": "+faststart+use_metadata_tags"},
        even=True,
        tagged=True,
    ),
}
_BT709 = 1  # primaries, transfer and matrix have the same number in the standard (ITU-T H.273)


class _Abort(Exception):  # noqa: N818 (no error: it tells the open files to go)
    """Thrown into a writer's open resources to make them clean up."""


def require_encoder(name: str) -> None:
    """Raise `InputError` unless the installed PyAV can encode with `name` ("libx264", "ffv1")."""
    if name not in _CODECS:
        raise unknown_choice("video encoder", name, _CODECS)
    try:
        av.Codec(name, "w")
    except ValueError as error:
        raise InputError(
            f"video encoder {name!r} is missing from the installed av {av.__version__}; "
            "its wheels have it: pip install --force-reinstall --only-binary av av"
        ) from error


class _Complaints:
    """What FFmpeg says is wrong. Its log is one for all threads, and so are the log's settings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners = 0
        self._settings = contextlib.ExitStack()
        self._heard: list[tuple[int, str, str]] = []

    @contextlib.contextmanager
    def listen(self) -> Iterator[list[str]]:
        """A list that holds, after the context, all complaints meanwhile, of whatever thread."""
        complaints: list[str] = []
        with self._lock:
            if self._listeners == 0:
                self._start()
            self._listeners += 1
            heard, start = self._heard, len(self._heard)
        try:
            yield complaints
        finally:
            with self._lock:
                complaints += [message.strip() for _, _, message in heard[start:]]
                self._listeners -= 1
                if self._listeners == 0:
                    self._settings.close()

    def _start(self) -> None:
        self._settings.callback(av.logging.set_level, av.logging.get_level())
        self._settings.callback(av.logging.set_skip_repeated, av.logging.get_skip_repeated())
        av.logging.set_level(av.logging.ERROR)
        av.logging.set_skip_repeated(False)  # else two files with the same damage complain once
        capture = av.logging.Capture(local=False)
        self._heard = self._settings.enter_context(capture)  # type: ignore[arg-type]  # its stub


_COMPLAINTS = _Complaints()


def count_frames(path: Path) -> int:
    """How many pictures the video `path` (Matroska or MP4) holds, by decoding every one.

    `FileFormatError` for a file that is no video, breaks off, or has anything in it that its
    decoder only mends.
    """
    try:
        _check_container(path)
        with _COMPLAINTS.listen() as complaints:
            frames, promised, tolerance = _decode(path)
    except (av.FFmpegError, OSError) as error:
        raise FileFormatError(f"{path}: cannot be decoded ({_reason(error)})") from error
    if complaints:
        raise FileFormatError(f"{path}: damaged ({complaints[0]})")
    if promised - frames > tolerance:
        raise FileFormatError(f"{path}: breaks off: {frames} frames, its header says {promised}")
    return frames


def _check_container(path: Path) -> None:
    """FFmpeg goes by content: a playlist under a video's name would have it open other files."""
    with path.open("rb") as file:
        head = file.read(64)
    if not (head.startswith(b"\x1aE\xdf\xa3") and b"matroska" in head) and head[4:8] != b"ftyp":
        raise FileFormatError(f"{path}: neither Matroska nor MP4")


def _decode(path: Path) -> tuple[int, int, int]:
    """How many frames decode, how many the header promises, and how far that may be off."""
    with av.open(str(path)) as container:
        if not container.streams.video:
            raise FileFormatError(f"{path}: expected a video, found none in the file")
        stream = container.streams.video[0]
        promised, tolerance = _promised_frames(container, stream)
        stream.thread_type = "AUTO"
        try:
            frames = sum(1 for _ in container.decode(video=0))
        finally:
            # After an error its threads may still run. Freeing the decoder waits for them with
            # Python's lock, which they need to complain; this waits without it.
            stream.codec_context.flush_buffers()
        return frames, promised, tolerance


def _promised_frames(container: InputContainer, stream: VideoStream) -> tuple[int, int]:
    """The number of frames by the header, 0 if that is silent, and how far it may be off."""
    if stream.frames:
        return stream.frames, 0
    if container.duration is None or stream.average_rate is None:
        return 0, 0
    # Matroska tells a duration in milliseconds instead, from which the number is nearly known.
    return round(container.duration * stream.average_rate / av.time_base), 1


class VideoWriter:
    """Writes pictures to one video file, which appears under its name only when it is whole.

    codec "ffv1" (lossless; decodes to the very pictures) or "libx264" (H.264, 4:2:0; odd sizes
    are padded by their edge). `width` and `height` are the pictures'; each pixel is drawn
    `scale` x `scale` large. As a context it closes, or after an exception leaves no file.
    `InputError` for a bad codec, fps or size; `JobError` for whatever fails while writing.
    """

    def __init__(
        self,
        path: Path,
        width: int,
        height: int,
        fps: int | Fraction,
        codec: str,
        *,
        scale: int = 1,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        _check_positive("fps", fps)
        for name, value in (("width", width), ("height", height), ("scale", scale)):
            _check_positive(name, value)
        require_encoder(codec)
        self.path = path
        self.frames = 0
        self._shape = (height, width)
        self._codec = _CODECS[codec]
        self._rate = Fraction(fps)
        self._scale = scale
        self._reformatter = VideoReformatter()
        self._finished = False
        with self._failures(), contextlib.ExitStack() as stack:
            self._partial = stack.enter_context(atomic_path(path))
            self._container = self._open(metadata or {})
            stack.callback(self._container.close)
            self._stream = self._add_stream(codec)
            self._resources = stack.pop_all()

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the video in its own pixels."""
        height, width = (
            (side + extra) * self._scale
            for side, extra in zip(self._shape, self._surplus, strict=True)
        )
        return width, height

    @property
    def _surplus(self) -> tuple[int, int]:
        """Rows and columns to add so that the scaled picture is even where it must be."""
        height, width = (self._codec.even * side * self._scale % 2 for side in self._shape)
        return height, width

    def add(self, picture: UInt8Array) -> None:
        """Append one picture: RGB uint8 [height, width, 3], or grey uint8 [height, width]."""
        frame = av.VideoFrame.from_ndarray(self._checked(picture), format="rgb24")
        with self._failures():
            frame = self._converted(frame)
            frame.pts = self.frames
            frame.time_base = 1 / self._rate
            self._container.mux(self._stream.encode(frame))
        self.frames += 1

    def finish(self) -> int:
        """Write what is buffered, decode the file back and return its frames; not yet renamed.

        Another number than was added raises `JobError`.
        """
        if self.frames == 0:
            raise JobError(f"{self.path}: a video needs at least one frame, none was added")
        if not self._finished:
            with self._failures():
                self._container.mux(self._stream.encode(None))
                self._container.close()
            self._verify()
            self._finished = True
        return self.frames

    def close(self) -> int:
        """`finish`, then give the file its name; returns the number of frames; safe to repeat."""
        try:
            self.finish()
            with self._failures():
                self._resources.close()
        except BaseException:
            self.abort()
            raise
        return self.frames

    def abort(self) -> None:
        """Leave no file (unless `close` has ended well before)."""
        with contextlib.suppress(_Abort, av.FFmpegError, OSError), self._resources:
            raise _Abort

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

    def _open(self, metadata: Mapping[str, str]) -> OutputContainer:
        container = av.open(
            str(self._partial),
            "w",
            format=self._codec.container,
            container_options=self._codec.muxing,
        )
        container.metadata.update(metadata)
        return container

    def _add_stream(self, codec: str) -> VideoStream:
        options = self._codec.options
        stream = cast(VideoStream, self._container.add_stream(codec, self._rate, options))
        stream.width, stream.height = self.size
        stream.pix_fmt = self._codec.pixels
        stream.thread_type = "AUTO"
        if self._codec.tagged:
            context = stream.codec_context
            context.color_range = ColorRange.MPEG
            context.colorspace = context.color_primaries = context.color_trc = _BT709
        return stream

    def _checked(self, picture: UInt8Array) -> UInt8Array:
        if picture.dtype != np.uint8 or picture.shape not in (self._shape, (*self._shape, 3)):
            raise ValueError(
                f"picture {picture.dtype} {picture.shape}: expected uint8 {(*self._shape, 3)}"
            )
        if picture.ndim == 2:
            picture = np.repeat(picture[..., None], 3, axis=-1)
        if any(self._surplus):
            rows, columns = self._surplus
            picture = np.pad(picture, [(0, rows), (0, columns), (0, 0)], mode="edge")
        return np.ascontiguousarray(picture)

    def _converted(self, frame: av.VideoFrame) -> av.VideoFrame:
        width, height = self.size
        return self._reformatter.reformat(
            frame,
            width,
            height,
            self._codec.pixels,
            dst_colorspace=Colorspace.ITU709 if self._codec.tagged else None,
            dst_color_range=ColorRange.MPEG if self._codec.tagged else None,
            interpolation=Interpolation.POINT,
        )

    def _verify(self) -> None:
        try:
            decoded = count_frames(self._partial)
        except FileFormatError as error:
            raise JobError(f"{self.path}: the video does not decode after writing") from error
        if decoded != self.frames:
            raise JobError(
                f"{self.path}: {self.frames} frames were written, {decoded} decode; not kept"
            )

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (av.FFmpegError, OSError) as error:
            raise JobError(f"{self.path}: video not written ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _check_positive(name: str, value: int | Fraction) -> None:
    if not value > 0:
        raise InputError(f"{name} {value}: expected a number above 0 for a video")
