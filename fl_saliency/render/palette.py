"""Okabe and Ito's palette: colours that are distinct in the common forms of colour blindness.

Source: Okabe and Ito 2008, "Color Universal Design".
"""

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SKY_BLUE",
    "VERMILION",
    "YELLOW",
]

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"

GREY = "#777777"
"""Not of the palette: for what stands in the background."""
