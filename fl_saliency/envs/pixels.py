"""From two emulator screens to one observation frame: pool, grey, resize (Mnih et al. 2015).

The emulator hands out palette indices, one byte a pixel. Pooling two screens is a look-up in a
table over pairs of indices, done only where a pixel changed since the frame before.
"""

from typing import Any

import ale_py
import cv2
import numpy as np

from fl_saliency.base import IntArray, UInt8Array

__all__ = ["FramePooler"]

# Above this share of changed pixels, looking all pairs up is faster than picking them out.
_MANY = 8


class _Palette:
    """The colours of a game, learned from the emulator as they first appear on a screen.

    They depend on the console (NTSC or PAL) that the game was made for.
    """

    def __init__(self, max_pool: str) -> None:
        self._max_pool = max_pool
        self._known = np.zeros(256, bool)
        self.rgb = np.zeros((256, 3), np.uint8)
        self._grey = np.zeros(256, np.uint8)
        self.pooled = np.zeros(256 * 256, np.uint8)
        """Grey of a pixel that was colour i, then colour j, at [256 * i + j]."""

    def learn(self, ale: ale_py.ALEInterface, screen: UInt8Array, colours: UInt8Array) -> None:
        """Make sure that all `colours`, which `screen` (now shown) has, are known."""
        if self._known[colours].all():
            return
        new, where = np.unique(screen, return_index=True)
        self.rgb[new] = ale.getScreenRGB().reshape(-1, 3)[where]
        self._grey[new] = ale.getScreenGrayscale().reshape(-1)[where]
        self._known[new] = True
        self.pooled[:] = self._pair_table().reshape(-1)

    def _pair_table(self) -> UInt8Array:
        if self._max_pool == "grey":
            return np.maximum(self._grey[:, None], self._grey[None, :])
        pairs = np.maximum(self.rgb[:, None], self.rgb[None, :])
        grey: UInt8Array = cv2.cvtColor(pairs, cv2.COLOR_RGB2GRAY)
        return grey


class FramePooler:
    """Grabs screens of one emulator and pools the last two."""

    def __init__(
        self, ale: ale_py.ALEInterface, *, max_pool: str, size: int, screen: UInt8Array | None
    ) -> None:
        """`screen`, uint8 [H, W, 3], is where the pooled RGB screen goes, if that is wanted."""
        height, width = ale.getScreenDims()
        self._ale = ale
        self._palette = _Palette(max_pool)
        self._size = size
        self._first = np.zeros((height, width), np.uint8)
        self._last = np.zeros((height, width), np.uint8)
        self._spare = np.zeros((height, width), np.uint8)
        self._grey = np.zeros((height, width), np.uint8)
        self._pairs = np.zeros((height, width), np.uint16)
        self._screen = screen
        self._changed: list[IntArray] = []
        self._everything = np.arange(height * width)
        self.forget()

    def forget(self) -> None:
        """Take nothing over from the frames before, such as after their buffers were touched."""
        self._changed = [self._everything]
        self._stale = True

    def grab_first(self) -> bool:
        """Take the present screen as the first of a pair; True if it changed."""
        self._first, self._spare, changed = self._grab(self._first)
        return changed

    def grab_last(self) -> bool:
        """Take the present screen as the last of a pair; True if it changed."""
        self._last, self._spare, changed = self._grab(self._last)
        return changed

    def grab_both(self) -> None:
        """Take the present screen as both of a pair: nothing is pooled."""
        self.grab_first()
        self.grab_last()

    def _grab(self, before: UInt8Array) -> tuple[UInt8Array, UInt8Array, bool]:
        now = self._spare
        self._ale.getScreen(now)
        changed = (now != before).reshape(-1).nonzero()[0]
        if self._stale or changed.size:
            colours = now.reshape(-1)[self._everything if self._stale else changed]
            self._palette.learn(self._ale, now, colours)
            self._changed.append(changed)
        return now, before, changed.size > 0

    def frame(self, out: UInt8Array) -> None:
        """Write the pooled, grey, resized frame to `out`, uint8 [size, size]; update the screen."""
        if self._changed:
            self._pool(np.concatenate(self._changed))
            self._changed = []
        self._stale = False
        size = (self._size, self._size)
        cv2.resize(self._grey, size, dst=out, interpolation=cv2.INTER_AREA)

    def _pool(self, changed: IntArray) -> None:
        first, last = self._first.reshape(-1), self._last.reshape(-1)
        if changed.size * _MANY > first.size:
            np.multiply(self._first, np.uint16(256), out=self._pairs, dtype=np.uint16)
            np.add(self._pairs, self._last, out=self._pairs)
            np.take(self._palette.pooled, self._pairs, out=self._grey, mode="clip")
        else:
            pairs = np.multiply(first[changed], 256, dtype=np.intp) + last[changed]
            self._grey.reshape(-1)[changed] = self._palette.pooled[pairs]
        if self._screen is not None:
            rgb = self._palette.rgb
            pooled = np.maximum(rgb[first[changed]], rgb[last[changed]])
            self._screen.reshape(-1, 3)[changed] = pooled

    def get_state(self) -> dict[str, Any]:
        """The pair of screens, as arrays."""
        return {"first": self._first.copy(), "last": self._last.copy()}
