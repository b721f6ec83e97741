"""One step of several envs drawn as one picture, for a video of what the agents saw."""

from dataclasses import dataclass

import numpy as np

from fl_saliency.base import AttentionGeometry, BoolArray, FloatArray, UInt8Array
from fl_saliency.render import overlay

__all__ = ["Painter", "Step"]

_DIMMED = 3
"""An env that has played its games keeps its last picture at this part of the brightness."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What N envs showed at one agent step; None for what is not drawn."""

    screens: UInt8Array | None = None
    """RGB uint8 [N, H, W, 3]."""
    newest: UInt8Array | None = None
    """The newest frame of each observation, uint8 [N, h, w]."""
    attention: FloatArray | None = None
    """float32 [N, h, w], before any drawing."""
    active: BoolArray
    """bool [N]: whose picture is drawn."""


class Painter:
    """Draws steps in order; it remembers each env's last picture, for when it has finished.

    `maximum` is the largest value of `attention_to_input` over the whole run.
    """

    def __init__(self, geometry: AttentionGeometry | None, maximum: float) -> None:
        self._geometry = geometry
        self._maximum = maximum
        self._last: UInt8Array | None = None

    def paint(self, step: Step) -> UInt8Array:
        """Envs tiled row by row, RGB uint8 [rows * height, columns * width, 3], a new array."""
        active = step.active
        pictures = self._pictures(step)
        if self._last is None:
            self._last = np.zeros((len(active), *pictures.shape[1:]), dtype=np.uint8)
        shown = self._last // _DIMMED
        shown[active] = self._last[active] = pictures
        return overlay.tile(shown)

    def _pictures(self, step: Step) -> UInt8Array:
        """The pictures of the active envs, uint8 [active, height, width, 3]."""
        screens = None if step.screens is None else step.screens[step.active]
        newest = None if step.newest is None else step.newest[step.active]
        if self._geometry is None or step.attention is None:
            return _plain(screens, newest)
        drawn = overlay.attention_to_input(step.attention[step.active], self._geometry)
        return _attended(screens, newest, overlay.normalise(drawn, self._maximum))


def _attended(
    screens: UInt8Array | None, newest: UInt8Array | None, saliency: FloatArray
) -> UInt8Array:
    parts = []
    if screens is not None:
        parts.append(overlay.draw_raw(screens, overlay.upscale(saliency, screens.shape[-3:-1])))
    if newest is not None:
        parts.append(overlay.draw_processed(newest, saliency))
    return overlay.to_uint8(overlay.stack_pictures(*parts) if len(parts) == 2 else parts[0])


def _plain(screens: UInt8Array | None, newest: UInt8Array | None) -> UInt8Array:
    """The pictures themselves: screens in colour, processed frames in grey."""
    parts = [] if screens is None else [screens]
    if newest is not None:
        parts.append(np.repeat(newest[..., None], 3, axis=-1))
    if len(parts) == 1:
        return parts[0]
    return np.rint(overlay.stack_pictures(*parts)).astype(np.uint8)
