"""From two emulator screens to one observation frame: pool, grey, resize (Mnih et al. 2015).

The emulator hands out palette indices, one byte a pixel. Pooling two screens is a look-up in a
table over pairs of indices, done only where a pixel changed since the frame before.
"""

import ale_py
import cv2
import numpy as np

from fl_saliency.base import IntArray, UInt8Array

__all__ = ["FramePooler"]

# With more than one in so many pixels changed, looking all pairs up is faster than picking some.
_MANY = 8


class _Palette:
    """The colours of one game, learned from the emulator as they first appear on a screen.

    They depend on the console (NTSC or PAL) that the game was made for.
    """

    def __init__(self, max_pool: str) -> None:
        self._max_pool = max_pool
        self._known = np.zeros(256, bool)
        self._grey = np.zeros(256, np.uint8)
        self.rgb = np.zeros((256, 3), np.uint8)
        self.pooled = np.zeros(256 * 256, np.uint8)
        """Grey of a pixel that had colour i, then colour j, at [256 * i + j]."""

    def learn(self, ale: ale_py.ALEInterface, screen: UInt8Array, colours: UInt8Array) -> None:
        """Make sure that `colours`, some of those on `screen`, which is shown now, are known."""
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
        table: UInt8Array = cv2.cvtColor(pairs, cv2.COLOR_RGB2GRAY)
        return table


class FramePooler:
    """Takes screens of one emulator and pools the last two."""

    def __init__(
        self, ale: ale_py.ALEInterface, *, max_pool: str, size: int, screen: UInt8Array | None
    ) -> None:
        """Begin with the present screen.

        `screen`, uint8 [H, W, 3], receives the pooled RGB screen, if that is wanted.
        """
        self._ale = ale
        self._palette = _Palette(max_pool)
        self._size = (size, size)
        self._screen = screen
        present: UInt8Array = ale.getScreen()
        self._palette.learn(ale, present, present.reshape(-1))
        self._first, self._last, self._spare = present.copy(), present.copy(), present.copy()
        self._grey = np.zeros_like(present)
        self._pairs = np.zeros(present.shape, np.uint16)
        # Pixels of the pair that `_grey` does not show yet; at first all.
        self._changed: list[IntArray] = [np.arange(present.size)]

    def take_first(self) -> bool:
        """Take the present screen as the first of a pair; True if it is another than before."""
        self._first, self._spare, changed = self._take(self._first)
        return changed

    def take_last(self) -> bool:
        """Take the present screen as the last of a pair; True if it is another than before."""
        self._last, self._spare, changed = self._take(self._last)
        return changed

    def take_both(self) -> bool:
        """Take the present screen as both of a pair, so that nothing is pooled; True if new."""
        return self.take_first() | self.take_last()

    def show(self, indices: UInt8Array) -> None:
        """Take `indices` [H, W], a screen that was taken before, as both of a pair."""
        self._first[:], self._last[:] = indices, indices
        self._changed = [np.arange(indices.size)]

    def indices(self) -> UInt8Array:
        """A copy of the last screen taken, as palette indices, uint8 [H, W]."""
        return self._last.copy()

    def _take(self, before: UInt8Array) -> tuple[UInt8Array, UInt8Array, bool]:
        now = self._spare
        self._ale.getScreen(now)
        changed = (now != before).reshape(-1).nonzero()[0]
        if changed.size:
            self._palette.learn(self._ale, now, now.reshape(-1)[changed])
            self._changed.append(changed)
        return now, before, changed.size > 0

    def frame(self, out: UInt8Array) -> None:
        """Write the pooled, grey, resized frame to `out` uint8 [size, size]; update the screen."""
        if self._changed:
            self._pool(np.concatenate(self._changed))
            self._changed = []
        cv2.resize(self._grey, self._size, dst=out, interpolation=cv2.INTER_AREA)

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
