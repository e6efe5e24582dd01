"""What all figures share: their style, panels, ticks and key, and how they become files."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rumormill.experiments.run.files import StoreError, write_atomically
from rumormill.text import short, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Item = TypeVar("Item")

WIDTH, HEIGHT = 4.2, 3.3
GREY = "#777777"
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
    "svg.fonttype": "path",
    "svg.hashsalt": "rumormill",
    "savefig.dpi": 200,
}
# Nothing that changes from run to run goes into a file.
METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}

_for_pyplot = ContextVar("_for_pyplot", default=False)


def style() -> AbstractContextManager[None]:
    """The look that all figures share, for a `with` block: no setting of the user's own comes in."""
    import matplotlib.style

    context: AbstractContextManager[None] = matplotlib.style.context(["default", STYLE])
    return context


@contextmanager
def for_pyplot() -> Iterator[None]:
    """Figures made inside are known to pyplot, so that `plt.show()` shows them."""
    token = _for_pyplot.set(True)
    try:
        yield
    finally:
        _for_pyplot.reset(token)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure. For files no window is needed, so none can fail to open."""
    options: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    if _for_pyplot.get():
        import matplotlib.pyplot as plt

        shown: Figure = plt.figure(**options)
        return shown
    from matplotlib.figure import Figure as PlainFigure

    plain: Figure = PlainFigure(**options)
    return plain


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


def plain_ticks(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    """Numbers in full; on a short logarithmic axis also at 2 and 5, so that at least two are there."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        if not wanted:
            continue
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            few = math.log10(high / low) < 2.2
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(tick))


def decades_and_zero(axes: Axes, sent: list[float]) -> None:
    """A logarithmic axis with a place for those who send nothing."""
    from matplotlib.ticker import NullLocator

    some = [value for value in sent if value > 0]
    if not some:
        axes.set_xticks([0], ["0"])
        return
    low, high = math.floor(math.log10(min(some))), math.ceil(math.log10(max(some)) + 1e-9)
    axes.set_xscale("symlog", linthresh=10.0**low, linscale=0.6)
    ticks = [10.0**power for power in range(low, high + 1)]
    axes.set_xticks([0, *ticks], ["0", *(short(value) for value in ticks)])
    axes.xaxis.set_minor_locator(NullLocator())
    nothing_sent = min(sent) == 0
    axes.set_xlim(-0.25 * 10.0**low if nothing_sent else 0.6 * min(some), 1.6 * max(some))


def key_below(figure: Figure, more: dict[str, Any] | None = None) -> None:
    """The names of the curves, once for all panels; `more` are further handles by name."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    more = more or {}
    figure.legend(
        [*handles, *more.values()],
        [*labels, *more],
        loc="outside lower center",
        ncols=3 if figure.get_size_inches()[0] > 5 else 2,
        frameon=False,
        handlelength=3.2,
    )


# --- files ----------------------------------------------------------------------------------------------


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as a PNG or SVG file, the same bytes every time."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, metadata=METADATA[kind])
    return buffer.getvalue()


def write_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as the ending of the name says, .png or .svg: all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path.parent} cannot be made for figures: {error.strerror or error}") from None
    write_atomically(path, rendered(figure, path.suffix.removeprefix(".")))
    return path


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as PNG and SVG."""
    return [write_figure(figure, stem.with_name(stem.name + suffix)) for suffix in (".png", ".svg")]
