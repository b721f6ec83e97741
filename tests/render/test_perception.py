"""Perception videos show the drawn frames, all of them, in the right colours, or nothing."""

import io
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from fl_saliency.base import AttentionGeometry
from fl_saliency.errors import InputError, JobError
from fl_saliency.render import overlay, perception, video
from fl_saliency.render.perception import PerceptionRecorder, save_still
from fl_saliency.render.video import VideoWriter, count_frames

SPARSE = AttentionGeometry(receptive_field=36, stride=8, padding=0)
DENSE = AttentionGeometry(receptive_field=13, stride=1, padding=6)
FACTS = json.loads((Path(__file__).parents[1] / "golden" / "perception_mkv.json").read_text())
NAMES = ["perception.mkv", "perception.mp4", "perception.png"]


def game(frames, envs, cells=7, screen=(210, 160)):
    """Made-up games: (screens, newest, attention) with a leading axis of frames."""
    draws = np.random.default_rng(11)
    blocks = draws.integers(0, 256, (frames, envs, *screen, 3), dtype=np.uint8)
    newest = draws.integers(0, 256, (frames, envs, 84, 84), dtype=np.uint8)
    attention = draws.random((frames, envs, cells, cells)).astype(np.float32)
    return blocks, newest, attention


def recorder(directory, envs, *, raw=True, processed=True, geometry=SPARSE, **options):
    return PerceptionRecorder(
        directory, raw=raw, processed=processed, geometry=geometry, num_envs=envs, **options
    )


def record(directory, steps, *, active=None, **options):
    screens, newest, attention = steps
    envs = newest.shape[1]
    active = np.ones((len(newest), envs), dtype=bool) if active is None else np.array(active)
    with recorder(directory, envs, **options) as made:
        for step in zip(screens, newest, attention, active, strict=True):
            made.add(*step)
        return made.close()


def decode(path):
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def drawn(screens, newest, attention, geometry=SPARSE):
    """What the video must show while every env plays, drawn in one go."""
    flat = attention.reshape(-1, *attention.shape[2:])
    maps = overlay.attention_to_input(flat, geometry)
    maps = overlay.normalise(maps, float(maps.max())).reshape(*newest.shape)
    raw = overlay.draw_raw(screens, overlay.upscale(maps, screens.shape[2:4]))
    both = overlay.stack_pictures(raw, overlay.draw_processed(newest, maps))
    return np.stack([overlay.tile(overlay.to_uint8(pictures)) for pictures in both])


@pytest.mark.parametrize(("cells", "geometry"), [(7, SPARSE), (84, DENSE)])
def test_the_lossless_video_decodes_to_the_drawn_frames(tmp_path, cells, geometry):
    steps = game(5, 3, cells)
    report = record(tmp_path, steps, geometry=geometry)
    np.testing.assert_array_equal(
        decode(tmp_path / "perception.mkv"), drawn(*steps, geometry=geometry)
    )
    assert report.frames == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    assert [path.name for path in report.files] == NAMES


def test_the_lossless_video_has_the_facts_of_the_originals(tmp_path):
    report = record(tmp_path, game(3, 2))
    with av.open(str(tmp_path / "perception.mkv")) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == FACTS["codec"]
        assert stream.codec_context.pix_fmt == FACTS["pix_fmt"]
        assert (stream.width, stream.height) == (FACTS["width"], FACTS["height"])
        assert str(stream.average_rate) == FACTS["average_rate"]
    assert (report.width, report.height) == (FACTS["width"], FACTS["height"])


def test_the_browser_video_shows_the_same_pictures_twice_as_large(tmp_path):
    smooth = [np.full_like(part, 90) for part in game(4, 2)[:2]]
    steps = (*smooth, game(4, 2)[2])
    report = record(tmp_path, steps)
    assert report.scale == 2
    decoded = decode(tmp_path / "perception.mp4").astype(int)
    expected = drawn(*steps).repeat(2, axis=1).repeat(2, axis=2)
    assert decoded.shape == expected.shape
    assert np.abs(decoded - expected).mean() < 4


def test_red_is_red_in_both_videos_and_in_the_still(tmp_path):
    screens = np.zeros((3, 1, 210, 160, 3), dtype=np.uint8)
    screens[..., 0] = 255
    newest = np.zeros((3, 1, 84, 84), dtype=np.uint8)
    record(tmp_path, (screens, newest, np.zeros((3, 1, 7, 7), dtype=np.float32)), geometry=None)
    np.testing.assert_array_equal(decode(tmp_path / "perception.mkv")[:, :210], screens[:, 0])
    played = decode(tmp_path / "perception.mp4")[1, 10:-340]
    np.testing.assert_allclose(played, np.broadcast_to([255, 0, 0], played.shape), atol=4)
    still = cv2.imread(str(tmp_path / "perception.png"))[..., ::-1]
    np.testing.assert_array_equal(still[:420], np.broadcast_to([255, 0, 0], (420, 320, 3)))


def test_attention_is_green_and_the_newest_frame_blue_below_the_screen(tmp_path):
    screens, newest, attention = game(1, 1)
    newest[:] = 200
    attention[:] = 0
    attention[0, 0, 0, 0] = 1  # rows and columns 0 to 35 of 84: the top left corner
    record(tmp_path, (screens, newest, attention))
    frame = decode(tmp_path / "perception.mkv")[0]
    np.testing.assert_array_equal(frame[210 + 10, 10], [0, 255, 200])
    np.testing.assert_array_equal(frame[210 + 150, 150], [0, 0, 200])
    np.testing.assert_array_equal(frame[10, 10], (screens[0, 0, 10, 10] + 255.0) // 2)
    np.testing.assert_array_equal(frame[200, 150], screens[0, 0, 200, 150] // 2)


@pytest.mark.parametrize(
    ("raw", "processed", "envs", "size"),
    [
        (True, False, 2, (420, 160)),
        (False, True, 2, (168, 84)),
        (True, True, 3, (740, 320)),
        (True, True, 5, (1110, 320)),
    ],
)
def test_the_picture_holds_the_asked_parts_and_all_envs(tmp_path, raw, processed, envs, size):
    screens, newest, attention = game(1, envs)
    with recorder(tmp_path, envs, raw=raw, processed=processed) as made:
        made.add(
            screens[0] if raw else None,
            newest[0] if processed else None,
            attention[0],
            np.ones(envs, dtype=bool),
        )
        report = made.close()
    assert (report.height, report.width) == size


def test_screens_of_another_height_are_drawn_whole(tmp_path):
    steps = game(2, 1, screen=(250, 160))
    record(tmp_path, steps, screen_shape=(250, 160))
    np.testing.assert_array_equal(decode(tmp_path / "perception.mkv"), drawn(*steps))


def test_the_maximum_is_taken_over_the_whole_run(tmp_path):
    screens, newest, attention = game(2, 1)
    newest[:] = 0
    attention[:] = 1
    attention[1] = 4
    record(tmp_path, (screens, newest, attention), raw=True)
    frames = decode(tmp_path / "perception.mkv")[:, 210:, :, 1]
    assert [frame.max() for frame in frames] == [63, 255]  # a quarter, and all


def test_a_finished_env_keeps_its_last_picture_dimmed_and_does_not_set_the_maximum(tmp_path):
    screens, newest, attention = game(3, 2)
    loud = attention.copy()
    loud[1:, 1] *= 100
    active = [[True, True], [True, False], [True, False]]
    record(tmp_path, (screens, newest, loud), active=active)
    frames = decode(tmp_path / "perception.mkv")
    attention[1:, 1] = 0  # not counted
    expected = drawn(screens, newest, attention)
    np.testing.assert_array_equal(frames[:, :370], expected[:, :370])
    np.testing.assert_array_equal(frames[0, 370:], expected[0, 370:])
    for frame in frames[1:]:
        np.testing.assert_array_equal(frame[370:], expected[0, 370:] // 3)


def test_a_frame_in_which_no_env_plays_any_more_is_all_dimmed(tmp_path):
    steps = game(2, 2)
    report = record(tmp_path, steps, active=[[True, True], [False, False]])
    first, second = decode(tmp_path / "perception.mkv")
    np.testing.assert_array_equal(second, first // 3)
    assert report.still_frame == 0


def test_an_env_that_never_played_is_black(tmp_path):
    steps = game(2, 2)
    record(tmp_path, steps, active=[[True, False]] * 2)
    assert decode(tmp_path / "perception.mkv")[:, 370:].max() == 0


def test_without_attention_the_pictures_are_shown_as_they_are(tmp_path):
    screens, newest, attention = game(3, 1)
    report = record(tmp_path, (screens, newest, attention), geometry=None)
    frames = decode(tmp_path / "perception.mkv")
    np.testing.assert_array_equal(frames[:, :210], screens[:, 0])
    below = frames[:, 210:]
    assert (below == below[..., :1]).all()
    expected = overlay.upscale(newest[:, 0], (160, 160))
    np.testing.assert_allclose(below[..., 0], expected, atol=0.5)
    assert report.still_frame == 1


def test_attention_that_is_zero_all_along_still_gives_a_video(tmp_path):
    screens, newest, attention = game(3, 1)
    report = record(tmp_path, (screens, newest, 0 * attention))
    np.testing.assert_array_equal(decode(tmp_path / "perception.mkv")[:, :210], screens[:, 0] // 2)
    assert report.still_frame == 1


def test_the_still_is_the_frame_of_the_highest_contrast(tmp_path):
    screens, newest, attention = game(4, 1)
    attention[2, 0, :3] *= 30
    report = record(tmp_path, (screens, newest, attention))
    assert report.still_frame == 2
    still = cv2.imread(str(tmp_path / "perception.png"))[..., ::-1]
    expected = decode(tmp_path / "perception.mkv")[2].repeat(2, axis=0).repeat(2, axis=1)
    np.testing.assert_array_equal(still, expected)


def test_save_still_enlarges_without_smoothing(tmp_path):
    picture = np.array([[[255, 0, 0], [0, 0, 255]]], dtype=np.uint8)
    save_still(tmp_path / "a.png", picture, scale=3)
    loaded = cv2.imread(str(tmp_path / "a.png"))[..., ::-1]
    np.testing.assert_array_equal(loaded, picture.repeat(3, axis=0).repeat(3, axis=1))


def test_metadata_is_in_both_videos(tmp_path):
    record(tmp_path, game(1, 1), metadata={"protocol": "frame_skip=4"})
    for name in NAMES[:2]:
        with av.open(str(tmp_path / name)) as container:
            found = {key.lower(): value for key, value in container.metadata.items()}
        assert found["protocol"] == "frame_skip=4"


def test_closing_twice_gives_the_same_report(tmp_path):
    screens, newest, attention = game(1, 1)
    made = recorder(tmp_path, 1)
    made.add(screens[0], newest[0], attention[0, ..., None], np.ones(1, dtype=bool))
    assert made.close() is made.close()


def test_no_frames_is_an_error(tmp_path):
    with pytest.raises(JobError, match="no frame was recorded"):
        recorder(tmp_path, 1).close()
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_draw_is_an_error(tmp_path):
    with pytest.raises(InputError, match="raw screens, processed frames or both"):
        recorder(tmp_path, 1, raw=False, processed=False)


@pytest.mark.parametrize("options", [{"envs": 0}, {"envs": 1, "fps": 0}])
def test_zero_envs_or_frames_a_second_are_refused(tmp_path, options):
    with pytest.raises(InputError, match="above 0"):
        recorder(tmp_path, **options)


def test_a_missing_encoder_is_found_at_the_start(tmp_path, monkeypatch):
    def missing(name, mode):
        raise av.codec.codec.UnknownCodecError(name)

    monkeypatch.setattr(video.av, "Codec", missing)
    with pytest.raises(InputError, match="missing"):
        recorder(tmp_path, 1)


@pytest.mark.parametrize("spoilt", ["screens", "newest", "attention", "active"])
def test_a_misshapen_or_missing_array_is_named(tmp_path, spoilt):
    screens, newest, attention = (part[0] for part in game(1, 2))
    arrays = {"screens": screens, "newest": newest, "attention": attention}
    arrays["active"] = np.ones(2, dtype=bool)
    made = recorder(tmp_path, 2)
    for wrong in (arrays[spoilt][:1], None):
        if spoilt == "active" and wrong is None:
            continue
        with pytest.raises(ValueError, match=spoilt):
            made.add(**{**arrays, spoilt: wrong})
    made.abort()


def test_attention_that_is_not_finite_ends_the_recording(tmp_path):
    screens, newest, attention = game(1, 1)
    attention[0, 0, 3, 3] = np.nan
    with pytest.raises(JobError, match="frame 0 is not finite"), recorder(tmp_path, 1) as made:
        made.add(screens[0], newest[0], attention[0], np.ones(1, dtype=bool))
    assert list(tmp_path.iterdir()) == []


def record_then_raise(directory, failure):
    with recorder(directory, 1) as made:
        for step in zip(*game(1, 1), np.ones((1, 1), dtype=bool), strict=True):
            made.add(*step)
        raise failure


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_an_exception_while_recording_leaves_nothing(tmp_path, failure):
    with pytest.raises(failure):
        record_then_raise(tmp_path, failure)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [JobError, KeyboardInterrupt])
def test_a_failure_while_encoding_leaves_nothing(tmp_path, monkeypatch, failure):
    def break_off(self, picture, add=VideoWriter.add):
        if self.frames == 2:
            raise failure("broke off")
        add(self, picture)

    monkeypatch.setattr(VideoWriter, "add", break_off)
    with pytest.raises(failure):
        record(tmp_path, game(4, 1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("short", NAMES[:2])
def test_a_video_that_decodes_to_fewer_frames_fails_the_job_and_leaves_nothing(
    tmp_path, monkeypatch, short
):
    def one_less(path):
        return count_frames(path) - (Path(short).stem in path.name and path.suffix == short[-4:])

    monkeypatch.setattr(video, "count_frames", one_less)
    with pytest.raises(JobError, match=r"4 frames were written, 3 decode"):
        record(tmp_path, game(4, 1))
    assert list(tmp_path.iterdir()) == []


def test_a_still_that_cannot_be_written_fails_the_job_and_leaves_nothing(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise JobError("no picture")

    monkeypatch.setattr(perception, "save_still", fail)
    with pytest.raises(JobError, match="no picture"):
        record(tmp_path, game(2, 1))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("progress", "terminal"), [(True, True), (True, False), (False, True)])
def test_the_progress_bar_is_shown_on_a_terminal_only(tmp_path, monkeypatch, progress, terminal):
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    screens, newest, attention = game(2, 1)
    made = recorder(tmp_path, 1)
    made.add(screens[0], newest[0], attention[0], np.ones(1, dtype=bool))
    made.close(progress=progress)
    assert bool(screen.getvalue()) == (progress and terminal)


GROWTH = textwrap.dedent(
    """
    import re, sys
    from pathlib import Path
    import numpy as np
    from fl_saliency.base import AttentionGeometry
    from fl_saliency.render.perception import PerceptionRecorder

    draws = np.random.default_rng(0)
    colours = draws.integers(0, 256, (16, 2, 1, 1, 3), dtype=np.uint8)
    screens = np.zeros((16, 2, 210, 160, 3), dtype=np.uint8) + colours
    newest = np.zeros((16, 2, 84, 84), dtype=np.uint8) + colours[..., 0]
    attention = np.ones((16, 2, 7, 7), dtype=np.float32)
    geometry = AttentionGeometry(receptive_field=36, stride=8, padding=0)
    with PerceptionRecorder(
        Path(sys.argv[1]), raw=True, processed=True, geometry=geometry, num_envs=2
    ) as recorder:
        for index in range(int(sys.argv[2])):
            step = index % 16
            recorder.add(screens[step], newest[step], attention[step], np.ones(2, dtype=bool))
        assert recorder.close().frames == int(sys.argv[2])
    # Not ru_maxrss: that one remembers the parent's size across the fork.
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
    print(int(peak[1]) / 1024)
    """
)


on_linux = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)


def peak_megabytes(directory, frames):
    command = [sys.executable, "-c", GROWTH, str(directory), str(frames)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


@on_linux
def test_memory_does_not_grow_with_a_short_recording(tmp_path):
    # Kept in memory, 70 more frames of two envs would be 25 MB drawn and 15 MB as they come.
    assert peak_megabytes(tmp_path, 100) - peak_megabytes(tmp_path, 30) < 10


@on_linux
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_memory_does_not_grow_with_a_long_recording(tmp_path):
    assert peak_megabytes(tmp_path, 10_000) - peak_megabytes(tmp_path, 1_000) < 100
