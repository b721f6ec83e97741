"""Maps laid over game screens, in one colour channel or in a colour map, with text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np

from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.errors import InputError, unknown_choice

__all__ = ["COLOURS", "OverlayStyle", "Tint", "fixed_scale", "panels", "smooth"]

CHANNELS = {"red": 0, "green": 1, "blue": 2}
COLOURS: tuple[str, ...] = (*CHANNELS, "viridis", "cividis", "inferno", "magma", "plasma")
"""Channels, and colour maps whose lightness rises evenly, also to the colour-blind."""

_STRIP = 22
"""Height of a line of text, in pixels."""
_SCALE = 2
"""How many times larger than the screen a panel is."""
_MAX_COLUMNS = 4


@dataclass(frozen=True, kw_only=True)
class OverlayStyle:
    """How maps are laid over the screens."""

    colour: str = "inferno"
    """A channel that the map raises (red, green, blue), or a colour map (viridis, inferno, ...)."""
    intensity: float = 200.0
    """How strong the overlay is where the map is largest, up to 255."""
    smooth: float = 1.0
    """Gaussian blur of the maps before they are drawn, pixels of the 84x84 input; 0: none."""
    fps: int = 15
    """States shown in a second; a game runs at 15 (60 frames a second, 4 a state)."""

    def check(self) -> None:
        """Raise InputError for a value out of range, naming the option."""
        if self.colour not in COLOURS:
            raise unknown_choice("--colour", self.colour, COLOURS)
        if not 0 < self.intensity <= 255:
            raise InputError(f"--intensity {self.intensity}: expected above 0, up to 255")
        if not 0 <= self.smooth <= 84:
            raise InputError(f"--smooth {self.smooth}: expected 0 to 84 pixels")
        if not 1 <= self.fps <= 1000:
            raise InputError(f"--fps {self.fps}: expected 1 to 1000")

    def file_name(self) -> str:
        """The settings, for the names of files: `inferno_c200_s1`."""
        return f"{self.colour}_c{self.intensity:g}_s{self.smooth:g}"


class Tint:
    """Lays maps over pictures in one colour.

    A channel (red, green, blue) is raised by `intensity` times the map, up to 255. A colour map is
    blended in: the map's own colour, as opaque as the map times intensity / 255.
    """

    def __init__(self, style: OverlayStyle) -> None:
        style.check()
        self.colour = style.colour
        self.intensity = style.intensity

    def __call__(self, rgb: UInt8Array, saliency: FloatArray) -> UInt8Array:
        """rgb uint8 [H, W, 3] under saliency [H, W] in 0..1 -> uint8 [H, W, 3], a new array."""
        picture = rgb.astype(np.float32)
        if self.colour in CHANNELS:
            picture[..., CHANNELS[self.colour]] += self.intensity * saliency
        else:
            colours = _colour_table(self.colour)[np.rint(saliency * 255).astype(np.uint8)]
            opacity = (saliency * (self.intensity / 255))[..., None]
            picture += opacity * (colours - picture)
        return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


@cache
def _colour_table(name: str) -> FloatArray:
    """The 256 colours of a colour map, float32 [256, 3] in 0..255."""
    import matplotlib  # half a second, which --help need not wait for

    table = matplotlib.colormaps[name](np.arange(256))[:, :3]
    return np.asarray(255 * table, np.float32)


def smooth(maps: FloatArray, sigma: float) -> FloatArray:
    """Blur maps [B, H, W] by a Gaussian of `sigma` pixels; 0 leaves them as they are."""
    if sigma == 0:
        return maps
    return np.stack([cv2.GaussianBlur(one, (0, 0), sigma) for one in maps])


def fixed_scale(maxima: FloatArray) -> float:
    """What all maps of a video are divided by, given each frame's largest value [T].

    Their 95th percentile: one flash does not darken all the rest. 1 where all maps are 0.
    """
    finite = maxima[np.isfinite(maxima)]
    scale = float(np.percentile(finite, 95)) if finite.size else 0.0
    return scale or float(finite.max(initial=0.0)) or 1.0


def panels(pictures: Mapping[str, UInt8Array], lines: Sequence[str]) -> UInt8Array:
    """Pictures uint8 [H, W, 3] side by side under their names, above lines of text.

    Four in a row at most; a place left over is black. Width and height are even.
    """
    framed = [_titled(name, picture) for name, picture in pictures.items()]
    columns = min(_MAX_COLUMNS, len(framed))
    framed += [np.zeros_like(framed[0])] * (-len(framed) % columns)
    rows = [
        np.concatenate(framed[start : start + columns], axis=1)
        for start in range(0, len(framed), columns)
    ]
    width = rows[0].shape[1]
    return np.concatenate([*rows, *(_strip(line, width) for line in lines)])


def _titled(name: str, picture: UInt8Array) -> UInt8Array:
    large = picture.repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)
    return np.concatenate([_strip(name, large.shape[1]), large])


def _strip(text: str, width: int) -> UInt8Array:
    strip = np.zeros((_STRIP, width, 3), np.uint8)
    font, size = cv2.FONT_HERSHEY_SIMPLEX, 0.5
    while size > 0.3 and cv2.getTextSize(text, font, size, 1)[0][0] > width - 8:
        size -= 0.05
    cv2.putText(strip, text, (4, _STRIP - 7), font, size, (255, 255, 255), 1, cv2.LINE_AA)
    return strip
