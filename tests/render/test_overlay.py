"""Drawing rules against the original's exact pictures (golden/visualization)."""

import hashlib
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import convolve2d

from fl_saliency.base import AttentionGeometry
from fl_saliency.render import overlay

GOLDEN = Path(__file__).parents[1] / "golden"
VALUES = json.loads((GOLDEN / "visualization.json").read_text())["values"]
ARRAYS = np.load(GOLDEN / "visualization.npz")
RENDERED = sorted(name for name in VALUES if name.startswith("render_attention/"))


def golden_attention(spec):
    draws, shape = np.random.RandomState(spec["seed"]), (spec["T"], spec["b"], spec["n"], spec["n"])
    attention = {
        "rand": lambda: draws.rand(*shape),
        "normal": lambda: draws.standard_normal(shape),
        "softplus": lambda: np.log1p(np.exp(3 * draws.standard_normal(shape))),
        "zeros": lambda: np.zeros(shape),
    }[spec["kind"]]()
    return attention.astype(np.float32)


def fixation_counts(draws, height, width):
    counts = np.zeros((2, height, width))
    for env in range(2):
        rows, columns = draws.randint(0, height, 12), draws.randint(0, width, 12)
        np.add.at(counts[env], (rows, columns), 1)
    return counts


def golden_raw():
    draws = np.random.RandomState(40200)
    screens = draws.randint(0, 256, (2, 210, 160, 3)).astype(np.uint8)
    saliency = draws.rand(2, 210, 160)
    return screens, saliency, fixation_counts(draws, 210, 160)


def golden_processed():
    draws = np.random.RandomState(40300)
    stack = draws.randint(0, 256, (2, 84, 84, 4)).astype(np.uint8)
    saliency = draws.rand(2, 84, 84).astype(np.float32)
    return stack[..., -1], saliency, fixation_counts(draws, 84, 84)


def assert_is_golden(array, name, atol=1e-13):
    spec = VALUES[name]
    assert array.shape == tuple(spec["shape"])
    picked = array.reshape(-1)[spec["sample_flat_indices"]]
    np.testing.assert_allclose(picked, spec["sample_values"], rtol=0, atol=atol)
    total = array.sum(dtype=np.float64)
    np.testing.assert_allclose(total, spec["sum"], rtol=0, atol=atol * array.size)


def assert_is_golden_bit_for_bit(array, name):
    assert (
        hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        == (VALUES[name]["sha256"])
    )


@pytest.mark.parametrize("name", RENDERED)
def test_attention_to_input_then_one_maximum_equals_the_original_bit_for_bit(name):
    spec = VALUES[name]
    attention = golden_attention(spec)
    geometry = AttentionGeometry(**spec["params"])
    drawn = overlay.attention_to_input(attention.reshape(-1, spec["n"], spec["n"]), geometry)
    assert drawn.dtype == np.float32
    assert drawn[: spec["b"]].max() == spec["unnormalised_frame0_max"]
    maps = overlay.normalise(drawn, float(drawn.max())).reshape(spec["shape"])
    assert_is_golden_bit_for_bit(maps, name)
    if name in ARRAYS:
        np.testing.assert_array_equal(maps[:2, :1], ARRAYS[name])


@pytest.mark.parametrize(
    ("cells", "field", "stride", "padding"), [(7, 36, 8, 0), (20, 8, 4, 0), (84, 13, 1, 6)]
)
def test_attention_to_input_equals_a_convolution_over_a_strided_grid(cells, field, stride, padding):
    attention = np.random.default_rng(3).random((1, cells, cells)).astype(np.float32)
    spread = np.zeros(((cells - 1) * stride + 1,) * 2)
    spread[::stride, ::stride] = attention[0]
    full = convolve2d(spread, np.ones((field, field)))
    expected = full[padding : padding + 84, padding : padding + 84]
    geometry = AttentionGeometry(receptive_field=field, stride=stride, padding=padding)
    np.testing.assert_allclose(
        overlay.attention_to_input(attention, geometry)[0], expected, rtol=1e-6
    )


def test_attention_to_input_of_one_cell_is_its_field_and_keeps_rows_and_columns_apart():
    attention = np.zeros((1, 7, 7, 1), dtype=np.float32)
    attention[0, 1, 4] = 2.0
    geometry = AttentionGeometry(receptive_field=36, stride=8, padding=0)
    expected = np.zeros((84, 84))
    expected[8:44, 32:68] = 2.0
    np.testing.assert_array_equal(overlay.attention_to_input(attention, geometry)[0], expected)


@settings(max_examples=25)
@given(value=st.floats(2.0**-10, 1e6, width=32))
def test_attention_to_input_draws_a_flat_map_flat(value):
    attention = np.full((1, 84, 84), value, dtype=np.float32)
    geometry = AttentionGeometry(receptive_field=13, stride=1, padding=6)
    inner = overlay.attention_to_input(attention, geometry)[0, 6:78, 6:78]
    assert inner.min() == inner.max()


def test_attention_to_input_refuses_what_is_no_map():
    geometry = AttentionGeometry(receptive_field=36, stride=8, padding=0)
    with pytest.raises(ValueError, match=r"\(7, 7\).*\[B, h, w\]"):
        overlay.attention_to_input(np.zeros((7, 7), dtype=np.float32), geometry)


def test_normalise_leaves_a_run_of_zeros_alone():
    maps = np.zeros((2, 3, 3), dtype=np.float32)
    np.testing.assert_array_equal(overlay.normalise(maps, 0.0), maps)


def test_upscale_equals_the_original_with_its_mirrored_border():
    noise = np.random.RandomState(40100).rand(1, 84, 84).astype(np.float32)
    large = overlay.upscale(noise, (210, 160))
    assert large.dtype == np.float64
    assert_is_golden(large, "upscale_smap/rand")
    np.testing.assert_allclose(
        large[:, ::7, ::5], ARRAYS["upscale_smap/rand_sub"], rtol=0, atol=1e-13
    )


def test_upscale_equals_the_original_on_a_drawn_map():
    small = ARRAYS["render_attention/sparse7/rand"][0]
    large = overlay.upscale(small, (210, 160))
    assert_is_golden(large, "upscale_smap/sparse7_rand_frame0")


def test_upscale_equals_opencv_inside_the_border():
    noise = np.random.default_rng(0).random((84, 84))
    large = overlay.upscale(noise, (250, 160))
    peer = cv2.resize(noise, (160, 250), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_allclose(large[2:-2, 2:-2], peer[2:-2, 2:-2], rtol=0, atol=1e-12)


def test_upscale_to_the_same_size_changes_nothing():
    noise = np.random.default_rng(0).random((3, 84, 84))
    np.testing.assert_array_equal(overlay.upscale(noise, (84, 84)), noise)


def test_draw_raw_equals_the_original_bit_for_bit():
    screens, saliency, fixations = golden_raw()
    assert_is_golden_bit_for_bit(overlay.draw_raw(screens, saliency), "render_frame/raw_nofix")
    assert_is_golden_bit_for_bit(
        overlay.draw_raw(screens, saliency, fixations), "render_frame/raw_fix"
    )
    assert_is_golden_bit_for_bit(
        overlay.draw_raw(screens, saliency, 0 * fixations), "render_frame/raw_fixzero"
    )


def test_draw_raw_of_one_frame_equals_the_batch():
    screens, saliency, fixations = golden_raw()
    batch = overlay.draw_raw(screens, saliency, fixations)
    one = overlay.draw_raw(screens[1], saliency[1], fixations[1])
    np.testing.assert_array_equal(one, batch[1])


def test_draw_processed_equals_the_original_bit_for_bit():
    newest, saliency, fixations = golden_processed()
    assert_is_golden_bit_for_bit(overlay.draw_processed(newest, saliency), "render_frame/prc_nofix")
    # The original's picture turns to float64 with fixations; its values are float32's.
    drawn = overlay.draw_processed(newest, saliency, fixations).astype(np.float64)
    assert_is_golden_bit_for_bit(drawn, "render_frame/prc_fix")


def test_fixations_that_meet_in_a_pixel_are_no_redder_than_red():
    screens, saliency, _ = golden_raw()
    newest, small, _ = golden_processed()
    five = np.full((2, 210, 160), 5)
    assert overlay.draw_raw(screens, saliency, five)[..., 0].max() == 1.0
    assert overlay.draw_processed(newest, small, five[:, :84, :84])[..., 0].max() == 1.0


def perception(fixations=False):
    screens, _, on_screen = golden_raw()
    newest, saliency, on_input = golden_processed()
    raw = overlay.draw_raw(
        screens, overlay.upscale(saliency, (210, 160)), on_screen if fixations else None
    )
    return raw, overlay.draw_processed(newest, saliency, on_input if fixations else None)


def test_stacked_pictures_equal_the_original():
    raw, processed = perception()
    both = overlay.stack_pictures(raw, processed)
    assert_is_golden(both, "render_perception/both")
    assert_is_golden(raw, "render_perception/raw_only")


def test_stacked_pictures_with_fixations_equal_the_original():
    both = overlay.stack_pictures(*perception(fixations=True))
    assert_is_golden(both, "render_perception/both_fix")


@pytest.mark.parametrize("part", ["both", "raw_only", "prc_only"])
def test_tiled_video_frame_equals_the_original_bit_for_bit(part):
    raw, processed = perception()
    pictures = {
        "both": overlay.stack_pictures(raw, processed),
        "raw_only": raw,
        "prc_only": processed,
    }
    frame = overlay.tile(overlay.to_uint8(pictures[part]))
    assert frame.shape == tuple(VALUES[f"render_perception/{part}/video_uint8_rgb"]["shape"])
    assert_is_golden_bit_for_bit(frame, f"render_perception/{part}/video_uint8_rgb")


def test_tile_goes_row_by_row_and_leaves_spare_places_black():
    pictures = np.arange(1, 6, dtype=np.uint8)[:, None, None, None] * np.ones(
        (1, 2, 3, 3), dtype=np.uint8
    )
    frame = overlay.tile(pictures)
    assert frame.shape == (3 * 2, 2 * 3, 3)
    np.testing.assert_array_equal(frame[::2, ::3, 0], [[1, 2], [3, 4], [5, 0]])
