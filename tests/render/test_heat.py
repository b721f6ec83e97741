"""Overlays of the laboratory: colours, the fixed scale, panels with text."""

import numpy as np
import pytest

from fl_saliency.errors import InputError
from fl_saliency.render.heat import COLOURS, OverlayStyle, Tint, fixed_scale, panels, smooth


def grey(level: int = 100) -> np.ndarray:
    return np.full((4, 6, 3), level, np.uint8)


def test_a_channel_is_raised_and_never_wraps() -> None:
    saliency = np.zeros((4, 6))
    saliency[0] = (0, 0.25, 0.5, 0.75, 1, 1)
    drawn = Tint(OverlayStyle(colour="green", intensity=200))(grey(), saliency)
    assert drawn[0, :, 1].tolist() == [100, 150, 200, 250, 255, 255]
    assert (drawn[..., [0, 2]] == 100).all()
    assert (drawn[1:] == 100).all()


@pytest.mark.parametrize("colour", COLOURS)
def test_where_a_map_is_zero_the_picture_stays(colour: str) -> None:
    drawn = Tint(OverlayStyle(colour=colour))(grey(), np.zeros((4, 6)))
    assert np.array_equal(drawn, grey())
    assert not np.array_equal(Tint(OverlayStyle(colour=colour))(grey(), np.ones((4, 6))), grey())


def test_a_colour_map_covers_by_its_intensity() -> None:
    full = Tint(OverlayStyle(colour="viridis", intensity=255))(grey(), np.ones((4, 6)))
    assert np.abs(full[0, 0].astype(int) - (253, 231, 37)).max() <= 1  # viridis' last colour
    half = Tint(OverlayStyle(colour="viridis", intensity=127.5))(grey(), np.ones((4, 6)))
    assert np.abs(half[0, 0].astype(int) - (176, 166, 68)).max() <= 1


def test_smoothing_keeps_the_mass_and_zero_does_nothing() -> None:
    maps = np.zeros((2, 41, 41), np.float32)
    maps[:, 20, 20] = 1
    assert smooth(maps, 0) is maps
    blurred = smooth(maps, 3)
    assert blurred.sum(axis=(1, 2)) == pytest.approx([1, 1], abs=1e-3)
    assert blurred.max() < 0.05


@pytest.mark.parametrize(
    ("maxima", "scale"),
    [
        (np.arange(101.0), 95),  # one flash does not decide
        (np.zeros(5), 1),  # nothing to draw
        (np.array([np.nan, 2.0, 2.0]), 2),
        (np.array([0.0] * 99 + [3.0]), 3),  # all but one are 0
        (np.array([np.nan]), 1),
    ],
)
def test_one_scale_serves_all_maps(maxima: np.ndarray, scale: float) -> None:
    assert fixed_scale(maxima) == pytest.approx(scale)


@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (5, 2, 4)])
def test_panels_stand_in_rows_under_names_and_above_text(
    count: int, rows: int, columns: int
) -> None:
    pictures = {f"method {i}": np.full((210, 160, 3), 50, np.uint8) for i in range(count)}
    drawn = panels(pictures, ["NOOP  value 1.00"])
    height, width, _ = drawn.shape
    assert width == 320 * columns
    assert height == rows * (420 + 22) + 22
    assert height % 2 == width % 2 == 0
    assert drawn[:22].max() == drawn[-22:].max() == 255
    places = (drawn[30::442, 10::320, 0] == 50).sum()
    assert places == count


def test_a_long_text_shrinks_rather_than_being_cut_at_half_its_length() -> None:
    text = "integrated_gradients of action:12"
    wide = panels({text: np.zeros((210, 160, 3), np.uint8)}, [])
    ink = np.flatnonzero(wide[:22].max(axis=(0, 2)))
    assert ink.max() < 318


@pytest.mark.parametrize(
    "style",
    [
        {"colour": "jet"},
        {"intensity": 0.0},
        {"intensity": 256.0},
        {"smooth": -1.0},
        {"fps": 0},
    ],
)
def test_a_style_out_of_range_is_an_error(style: dict[str, object]) -> None:
    with pytest.raises(InputError, match="--"):
        OverlayStyle(**style).check()  # type: ignore[arg-type]


def test_a_styles_name_carries_its_settings() -> None:
    assert OverlayStyle(colour="red", intensity=100, smooth=5).file_name() == "red_c100_s5"
