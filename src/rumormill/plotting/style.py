"""What all figures share: their style, panels, ticks and key; and the palette, which tells curves apart.

Curves differ by colour, dash and marker, each on its own. A look belongs to a name, not to a place in a list:
the same policy looks the same in every figure and in the report.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rumormill.errors import InputError
from rumormill.text import nearest, plural, short, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


Item = TypeVar("Item")

WIDTH, HEIGHT = 4.2, 3.3
GREY = "#777777"
# About how wide a letter is, beside the size of its font.
LETTER = 0.58
# Small multiples beyond this many get too small to read.
MOST_PANELS = 6
STYLE = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    # Text stays text: it can be searched, read aloud, and edited before printing.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "rumormill",
    "savefig.dpi": 200,
}


@dataclass(frozen=True)
class Sheet:
    """What a figure is drawn for: its fonts, and how wide it becomes (None: as wide as the figure likes)."""

    settings: dict[str, Any]
    column: float | None = None
    """Inches, for a figure of one panel."""
    page: float | None = None
    """Inches, for a figure of several."""

    def wide(self, width: float) -> float:
        """How wide a figure becomes that would like to have this width."""
        return (self.column if width <= 5 else self.page) or width


# STIX, which matplotlib brings along, is the Times of journals, Greek letters included: no TeX is needed.
TIMES = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "axes.titlesize": 8.0,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "savefig.dpi": 300,
}
SHEETS = {"screen": Sheet({}), "paper": Sheet(TIMES, column=3.3, page=6.75)}

_for_pyplot = ContextVar("_for_pyplot", default=False)
_unseen = ContextVar("_unseen", default=False)
_sheet = ContextVar("_sheet", default=SHEETS["screen"])


def style() -> AbstractContextManager[None]:
    """The look that all figures share, for a `with` block: no setting of the user's own comes in."""
    import matplotlib.style

    context: AbstractContextManager[None] = matplotlib.style.context(
        ["default", STYLE, _sheet.get().settings]
    )
    return context


@contextmanager
def _set(variable: ContextVar[Item], value: Item) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def drawn_for(name: str = "screen", width: float | None = None) -> Iterator[None]:
    """Figures made and written inside are for a screen or for paper, and so many inches wide."""
    if name not in SHEETS:
        raise InputError(f"style = {name!r} is not allowed{nearest(name, SHEETS)}")
    sheet = SHEETS[name]
    with _set(_sheet, sheet if width is None else Sheet(sheet.settings, width, width)):
        yield


def sheet_in_use() -> str:
    """What figures are drawn for at the moment, in words."""
    return repr(_sheet.get())


def for_pyplot() -> AbstractContextManager[None]:
    """Figures made inside are known to pyplot, so that `plt.show()` shows them; not inside of `unseen`."""
    return _set(_for_pyplot, not _unseen.get())


def unseen() -> AbstractContextManager[None]:
    """Figures made inside are not known to pyplot: a notebook does not show them a second time."""
    return _set(_unseen, True)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure. For files no window is needed, so none can fail to open.

    Where the sheet has another width the height follows, but not far: the key needs its lines.
    """
    wide = _sheet.get().wide(width)
    size = (wide, height * max(wide / width, 0.75))
    options: dict[str, Any] = {"figsize": size, "layout": "constrained"}
    if _for_pyplot.get():
        import matplotlib.pyplot as plt

        shown: Figure = plt.figure(**options)
        return shown
    from matplotlib.figure import Figure as PlainFigure

    plain: Figure = PlainFigure(**options)
    return plain


def grid(n_panels: int, *, share_x: bool = False) -> tuple[Figure, list[Axes], int]:
    """A figure of so many panels with one regret axis, in rows of three (four are two by two).

    The last number is how many columns there are.
    """
    columns = 2 if n_panels == 4 else min(n_panels, 3)
    rows = math.ceil(n_panels / columns)
    figure = new_figure(*((WIDTH, HEIGHT) if n_panels == 1 else (2.2 * columns, 1.9 * rows + 0.7)))
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=True).flat)
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    return figure, panels[:n_panels], columns


def heading(axes: Axes, parts: Sequence[str], columns: int = 1) -> None:
    """Parts of a title above a panel, in a line each where one line would reach into the next panel."""
    room = float(axes.figure.get_figure(root=True).get_size_inches()[0]) / columns - 0.35
    size = float(axes.title.get_fontsize()) / 72
    one_line = ", ".join(parts)
    axes.set_title(one_line if LETTER * size * len(one_line) < room else "\n".join(parts))


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many, first and last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


# --- axes -----------------------------------------------------------------------------------------------


def logarithmic(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Logarithmic axes; one on which nothing positive was drawn stays as it is."""
    if x and math.isfinite(axes.dataLim.minposx):
        axes.set_xscale("log")
    if y and math.isfinite(axes.dataLim.minposy):
        axes.set_yscale("log")


def from_zero(panels: Sequence[Axes]) -> None:
    """Regret axes that begin at zero. After all panels are drawn: a limit set earlier cuts later ones off."""
    panels[0].set_ylim(bottom=0)


# What 1,000, 2,000, 5,000 and 10,000 take side by side.
INCHES_PER_DECADE = 1.9


def plain_ticks(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    """Numbers in full; on a short logarithmic axis also at 2 and 5, so that at least two are there.

    In a narrow panel they would touch: there the powers of ten do, if there are two.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        if not wanted:
            continue
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            span = math.log10(high / low)
            few = span < 2.2
            if axis is axes.xaxis and math.floor(math.log10(high)) > math.ceil(math.log10(low)):
                inches = axes.get_window_extent().width / axes.figure.dpi
                few &= inches / span > INCHES_PER_DECADE
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(tick))


def labelled_ticks(axes: Axes, places: Sequence[float], labels: Sequence[str], room: float) -> None:
    """A tick at every place, and labels at those that have room: `room` is the width in inches.

    The first and the last are labelled; what would touch a label further left is not.
    """
    from matplotlib.ticker import NullLocator

    scaled = axes.transScale.transform([(place, 1.0) for place in places])[:, 0]
    extent = max(float(scaled.max() - scaled.min()), 1e-12)
    left = (scaled - scaled.min()) / extent * room
    half = [0.035 * len(label) + 0.03 for label in labels]
    shown: list[int] = []
    for i in sorted(range(len(places)), key=lambda i: (i not in (0, len(places) - 1), i)):
        if all(abs(left[i] - left[j]) > half[i] + half[j] for j in shown):
            shown.append(i)
    axes.set_xticks(places, [label if i in shown else "" for i, label in enumerate(labels)])
    axes.xaxis.set_minor_locator(NullLocator())


def decades_and_zero(axes: Axes, sent: list[float], room: float = 2.0) -> None:
    """A logarithmic axis with a place for those who send nothing; few amounts are named one by one."""
    some = sorted({float(f"{value:.2g}") for value in sent if value > 0})
    if not some:
        axes.set_xticks([0], ["0"])
        return
    low, high = math.floor(math.log10(some[0])), math.ceil(math.log10(some[-1]) + 1e-9)
    begin = 0.5 * some[0]
    axes.set_xscale("symlog", linthresh=begin, linscale=0.4)
    ticks = some
    if len(some) > 4:
        subs = (1.0, 2.0, 5.0) if some[-1] / some[0] < 150 else (1.0,)
        ticks = [sub * 10.0**power for power in range(low, high + 1) for sub in subs]
        ticks = [value for value in ticks if 0.7 * some[0] <= value <= 1.5 * some[-1]]
    nothing = [0.0] if min(sent) == 0 else []
    labelled_ticks(axes, [*nothing, *ticks], [*("0" for _ in nothing), *map(short, ticks)], room)
    axes.set_xlim(-0.35 * begin if nothing else 0.6 * some[0], 1.7 * some[-1])


# --- the key --------------------------------------------------------------------------------------------


def key_below(figure: Figure, more: dict[str, Any] | None = None) -> None:
    """The names of the curves, once for all panels; `more` are further handles by name."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        named |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in named}
    legend_below(figure, named | (more or {}), handlelength=3.2)


def legend_below(figure: Figure, named: dict[str, Any], handlelength: float = 2.0) -> None:
    """A key of these names under the figure, in as many columns as fit."""
    wide = float(figure.get_size_inches()[0])
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=next((n for n in (4, 3, 2) if _key_width(list(named), n, handlelength) < wide), 1),
        frameon=False,
        handlelength=handlelength,
    )


def _key_width(names: list[str], columns: int, handle: float) -> float:
    """About how many inches a key takes; matplotlib fills column by column, the first ones fuller."""
    em, rows, fuller = 7.5 / 72, *divmod(len(names), columns)
    starts = [i * rows + min(i, fuller) for i in range(columns + 1)]
    letters = sum(max(map(len, names[a:b]), default=0) for a, b in pairwise(starts))
    return em * (LETTER * letters + columns * (handle + 2.8) - 2)


def band_key(trials: int) -> dict[str, Any]:
    """What the shaded bands are, for the key."""
    from matplotlib.patches import Patch

    if trials == 1:
        return {"one trial: no band": nothing()}
    return {f"mean, 95 % band ({plural(trials, 'trial')})": Patch(color=GREY, alpha=0.25, linewidth=0)}


def bar_key(trials: int) -> dict[str, Any]:
    """What the error bars are, for the key."""
    if trials == 1:
        return {"one trial: no interval": nothing()}
    return {f"95 % interval ({plural(trials, 'trial')})": dot("", "|", 9, color=GREY)}


def nothing() -> Any:
    """A handle without a picture, for words in a key."""
    return dot("", "")


def dot(label: str, marker: str = "o", size: float | None = 7, **more: Any) -> Any:
    """A marker, for a key."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker=marker, markersize=size, label=label, **more)
