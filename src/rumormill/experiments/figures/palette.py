"""How curves look, in figures and report alike: told apart by colour, dash and marker, each on its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """One curve's look, in the words of matplotlib and of plotly."""

    colour: str
    line: str | tuple[float, tuple[float, ...]]
    dash: str
    marker: str
    symbol: str


# Colours of Okabe and Ito, safe for the usual kinds of colour blindness; yellow is left out, it drowns in
# print.
LOOKS = (
    Look("#0072B2", "-", "solid", "o", "circle"),
    Look("#D55E00", "--", "dash", "s", "square"),
    Look("#009E73", "-.", "dashdot", "^", "triangle-up"),
    Look("#CC79A7", ":", "dot", "D", "diamond"),
    Look("#444444", (0, (6, 1.5, 1, 1.5, 1, 1.5)), "longdashdot", "v", "triangle-down"),
    Look("#56B4E9", (0, (8, 2)), "longdash", "P", "cross"),
    Look("#E69F00", (0, (1, 1)), "dot", "X", "x"),
)


def look(index: int) -> Look:
    """The look of the policy that comes index-th; more than seven start again."""
    return LOOKS[index % len(LOOKS)]
