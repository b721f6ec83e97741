"""From two emulator screens to one observation frame: pool, grey, resize (Mnih et al. 2015).

The emulator hands out palette indices, one byte a pixel. Pooling two screens is a look-up in a
table over pairs of indices, done only where a pixel changed since the frame before.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import ale_py
import cv2
import numpy as np

from fl_saliency.base import IntArray, UInt8Array

__all__ = ["FramePooler", "Screen"]

# Pixels are compared and picked out in 64-bit words of so many.
_WORD = 8
# With more than one in so many words changed, it is faster to do all of them.
_MANY = 4
# To resize so many unchanged bands takes no longer than one more call.
_GAP = 2
_HIGH = np.uint16(8)


class _Palette:
    """The colours of one game, learned from the emulator as they first appear on a screen.

    They depend on the console (NTSC or PAL) that the game was made for.
    """

    def __init__(self, max_pool: str) -> None:
        self._max_pool = max_pool
        self._known = b""
        self._grey = np.zeros(256, np.uint8)
        self.rgb = np.zeros((256, 3), np.uint8)
        self.pooled = np.zeros(256 * 256, np.uint8)
        """Grey of a pixel that had colour i, then colour j, at [256 * i + j]."""

    def learn(self, ale: ale_py.ALEInterface, screen: UInt8Array, colours: UInt8Array) -> None:
        """Make sure that `colours`, some of those on `screen`, which is shown now, are known."""
        if not colours.tobytes().translate(None, delete=self._known):
            return
        new, where = np.unique(screen, return_index=True)
        self.rgb[new] = ale.getScreenRGB().reshape(-1, 3)[where]
        self._grey[new] = ale.getScreenGrayscale().reshape(-1)[where]
        self._known = bytes({*self._known, *new.tolist()})
        self.pooled[:] = self._pair_table().reshape(-1)

    def _pair_table(self) -> UInt8Array:
        if self._max_pool == "grey":
            return np.maximum(self._grey[:, None], self._grey[None, :])
        pairs = np.maximum(self.rgb[:, None], self.rgb[None, :])
        table: UInt8Array = cv2.cvtColor(pairs, cv2.COLOR_RGB2GRAY)
        return table


@lru_cache(maxsize=1)
def _shared_palette(game: str, max_pool: str) -> _Palette:
    """One palette for all emulators of a game in this process, to stay in the processor's cache."""
    return _Palette(max_pool)


class Screen:
    """One screen, a byte a pixel, and the same memory as words of eight pixels."""

    def __init__(self, pixels: UInt8Array) -> None:
        self.pixels = np.ascontiguousarray(pixels)
        self.words = self.pixels.reshape(-1).view(np.uint64)


@lru_cache(maxsize=4)
def _shared_scratch(height: int, width: int) -> Screen:
    return Screen(np.zeros((height, width), np.uint8))


class FramePooler:
    """Takes screens of one emulator, pools the last two of a skip and makes frames of them."""

    def __init__(
        self,
        ale: ale_py.ALEInterface,
        game: str,
        *,
        max_pool: str,
        size: int,
        skip: int,
        screen: UInt8Array | None,
    ) -> None:
        """Begin with the present screen of `ale`, in which `game` is loaded.

        `screen`, uint8 [H, W, 3], receives the pooled RGB screen, if that is wanted.
        """
        self._ale = ale
        self._palette = _shared_palette(game, max_pool)
        self._rgb = None if screen is None else screen.reshape(-1, _WORD, 3)
        present: UInt8Array = ale.getScreen()
        height, width = present.shape
        self._palette.learn(ale, present, present)
        self._scratch = _shared_scratch(height, width)
        self._last = Screen(present.copy())
        # A skip of one frame has nothing to pool: its screen is the whole pair.
        self._first = Screen(present.copy()) if skip > 1 else self._last
        self.plan = _plan(skip, self._first, self._last)
        """Which screen to take after each frame of a skip, None for no screen."""
        self._grey = Screen(np.zeros_like(present))
        self._frame = np.zeros((size, size), np.uint8)
        self._band = _band_rows(height, width, size)
        self._words_in_band = self._band[0] * width // _WORD
        self._all_changed = True
        self._changed: list[IntArray] = []  # words of the pair that `_grey` does not show yet

    def take(self, screen: Screen) -> bool:
        """Take the emulator's present screen as `screen` of the plan; True if it changed."""
        now = self._scratch
        self._ale.getScreen(now.pixels)
        changed = (now.words != screen.words).nonzero()[0]
        if not changed.size:
            return False
        words = now.words[changed]
        self._palette.learn(self._ale, now.pixels, words)
        screen.words[changed] = words
        self._changed.append(changed)
        return True

    def take_both(self) -> None:
        """Take the present screen as both of a pair, so that nothing is pooled."""
        self.take(self._first)
        self.take(self._last)

    def show(self, indices: UInt8Array) -> None:
        """Take `indices` [H, W], a screen that was taken before, as both of a pair."""
        self._first.pixels[:], self._last.pixels[:] = indices, indices
        self._all_changed = True

    def indices(self) -> UInt8Array:
        """A copy of the last screen taken, as palette indices, uint8 [H, W]."""
        return self._last.pixels.copy()

    def frame(self) -> UInt8Array:
        """The pooled, grey, resized frame, uint8 [size, size], valid until the next call.

        Updates the pooled RGB screen too.
        """
        if self._all_changed or _MANY * sum(map(len, self._changed)) > len(self._grey.words):
            self._pool(slice(None))
            self._resize(0, len(self._frame) // self._band[1])
        elif self._changed:
            changed = np.concatenate(self._changed)
            self._pool(changed)
            bands = np.bincount(changed // self._words_in_band).nonzero()[0]
            for start, stop in _runs(bands.tolist()):
                self._resize(start, stop)
        self._all_changed = False
        self._changed.clear()
        return self._frame

    def _pool(self, where: IntArray | slice) -> None:
        first = self._first.words[where].view(np.uint8)
        last = self._last.words[where].view(np.uint8)
        pairs = np.left_shift(first, _HIGH, dtype=np.uint16)
        pairs |= last
        # "clip" does nothing to these indices, but spares NumPy to check them.
        grey = self._palette.pooled.take(pairs, mode="clip")
        self._grey.words[where] = grey.view(np.uint64)
        if self._rgb is not None:
            rgb = self._palette.rgb
            self._rgb[where] = np.maximum(rgb[first], rgb[last]).reshape(-1, _WORD, 3)

    def _resize(self, start: int, stop: int) -> None:
        """Resize the bands from `start` to before `stop`."""
        rows, lines = self._band
        target = self._frame[start * lines : stop * lines]
        source = self._grey.pixels[start * rows : stop * rows]
        # Arguments by position: by name, a small resize takes twice as long.
        cv2.resize(source, target.shape[::-1], target, 0, 0, cv2.INTER_AREA)


def _plan(skip: int, first: Screen, last: Screen) -> tuple[Screen | None, ...]:
    return (last,) if skip == 1 else (*[None] * (skip - 2), first, last)


def _band_rows(height: int, width: int, size: int) -> tuple[int, int]:
    """The least rows of a screen that make whole rows of a frame, and how many those are.

    (5, 2) for 210 rows. To resize such a band gives the very pixels that to resize the whole screen
    does, as long as the frame is the smaller one, so that rows are averaged and not interpolated,
    and floating point has the ratio of rows exactly. Otherwise the band is the whole.
    """
    bands = math.gcd(height, size)
    rows, lines = height // bands, size // bands
    exact = size <= min(height, width) and lines & (lines - 1) == 0
    return (rows, lines) if exact else (height, size)


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Runs of neighbours in rising `numbers`, as (first, last + 1); narrow gaps are filled."""
    start = stop = -1 - _GAP
    for number in numbers:
        if number > stop + _GAP:
            if stop > start:
                yield start, stop
            start = number
        stop = number + 1
    if stop > start:
        yield start, stop
