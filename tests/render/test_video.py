"""Video files are whole, countable and true to their pictures, or they are not there."""

import os
import struct
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import av
import numpy as np
import pytest

from fl_saliency.errors import FileFormatError, InputError, JobError
from fl_saliency.render import video
from fl_saliency.render.video import VideoWriter, count_frames, require_encoder

NAMES = {"ffv1": "v.mkv", "libx264": "v.mp4"}
both_codecs = pytest.mark.parametrize("codec", NAMES)


def noise(count, height, width):
    draws = np.random.default_rng(5)
    return draws.integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def write(path, pictures, codec, **options):
    height, width = pictures.shape[1:3]
    with VideoWriter(path, width, height, 30, codec, **options) as writer:
        for picture in pictures:
            writer.add(picture)


def decode(path):
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return np.stack(frames)


def stream_facts(path):
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        return {
            "codec": stream.codec_context.name,
            "pix_fmt": stream.codec_context.pix_fmt,
            "size": (stream.width, stream.height),
            "rate": stream.average_rate,
            "container": container.format.name,
            "metadata": {key.lower(): value for key, value in container.metadata.items()},
        }


def test_ffv1_decodes_to_the_very_pictures(tmp_path):
    pictures = noise(7, 33, 21)
    write(tmp_path / "v.mkv", pictures, "ffv1")
    np.testing.assert_array_equal(decode(tmp_path / "v.mkv"), pictures)


@both_codecs
def test_a_file_holds_as_many_frames_as_were_added(tmp_path, codec):
    path = tmp_path / NAMES[codec]
    with VideoWriter(path, 16, 8, 30, codec) as writer:
        for picture in noise(75, 8, 16):
            writer.add(picture)
    assert writer.frames == count_frames(path) == 75
    assert list(tmp_path.iterdir()) == [path]


def test_h264_is_what_browsers_play(tmp_path):
    path = tmp_path / "v.mp4"
    write(path, noise(3, 8, 16), "libx264")
    facts = stream_facts(path)
    assert (facts["codec"], facts["pix_fmt"]) == ("h264", "yuv420p")
    assert "mp4" in facts["container"]
    data = path.read_bytes()
    assert 0 < data.index(b"moov") < data.index(b"mdat")  # the index first: plays while loading


def test_ffv1_is_stored_as_the_original_stores_it(tmp_path):
    write(tmp_path / "v.mkv", noise(3, 8, 16), "ffv1")
    facts = stream_facts(tmp_path / "v.mkv")
    assert (facts["codec"], facts["pix_fmt"], facts["rate"]) == ("ffv1", "bgra", 30)
    assert facts["container"] == "matroska,webm"


@pytest.mark.parametrize("colour", [(255, 0, 0), (0, 255, 0), (0, 0, 255), (200, 72, 72)])
@both_codecs
def test_a_colour_comes_back_as_itself(tmp_path, codec, colour):
    path = tmp_path / NAMES[codec]
    write(path, np.full((2, 16, 16, 3), colour, dtype=np.uint8), codec)
    tolerance = 0 if codec == "ffv1" else 4
    np.testing.assert_allclose(decode(path)[0, 8, 8], colour, atol=tolerance)


def test_h264_pixels_drawn_twice_as_large_keep_their_own_colours(tmp_path):
    red, blue = (255, 0, 0), (0, 0, 255)
    columns = np.array([red, blue] * 8, dtype=np.uint8)
    pictures = np.broadcast_to(columns, (2, 16, 16, 3))
    write(tmp_path / "v.mp4", pictures, "libx264", scale=2)
    decoded = decode(tmp_path / "v.mp4")[0].astype(int)
    assert decoded.shape == (32, 32, 3)
    expected = pictures[0].repeat(2, axis=0).repeat(2, axis=1)
    assert np.abs(decoded - expected).mean() < 8


@pytest.mark.parametrize(("scale", "size"), [(1, (22, 34)), (3, (66, 102)), (2, (42, 66))])
def test_h264_pads_odd_sizes_to_even_ones(tmp_path, scale, size):
    path = tmp_path / "v.mp4"
    write(path, noise(2, 33, 21), "libx264", scale=scale)
    assert stream_facts(path)["size"] == size


@both_codecs
def test_grey_pictures_give_a_readable_grey_video(tmp_path, codec):
    path = tmp_path / NAMES[codec]
    with VideoWriter(path, 16, 16, 30, codec) as writer:
        writer.add(np.full((16, 16), 180, dtype=np.uint8))
    np.testing.assert_allclose(decode(path)[0], 180, atol=4)


@both_codecs
def test_the_same_pictures_give_the_same_bytes_with_their_metadata(tmp_path, codec):
    first, second = tmp_path / f"a{NAMES[codec]}", tmp_path / f"b{NAMES[codec]}"
    for path in (first, second):
        write(path, noise(4, 16, 16), codec, metadata={"protocol": "skip 4"})
    assert first.read_bytes() == second.read_bytes()
    assert stream_facts(first)["metadata"]["protocol"] == "skip 4"


def test_a_frame_rate_may_be_a_fraction(tmp_path):
    with VideoWriter(tmp_path / "v.mp4", 16, 16, Fraction(15, 2), "libx264") as writer:
        for picture in noise(5, 16, 16):
            writer.add(picture)
    assert stream_facts(tmp_path / "v.mp4")["rate"] == Fraction(15, 2)


@both_codecs
def test_a_lost_frame_is_an_error_and_leaves_no_file(tmp_path, codec, monkeypatch):
    writer = VideoWriter(tmp_path / NAMES[codec], 16, 16, 30, codec)
    for picture in noise(4, 16, 16):
        writer.add(picture)
    writer.frames = 5  # as if the encoder had swallowed one
    with pytest.raises(JobError, match="5 frames were written, 4 decode"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def write_then_raise(path, codec, failure):
    with VideoWriter(path, 16, 16, 30, codec) as writer:
        writer.add(noise(1, 16, 16)[0])
        raise failure


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
@both_codecs
def test_an_exception_or_ctrl_c_leaves_no_file(tmp_path, codec, failure):
    with pytest.raises(failure):
        write_then_raise(tmp_path / NAMES[codec], codec, failure)
    assert list(tmp_path.iterdir()) == []


@both_codecs
def test_a_failed_rewrite_keeps_the_old_file(tmp_path, codec):
    path = tmp_path / NAMES[codec]
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), VideoWriter(path, 16, 16, 30, codec):
        raise RuntimeError
    assert path.read_bytes() == b"old"


@both_codecs
def test_a_video_without_frames_is_an_error(tmp_path, codec):
    with pytest.raises(JobError, match="at least one frame"):
        VideoWriter(tmp_path / NAMES[codec], 16, 16, 30, codec).close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_a_job_error(tmp_path):
    with pytest.raises(JobError, match=r"gone/v\.mkv: video not written \(No such file"):
        VideoWriter(tmp_path / "gone" / "v.mkv", 16, 16, 30, "ffv1")


def test_a_full_disk_is_a_job_error(tmp_path, monkeypatch):
    writer = VideoWriter(tmp_path / "v.mkv", 16, 16, 30, "ffv1")

    def full(packets):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_container", _Proxy(writer._container, mux=full))
    with pytest.raises(JobError, match="No space left on device"), writer:
        writer.add(noise(1, 16, 16)[0])
    assert list(tmp_path.iterdir()) == []


class _Proxy:
    def __init__(self, target, **replaced):
        self._target, self._replaced = target, replaced

    def __getattr__(self, name):
        return self._replaced.get(name) or getattr(self._target, name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 16, 30, "ffv1"), "width 0"),
        ((16, -2, 30, "ffv1"), "height -2"),
        ((16, 16, 0, "ffv1"), "fps 0"),
        ((16, 16, 30, "libx265"), "unknown video encoder 'libx265'; did you mean 'libx264'"),
    ],
)
def test_bad_settings_are_named_before_a_file_appears(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        VideoWriter(tmp_path / "v.mkv", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "picture",
    [
        np.zeros((8, 16, 3), dtype=np.uint8),
        np.zeros((16, 16, 4), dtype=np.uint8),
        np.zeros((16, 16, 3), dtype=np.float32),
    ],
)
def test_a_picture_of_another_shape_or_dtype_is_refused(tmp_path, picture):
    with (
        pytest.raises(ValueError, match="expected uint8"),
        VideoWriter(tmp_path / "v.mkv", 16, 16, 30, "ffv1") as writer,
    ):
        writer.add(picture)


def test_require_encoder_finds_the_installed_ones():
    for name in NAMES:
        require_encoder(name)


def test_require_encoder_tells_of_a_missing_one(monkeypatch):
    def missing(name, mode):
        raise av.codec.codec.UnknownCodecError(name)

    monkeypatch.setattr(video.av, "Codec", missing)
    with pytest.raises(InputError, match="'libx264' is missing from the installed av"):
        require_encoder("libx264")


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"\x1a\x45\xdf\xa3" * 9])
def test_count_frames_refuses_what_is_no_video(tmp_path, content):
    path = tmp_path / "v.mkv"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"v\.mkv"):
        count_frames(path)


@pytest.mark.parametrize(
    ("codec", "keep", "message"),
    [
        ("ffv1", 0.5, r"v\.mkv: damaged \(File ended prematurely\)"),
        ("ffv1", 0.98, r"v\.mkv: damaged \(File ended prematurely"),
        ("libx264", 0.5, r"v\.mp4: (damaged|cannot be decoded|breaks off)"),
        ("libx264", 0.98, r"v\.mp4: (damaged|cannot be decoded|breaks off)"),
    ],
)
def test_count_frames_refuses_a_video_that_breaks_off_each_time(tmp_path, codec, keep, message):
    path = tmp_path / NAMES[codec]
    write(path, noise(90, 16, 16), codec)
    os.truncate(path, int(path.stat().st_size * keep))
    for _ in range(2):  # FFmpeg's log tells of the same damage twice
        with pytest.raises(FileFormatError, match=message):
            count_frames(path)


def test_count_frames_refuses_a_video_with_fewer_frames_than_its_header_promises(tmp_path):
    path = tmp_path / "v.mkv"
    write(path, noise(30, 8, 8), "ffv1")
    data = bytearray(path.read_bytes())
    duration = data.index(b"\x44\x89\x88") + 3  # its id and size; a double, in milliseconds
    struct.pack_into(">d", data, duration, 2 * struct.unpack_from(">d", data, duration)[0])
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="breaks off: 30 frames, its header says 60"):
        count_frames(path)


@both_codecs
def test_count_frames_refuses_what_its_decoder_only_mends(tmp_path, codec):
    path = tmp_path / NAMES[codec]
    write(path, noise(30, 64, 64), codec)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(byte ^ 0x55 for byte in data[middle : middle + 40])
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"v\.m..: (damaged|cannot be decoded)"):
        count_frames(path)


def test_count_frames_opens_no_playlist(tmp_path):
    path = tmp_path / "v.mkv"
    path.write_text("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n")
    with pytest.raises(FileFormatError, match="neither Matroska nor MP4"):
        count_frames(path)


def test_videos_can_be_counted_at_the_same_time(tmp_path):
    whole = tmp_path / "whole.mkv"
    write(whole, noise(60, 32, 32), "ffv1")
    before = av.logging.get_level(), av.logging.get_skip_repeated()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(count_frames, [whole] * 12)) == {60}
    assert (av.logging.get_level(), av.logging.get_skip_repeated()) == before


@pytest.mark.parametrize("fps", [1, Fraction(15, 2), Fraction(30000, 1001), 60, 144])
@pytest.mark.parametrize("frames", [1, 2, 3, 100])
@both_codecs
def test_a_whole_video_has_the_frames_that_its_header_promises_at_every_rate(
    tmp_path, codec, frames, fps
):
    path = tmp_path / NAMES[codec]
    with VideoWriter(path, 16, 16, fps, codec) as writer:
        for picture in noise(frames, 16, 16):
            writer.add(picture)
    assert count_frames(path) == frames
