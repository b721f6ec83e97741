"""Attention drawn over game pictures by the drawing rules of Free-Lunch Saliency (Nikulin 2019).

An attention cell lights every input pixel that it can see; maps are divided by one maximum over a
whole run. A raw frame is half picture, half map; a processed frame is a false-colour picture.
"""

import functools
import math

import numpy as np

from fl_saliency.base import AttentionGeometry, FloatArray, IntArray, UInt8Array

__all__ = [
    "attention_to_input",
    "draw_processed",
    "draw_raw",
    "normalise",
    "stack_pictures",
    "tile",
    "to_uint8",
    "upscale",
    "upscale_picture",
]


def attention_to_input(
    attention: FloatArray, geometry: AttentionGeometry, size: int = 84
) -> FloatArray:
    """attention [B, h, w] or [B, h, w, 1] -> float32 [B, size, size], unnormalised and >= 0.

    Each pixel is the sum of the cells whose receptive field holds it (a transposed convolution
    with a kernel of ones), then negative sums become 0. Other shapes raise `ValueError`.
    """
    cells = np.asarray(attention, dtype=np.float32)
    if cells.ndim == 4 and cells.shape[-1] == 1:
        cells = cells[..., 0]
    if cells.ndim != 3:
        raise ValueError(f"attention {np.shape(attention)}: expected [B, h, w] or [B, h, w, 1]")
    padded = np.pad(cells, ((0, 0), (0, 1), (0, 1)))
    drawn = np.zeros((len(cells), size, size), dtype=np.float32)
    beside = [padded[:, :, column] for column in _sources(geometry, cells.shape[2], size)]
    # Each pixel adds up its cells one by one, in float32 and in the original's order (from the
    # last cell to the first), so ties between pixels, which shuffled AUC counts, are the same.
    for row in _sources(geometry, cells.shape[1], size):
        for strip in beside:
            drawn += strip.take(row, axis=1)
    return np.maximum(drawn, np.float32(0))


@functools.cache
def _sources(geometry: AttentionGeometry, cells: int, size: int) -> IntArray:
    """The cells that see each of `size` pixels along one axis, int [reach, size], last ones first.

    Where fewer than `reach` cells do, the number `cells` stands, one past the last.
    """
    reach = -(-geometry.receptive_field // geometry.stride)
    pixel = np.arange(size)[None, :] + geometry.padding
    cell = pixel // geometry.stride - np.arange(reach)[:, None]
    seen = (
        (cell >= 0) & (cell < cells) & (pixel - cell * geometry.stride < geometry.receptive_field)
    )
    return np.where(seen, cell, cells)


def normalise(maps: FloatArray, maximum: float) -> FloatArray:
    """`maps` divided by the largest value of the whole run, so 0..1; by nothing if that is 0."""
    return maps / np.asarray(maximum, dtype=maps.dtype) if maximum > 0 else maps


def upscale(maps: FloatArray | UInt8Array, shape: tuple[int, int]) -> FloatArray:
    """maps [..., h, w] -> float64 [..., height, width], bilinear between pixel centres.

    Outside the outermost centres the map is mirrored at them, as the original's library does;
    OpenCV repeats the edge there instead, and is equal everywhere else.
    """
    grid = np.asarray(maps, dtype=np.float64)
    return _stretch(_stretch(grid, -2, shape[0]), -1, shape[1])


def _stretch(grid: FloatArray, axis: int, size: int) -> FloatArray:
    """`grid` with `size` pixels along `axis` (counted from the end), linear in between."""
    below, above, weight = _taps(grid.shape[axis], size)
    start = grid.take(below, axis)
    # In this form, pixels between equal neighbours stay equal to the last bit.
    step = grid.take(above, axis)
    step -= start
    step *= weight.reshape(-1, *[1] * (-1 - axis))
    step += start
    return step


@functools.cache
def _taps(old: int, new: int) -> tuple[IntArray, IntArray, FloatArray]:
    """For each of `new` pixels the two neighbours among `old` and the second one's weight."""
    centre = (np.arange(new) + 0.5) * (old / new) - 0.5
    below = np.floor(centre).astype(np.int64)
    return _mirrored(below, old), _mirrored(below + 1, old), centre - below


def _mirrored(index: IntArray, size: int) -> IntArray:
    inside = np.abs(index)
    inside = np.where(inside < size, inside, 2 * (size - 1) - inside)
    return np.clip(inside, 0, size - 1)


def upscale_picture(picture: FloatArray | UInt8Array, shape: tuple[int, int]) -> FloatArray:
    """picture [..., h, w, 3] -> float64 [..., height, width, 3], bilinear as `upscale`."""
    grid = np.asarray(picture, dtype=np.float64)
    return _stretch(_stretch(grid, -3, shape[0]), -2, shape[1])


def draw_raw(
    rgb: UInt8Array, saliency: FloatArray, fixations: FloatArray | IntArray | None = None
) -> FloatArray:
    """A screen under its map: rgb uint8 [..., H, W, 3] -> RGB float64 [..., H, W, 3] in 0..1.

    Half the picture plus half of saliency [..., H, W] (0..1) in all three channels, which whitens
    what is attended. Pixels of `fixations` [..., H, W] (counts) are raised to full red.
    """
    light = np.asarray(saliency, dtype=np.float64)[..., None] * 0.5
    picture = _unit(rgb) * np.float32(0.5) + light
    if fixations is not None:
        picture[..., 0] = np.maximum(picture[..., 0], np.minimum(fixations, 1))
    return picture


def draw_processed(
    newest: UInt8Array, saliency: FloatArray, fixations: FloatArray | IntArray | None = None
) -> FloatArray:
    """What the network saw: newest uint8 [..., h, w] -> RGB float32 [..., h, w, 3] in 0..1.

    Red is `fixations` (counts, capped at 1; without any it is 0), green is saliency (0..1), blue
    is the newest frame of the stack. Videos decode to these colours, as the original's do (it
    swaps channels only because its writer wants BGR): its processed pictures hold no red, and
    Breakout's uppermost bricks are red in its raw ones.
    """
    red = np.zeros(newest.shape) if fixations is None else np.minimum(fixations, 1)
    return np.stack([red, saliency, _unit(newest)], axis=-1).astype(np.float32)


def _unit(picture: UInt8Array) -> FloatArray:
    # In float32, as the original: float64 would round some pixels to another grey level.
    return picture.astype(np.float32) / np.float32(255)


def stack_pictures(raw: FloatArray | UInt8Array, processed: FloatArray | UInt8Array) -> FloatArray:
    """raw [..., H, W, 3] above processed [..., h, w, 3] scaled to W x W -> [..., H + W, W, 3]."""
    width = raw.shape[-2]
    return np.concatenate([raw, upscale_picture(processed, (width, width))], axis=-3)


def to_uint8(picture: FloatArray) -> UInt8Array:
    """A picture in 0..1 as uint8, rounded down as the original's video frames are."""
    levels = picture * 255
    return np.clip(levels, 0, 255, out=levels).astype(np.uint8)


def tile(pictures: UInt8Array) -> UInt8Array:
    """Pictures [N, H, W, 3], row by row, in ceil(sqrt N) rows; places left over are black."""
    number, height, width, channels = pictures.shape
    rows = math.isqrt(number - 1) + 1
    columns = -(-number // rows)
    grid = np.zeros((rows * columns, height, width, channels), dtype=pictures.dtype)
    grid[:number] = pictures
    grid = grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)
