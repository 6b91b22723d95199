"""How curves look: colours that colour-blind readers can tell apart, and markers that say the same again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from zlib import crc32

# Okabe and Ito's colours.
BLACK, ORANGE, SKY, GREEN, YELLOW = "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, RED, PINK, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
# Of curves that no policy played.
REFERENCE = "#6B6B6B"

# A marker's name, as matplotlib, Bokeh and a line of text have it.
MARKERS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "circle": ("o", "circle", "●"),
        "square": ("s", "square", "■"),
        "triangle": ("^", "triangle", "▲"),
        "down": ("v", "inverted_triangle", "▼"),
        "diamond": ("D", "diamond", "◆"),
        "star": ("*", "star", "★"),
        "hexagon": ("h", "hex", "⬢"),
        "plus": ("P", "plus", "✚"),
        "cross": ("X", "x", "✖"),
    }
)
LINES = ("solid", "dashed", "dotted", "dashdot")


@dataclass(frozen=True)
class Style:
    """The look of one curve.

    Attributes
    ----------
    colour : str
        As HTML writes it, such as "#0072B2".
    marker : str
        A key of MARKERS.
    line : str
        One of LINES.
    """

    colour: str
    marker: str = "circle"
    line: str = "solid"

    def __post_init__(self) -> None:
        if self.marker not in MARKERS or self.line not in LINES:
            raise ValueError(
                f"`marker` and `line` of Style must be among {', '.join(MARKERS)} and {', '.join(LINES)}. "
                f"Got {self.marker!r} and {self.line!r}."
            )


def fallback_style(name: str) -> Style:
    """Return a style for something that nobody chose one for: the same for the same name, always.

    Examples
    --------
    >>> fallback_style("mine") == fallback_style("mine")
    True
    """
    colours = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK)
    looks = [Style(colour, marker, "dashed") for marker, colour in product(MARKERS, colours)]
    return looks[crc32(name.encode()) % len(looks)]
