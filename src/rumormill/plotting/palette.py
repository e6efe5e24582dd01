"""How curves look, in figures and report alike: told apart by colour, dash and marker, each on its own.

A look belongs to a name, not to a place in a list: the same policy looks the same in every figure.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Dashes = str | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """One curve's look, in the words of matplotlib and of the page (an SVG dash, and a shape of chart.js)."""

    colour: str
    line: Dashes
    dash: str
    marker: str
    symbol: str

    @property
    def curve(self) -> dict[str, Any]:
        """A line with markers, as matplotlib takes it."""
        return {"color": self.colour, "linestyle": self.line, "marker": self.marker}

    @property
    def dots(self) -> dict[str, Any]:
        """The markers without a line."""
        return self.curve | {"linestyle": "none"}


# Colours of Okabe and Ito, safe for the usual kinds of colour blindness; yellow is left out, it drowns in
# print.
LOOKS = (
    Look("#0072B2", "-", "", "o", "circle"),
    Look("#D55E00", "--", "9 4", "s", "square"),
    Look("#009E73", "-.", "9 3 2 3", "^", "triangle-up"),
    Look("#CC79A7", ":", "2 3", "D", "diamond"),
    Look("#444444", (0, (6, 1.5, 1, 1.5, 1, 1.5)), "12 3 2 3 2 3", "v", "triangle-down"),
    Look("#56B4E9", (0, (8, 2)), "15 4", "P", "cross"),
    Look("#E69F00", (0, (1, 1)), "1 2", "X", "x"),
)


def _mixed(colour: int, turn: int) -> Look:
    """The colour of one look with the dash and marker of another."""
    shape = LOOKS[(colour + turn) % len(LOOKS)]
    return Look(LOOKS[colour].colour, shape.line, shape.dash, shape.marker, shape.symbol)


# The policies that come along. Any other name gets a look from its letters.
OWN_LOOKS = {
    "KMP": LOOKS[0],
    "Centralized": LOOKS[1],
    "Decentralized": LOOKS[2],
    "Decentralized, unfiltered": LOOKS[3],
    "Consensus": LOOKS[4],
    "Robust": LOOKS[5],
    "DDUCB": LOOKS[6],
    "coop-UCB2": _mixed(0, 3),
    "Robust gossip": _mixed(3, 2),
}


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for every name, whatever their order; no two alike as long as there are enough.

    A name keeps its look from run to run, unless another name of the run has taken it.
    """
    names = list(names)
    found = {name: OWN_LOOKS[name] for name in names if name in OWN_LOOKS}
    for name in sorted(set(names) - found.keys()):
        found[name] = _free_look(name, set(found.values()))
    return {name: found[name] for name in names}


def _free_look(name: str, taken: set[Look]) -> Look:
    """The look that the name asks for, or the next one free: first another colour, then another dash."""
    begin = zlib.crc32(name.encode())
    shapes = len(LOOKS)
    order = [_mixed((begin + step) % shapes, turn) for turn in range(shapes) for step in range(shapes)]
    colours = {look.colour for look in taken}
    free = [look for look in order if look not in taken]
    return next((look for look in free if look.colour not in colours), (free or order)[0])


# Blue to orange is safe for the usual kinds of colour blindness; numbers stand in the agents besides.
Ramp = tuple[tuple[int, int, int], ...]
ON_WHITE: Ramp = ((8, 81, 156), (90, 166, 214), (232, 216, 160), (241, 154, 75), (178, 46, 8))
ON_BLACK: Ramp = ((64, 150, 240), (150, 208, 245), (228, 216, 170), (240, 150, 70), (214, 66, 32))


def arm_colours(gaps: Sequence[float], ramp: Ramp = ON_WHITE) -> list[str]:
    """By arm, the better the bluer; arms are told apart by rank, however near their means are."""
    rank = np.empty(len(gaps))
    rank[np.argsort(np.asarray(gaps), kind="stable")] = np.linspace(0, len(ramp) - 1, len(gaps))
    parts = [np.interp(rank, range(len(ramp)), [colour[i] for colour in ramp]) for i in range(3)]
    return [f"#{round(r):02x}{round(g):02x}{round(b):02x}" for r, g, b in zip(*parts, strict=True)]


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read on this colour."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"
