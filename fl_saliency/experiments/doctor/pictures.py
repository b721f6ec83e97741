"""Pictures (PNG) and videos."""

import struct
import zlib
from pathlib import Path

from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.doctor.files import checked
from fl_saliency.experiments.doctor.report import Report, count
from fl_saliency.render.video import count_frames

__all__ = ["examine_picture", "examine_video", "examine_videos"]

_VIDEOS = ("perception.mkv", "perception.mp4")


def examine_picture(report: Report, name: str) -> None:
    """The PNG `name`, if it is there, is whole."""
    if name in report.names:
        with report.reading(name) as path:
            width, height = _png_size(checked(path))
            report.ok(name, f"{width} x {height} pixels")


def _png_size(path: Path) -> tuple[int, int]:
    """Width and height of the PNG at `path`; every chunk's checksum is right and none is missing.

    Source: the PNG specification (ISO/IEC 15948), section 5.
    """
    data = path.read_bytes()
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        raise FileFormatError(f"{path}: not a PNG picture")
    start, kind = 8, b""
    while kind != b"IEND":
        if start + 12 > len(data):
            raise FileFormatError(f"{path}: breaks off")
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 12 + length
        if end > len(data):
            raise FileFormatError(f"{path}: breaks off")
        if zlib.crc32(data[start + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise FileFormatError(f"{path}: damaged: the checksum of a chunk is wrong")
        start = end
    if start < len(data):
        raise FileFormatError(f"{path}: goes on behind its end")
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def examine_videos(report: Report) -> None:
    """Every frame decodes, and both videos have the same number of them."""
    frames = {name: examine_video(report, name) for name in _VIDEOS if name in report.names}
    counts = [number for number in frames.values() if number is not None]
    if len(set(counts)) > 1:
        shorter = min(frames, key=lambda name: frames[name] or 0)
        report.bad(shorter, f"{min(counts)} frames, the other video has {max(counts)}")


def examine_video(report: Report, name: str) -> int | None:
    """Every frame of the video decodes; their number, or None if it is damaged."""
    with report.reading(name) as path:
        frames = count_frames(checked(path))
        report.ok(name, count(frames, "frame"))
        return frames
    return None
