import gc
import subprocess
import sys
import warnings
import weakref
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import streaming_image_env
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from streaming_image_env import FrameStreamError, StreamingImageEnv


def frame(value: int, shape: tuple[int, ...] = (4, 3, 3)) -> np.ndarray:
    return np.full(shape, value, np.uint8)


FRAMES = [frame(value) for value in (10, 20, 30, 40)]


def play(env: StreamingImageEnv) -> list[tuple[int, bool]]:
    """(first pixel, terminated) of every frame of an episode."""
    seen = [(int(env.reset()[0].flat[0]), False)]
    while not seen[-1][1]:
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert (reward, truncated) == (0.0, False)
        seen.append((int(obs.flat[0]), terminated))
    return seen


WHOLE = [(10, False), (20, False), (30, False), (40, True)]


def test_reset_yields_the_first_frame_and_each_step_the_next():
    assert play(StreamingImageEnv(FRAMES)) == WHOLE


def test_the_step_that_yields_the_last_frame_terminates():
    env = StreamingImageEnv(FRAMES[:2])
    env.reset()
    assert env.step(0)[2] is True


def test_a_single_frame_is_yielded_again_by_its_one_step():
    assert play(StreamingImageEnv(FRAMES[:1])) == [(10, False), (10, True)]


def test_any_action_goes():
    env = StreamingImageEnv(FRAMES, num_actions=4)
    env.reset()
    seen = [int(env.step(action)[0].flat[0]) for action in (-1, None, "left")]
    assert seen == [20, 30, 40]
    assert env.action_space == gymnasium.spaces.Discrete(4)
    assert StreamingImageEnv(FRAMES).action_space == gymnasium.spaces.Discrete(18)


def test_stepping_before_reset_or_past_the_end_is_an_error():
    env = StreamingImageEnv(FRAMES[:2])
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    env.step(0)
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert env.reset()[0].flat[0] == 10


@pytest.mark.parametrize(
    "source",
    [FRAMES, tuple(FRAMES), np.stack(FRAMES), lambda: iter(FRAMES), lambda: FRAMES],
    ids=["list", "tuple", "array", "function of an iterator", "function of a list"],
)
def test_what_can_be_read_again_is_played_back_again(source):
    env = StreamingImageEnv(source)
    assert [play(env) for _ in range(3)] == [WHOLE] * 3


def test_reset_in_the_middle_starts_over():
    env = StreamingImageEnv(FRAMES)
    env.reset()
    env.step(0)
    assert play(env) == WHOLE


def test_an_iterator_is_played_back_once_and_then_refused():
    env = StreamingImageEnv(iter(FRAMES))
    assert play(env) == WHOLE
    with pytest.raises(FrameStreamError, match="can be played back only once"):
        env.reset()


def test_making_an_env_takes_one_frame_and_no_more():
    taken = []

    def source():
        for index, image in enumerate(FRAMES):
            taken.append(index)
            yield image

    env = StreamingImageEnv(source)
    assert taken == [0]
    env.reset()
    assert taken == [0, 1]
    env.step(0)
    assert taken == [0, 1, 2]


def test_no_more_than_two_frames_are_held():
    alive: list[weakref.ref] = []

    class Tracked(np.ndarray):
        pass

    def source():
        for value in range(50):
            image = frame(value).view(Tracked)
            alive.append(weakref.ref(image))
            yield image
            del image

    env = StreamingImageEnv(source)
    env.reset()
    for _ in range(40):
        env.step(0)
    gc.collect()
    assert sum(ref() is not None for ref in alive) <= 1  # ours are copies; the source holds its own
    held = [v for v in vars(env).values() if isinstance(v, tuple) and hasattr(v, "frame")]
    assert len(held) == 2


def test_a_source_that_fills_one_array_again_and_again_is_played_back_right():
    def source():
        buffer = frame(0)
        for image in FRAMES:
            buffer[:] = image
            yield buffer

    assert play(StreamingImageEnv(source)) == WHOLE


def test_an_observation_is_the_callers_to_change():
    env = StreamingImageEnv(FRAMES, render_mode="rgb_array")
    obs, _ = env.reset()
    obs[:] = 255
    assert env.render().flat[0] == 10
    assert FRAMES[0].flat[0] == 10


def test_info_has_the_position_and_the_id():
    env = StreamingImageEnv(
        [(f"RZ_1_{n}", image) for n, image in zip((5, 7, 9), FRAMES, strict=False)]
    )
    infos = [env.reset()[1], env.step(0)[4], env.step(0)[4]]
    assert infos == [
        {"frame_index": 0, "frame_id": "RZ_1_5"},
        {"frame_index": 1, "frame_id": "RZ_1_7"},
        {"frame_index": 2, "frame_id": "RZ_1_9"},
    ]


def test_info_has_no_id_without_ids():
    assert StreamingImageEnv(FRAMES).reset()[1] == {"frame_index": 0}


def test_the_observation_space_is_the_first_frames():
    env = StreamingImageEnv([frame(1, (210, 160, 3))])
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (210, 160, 3), np.uint8)
    assert env.reset()[0] in env.observation_space


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "holds no frame"),
        (lambda: iter(()), "holds no frame"),
        ([frame(1).astype(float)], r"frame 0: expected uint8 \[H, W, C\], got float64 \[4, 3, 3\]"),
        ([frame(1)[0]], r"got uint8 \[3, 3\]"),
        ([frame(1)[:0]], r"got uint8 \[0, 3, 3\]"),
        ([None], "frame 0"),
    ],
)
def test_what_is_no_stream_of_images_is_refused_at_once(frames, message):
    with pytest.raises(FrameStreamError, match=message):
        StreamingImageEnv(frames)


def test_a_frame_of_another_shape_is_named():
    env = StreamingImageEnv([frame(1), frame(2), frame(3, (5, 3, 3))])
    env.reset()
    with pytest.raises(FrameStreamError, match=r"frame 2: .* shape \[4, 3, 3\], got \[5, 3, 3\]"):
        env.step(0)


def test_an_error_of_the_source_comes_through():
    def source():
        yield FRAMES[0]
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        StreamingImageEnv(source).reset()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"num_actions": 0}, "num_actions"), ({"render_mode": "human"}, "render_mode.*'human'")],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        StreamingImageEnv(FRAMES, **arguments)


def test_render_shows_the_current_frame():
    env = StreamingImageEnv(FRAMES, render_mode="rgb_array")
    assert env.render() is None
    env.reset()
    env.step(0)
    np.testing.assert_array_equal(env.render(), FRAMES[1])
    silent = StreamingImageEnv(FRAMES)
    silent.reset()
    assert silent.render() is None


def test_close_closes_a_generator_and_reset_starts_anew():
    closed = []

    def source():
        try:
            yield from FRAMES
        finally:
            closed.append(True)

    env = StreamingImageEnv(source)
    env.reset()
    env.close()
    env.close()
    assert closed == [True]
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert play(env) == WHOLE


def test_reset_in_the_middle_closes_the_generator():
    closed = []

    def source():
        try:
            yield from FRAMES
        finally:
            closed.append(True)

    env = StreamingImageEnv(source)
    env.reset()
    env.reset()
    assert closed == [True]


def test_gymnasiums_checker_has_nothing_to_say():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (5, 210, 160, 3), np.uint8)
    with warnings.catch_warnings():
        # The env is made with frames, not by gymnasium.make, so that it has no spec.
        warnings.filterwarnings("ignore", message=".*not having a spec")
        check_env(StreamingImageEnv(images, render_mode="rgb_array"))


def test_gymnasiums_wrappers_go_around_it():
    env = gymnasium.wrappers.TimeLimit(StreamingImageEnv(FRAMES), max_episode_steps=2)
    env = gymnasium.wrappers.RecordEpisodeStatistics(env)
    env.reset(seed=1)
    env.step(0)
    obs, _, terminated, truncated, info = env.step(0)
    assert (int(obs.flat[0]), terminated, truncated, info["episode"]["l"]) == (30, False, True, 2)


def test_the_package_is_typed_and_stands_alone():
    assert (Path(streaming_image_env.__file__).parent / "py.typed").is_file()
    code = "import sys, streaming_image_env; print([m for m in sys.modules if 'fl_saliency' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
