"""What can be changed at one moment of a game: bytes of the console's memory, and the picture."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import UInt8Array
from fl_saliency.envs.emulator import RAM_SIZE
from fl_saliency.errors import InputError

__all__ = [
    "Colour",
    "Edits",
    "Move",
    "RamEdit",
    "Region",
    "parse_colour",
    "parse_mask",
    "parse_move",
    "parse_ram",
]

Colour = tuple[int, int, int]
"""Red, green, blue, 0 to 255."""

_RAM = re.compile(r"([0-9]{1,9})([+-]?=)([0-9]{1,9})")
_SIGNS = {"+=": 1, "-=": -1}
_NUMBER = r"-?[0-9]{1,9}"


@dataclass(frozen=True, kw_only=True)
class RamEdit:
    """One change of one byte of the console's memory."""

    byte: int
    """0 to 127."""
    operation: str
    """`=`, `+=` or `-=`."""
    value: int
    """0 to 255."""

    def __str__(self) -> str:
        return f"{self.byte}{self.operation}{self.value}"

    def result(self, present: int) -> int:
        """What the byte becomes; InputError if that is no byte: nothing wraps around."""
        sign = _SIGNS.get(self.operation)
        after = self.value if sign is None else present + sign * self.value
        if not 0 <= after < 256:
            raise InputError(
                f"--ram {self}: byte {self.byte} is {present} then and would be {after}; "
                "expected 0 to 255"
            )
        return after


@dataclass(frozen=True, kw_only=True)
class Region:
    """A rectangle of the screen in pixels; x counts from the left, y from the top, both from 0."""

    x: int
    y: int
    width: int
    height: int

    @property
    def where(self) -> tuple[slice, slice]:
        """Its rows and columns."""
        return slice(self.y, self.y + self.height), slice(self.x, self.x + self.width)

    def __str__(self) -> str:
        return f"{self.x},{self.y},{self.width},{self.height}"

    def is_within(self, screen: tuple[int, int]) -> bool:
        """Whether it lies within a screen of (height, width)."""
        height, width = screen
        across = self.x >= 0 and self.x + self.width <= width
        return across and self.y >= 0 and self.y + self.height <= height

    def background(self, screen: UInt8Array) -> UInt8Array:
        """The commonest colour around it on screen [H, W, 3], uint8 [3].

        Around: the pixels that touch it. A region that is the whole screen has its own commonest.
        """
        rows, columns = self.where
        ring = np.zeros(screen.shape[:2], np.bool_)
        ring[max(0, self.y - 1) : rows.stop + 1, max(0, self.x - 1) : columns.stop + 1] = True
        ring[rows, columns] = False
        pixels = screen[ring] if ring.any() else screen.reshape(-1, 3)
        codes = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
        _, first, counts = np.unique(codes, return_index=True, return_counts=True)
        return np.asarray(pixels[first[counts.argmax()]])


@dataclass(frozen=True, kw_only=True)
class Move:
    """A region that is put elsewhere, `dx` pixels to the right and `dy` down."""

    region: Region
    dx: int
    dy: int

    @property
    def target(self) -> Region:
        """Where it comes to lie."""
        old = self.region
        return Region(x=old.x + self.dx, y=old.y + self.dy, width=old.width, height=old.height)

    def __str__(self) -> str:
        return f"{self.region},{self.dx},{self.dy}"


@dataclass(frozen=True, kw_only=True)
class Edits:
    """Everything that is changed at one moment."""

    ram: tuple[RamEdit, ...] = ()
    """Changes of memory, in this order."""
    masks: tuple[Region, ...] = ()
    """Regions of the picture that are painted over."""
    moves: tuple[Move, ...] = ()
    """Regions of the picture that are moved, after the masks, in this order."""
    fill: Colour | None = None
    """Colour of what is masked or moved away; None: the commonest around it, on each screen."""

    @property
    def change_picture(self) -> bool:
        """Whether they change what the agent is shown, and not only the game."""
        return bool(self.masks or self.moves)

    @property
    def regions(self) -> list[Region]:
        """Every region of the picture that they change."""
        return [*self.masks, *(r for move in self.moves for r in (move.region, move.target))]

    def check(self, screen: tuple[int, int]) -> None:
        """Raise InputError for a region that is not on a screen of (height, width)."""
        expected = f"expected it on the screen, {screen[1]} pixels wide and {screen[0]} high"
        for region in self.masks:
            if not region.is_within(screen):
                raise InputError(f"--mask {region}: {expected}")
        for move in self.moves:
            for name, region in (("from", move.region), ("to", move.target)):
                if not region.is_within(screen):
                    raise InputError(f"--move {move}: {name} {region}: {expected}")

    def new_bytes(self, ram: UInt8Array) -> dict[int, int]:
        """What the changed bytes of ram uint8 [128] become; InputError if one leaves 0 to 255."""
        new: dict[int, int] = {}
        for edit in self.ram:
            new[edit.byte] = edit.result(new.get(edit.byte, int(ram[edit.byte])))
        return new

    def paint(self, screen: UInt8Array) -> UInt8Array:
        """A screen [H, W, 3] with its regions masked and moved, uint8 [H, W, 3], a new array."""
        painted = screen.copy()
        for region in self.masks:
            painted[region.where] = self._fill(region, painted)
        for move in self.moves:
            moved = painted[move.region.where].copy()
            painted[move.region.where] = self._fill(move.region, painted)
            painted[move.target.where] = moved
        return painted

    def _fill(self, region: Region, screen: UInt8Array) -> UInt8Array:
        return region.background(screen) if self.fill is None else np.array(self.fill, np.uint8)


def parse_ram(text: str) -> RamEdit:
    """`99=60`, `101+=8` or `72-=4`; InputError for anything else."""
    match = _RAM.fullmatch(text)
    if match is None:
        raise InputError(
            f"--ram {text!r}: expected BYTE=VALUE, BYTE+=VALUE or BYTE-=VALUE, such as 99=60"
        )
    byte, operation, value = int(match[1]), match[2], int(match[3])
    if byte >= RAM_SIZE:
        raise InputError(f"--ram {text}: byte {byte}: expected 0 to {RAM_SIZE - 1}")
    if value >= 256:
        raise InputError(f"--ram {text}: value {value}: expected 0 to 255")
    return RamEdit(byte=byte, operation=operation, value=value)


def parse_mask(text: str) -> Region:
    """`X,Y,W,H` in pixels; InputError for anything else and for an empty region."""
    return _region("--mask", text, _numbers("--mask", text, "X,Y,W,H", "such as 60,100,20,10"))


def parse_move(text: str) -> Move:
    """`X,Y,W,H,DX,DY` in pixels; InputError for anything else and for a move to nowhere."""
    numbers = _numbers("--move", text, "X,Y,W,H,DX,DY", "such as 60,100,20,10,-15,0")
    *rectangle, dx, dy = numbers
    if not (dx or dy):
        raise InputError(f"--move {text}: expected DX or DY other than 0")
    return Move(region=_region("--move", text, rectangle), dx=dx, dy=dy)


def parse_colour(text: str) -> Colour:
    """`R,G,B`; InputError for anything else."""
    red, green, blue = _numbers("--fill", text, "R,G,B", "such as 0,0,0")
    if not all(0 <= level < 256 for level in (red, green, blue)):
        raise InputError(f"--fill {text}: expected levels from 0 to 255")
    return red, green, blue


def _numbers(option: str, text: str, form: str, example: str) -> list[int]:
    count = form.count(",") + 1
    if not re.fullmatch(",".join([_NUMBER] * count), text):
        raise InputError(f"{option} {text!r}: expected {form} in whole numbers, {example}")
    return [int(number) for number in text.split(",")]


def _region(option: str, text: str, numbers: Sequence[int]) -> Region:
    x, y, width, height = numbers
    if width < 1 or height < 1:
        raise InputError(f"{option} {text}: expected a width and a height of 1 or more")
    return Region(x=x, y=y, width=width, height=height)
