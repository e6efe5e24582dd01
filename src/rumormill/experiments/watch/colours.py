"""A colour for every arm: from blue, the best, to red, the worst, so that one sees where a game is going."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
