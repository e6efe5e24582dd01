"""Pictures of a run: every figure is a function of the run, drawn for a printed column."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analyse.bootstrap import bootstrap_band
from rumormill.experiments.analyse.views import (
    Point,
    at_end,
    axis_name,
    curves,
    horizon,
    in_words,
    part,
    points,
    spread,
    value_name,
)
from rumormill.experiments.figures.palette import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.run.store import RunFolder

WIDTH, HEIGHT = 4.2, 3.3
QUANTILES = ("agent_min", "agent_q10", "agent_q25", "agent_q50", "agent_q75", "agent_q90", "agent_max")
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


def style() -> AbstractContextManager[None]:
    """The look that all figures share, for a `with` block."""
    import matplotlib

    context: AbstractContextManager[None] = matplotlib.rc_context(STYLE)
    return context


def thousands(value: float, _: Any = None) -> str:
    """Tick labels as people write numbers: 12,000; parts of one keep their digits."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def short(value: float) -> str:
    """A power of ten in two or three signs: 10k, 1M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def regret_over_time(run: RunFolder, *, log: bool = False) -> Figure:
    """Group regret against the round: the mean, and a 95 % bootstrap band over trials."""
    shown = spread(points(run), MOST_PANELS)
    with style():
        figure, panels = panels_over_time(shown)
        for axes, point in zip(panels, shown, strict=True):
            _over_time(axes, run, point, log)
        _legend(figure)
    return figure


def panels_over_time(shown: list[Point]) -> tuple[Figure, list[Axes]]:
    """One panel per sweep point, with title and the names of the axes: rounds, and group regret."""
    import matplotlib.pyplot as plt

    columns = 2 if len(shown) == 4 else min(len(shown), 3)
    rows = math.ceil(len(shown) / columns)
    size = (WIDTH, HEIGHT) if len(shown) == 1 else (2.1 * columns, 1.8 * rows + 0.6)
    figure: Figure
    figure, grid = plt.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    panels = list(grid.flat)
    for place, (axes, point) in enumerate(zip(panels, shown, strict=False)):
        axes.set_title(in_words(point))
        if place % columns == 0:
            axes.set_ylabel("group regret")
        if place + columns >= len(shown):
            axes.set_xlabel("round")
            axes.tick_params(labelbottom=True)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    return figure, panels[: len(shown)]


def _over_time(axes: Axes, run: RunFolder, point: Point, log: bool) -> None:
    for index, policy in enumerate(run.policies):
        rounds, regret = curves(part(run, policy, point))
        low, high = bootstrap_band(regret)
        mark = look(index)
        axes.fill_between(rounds, low, high, color=mark.colour, alpha=0.18, linewidth=0)
        axes.plot(
            rounds,
            regret.mean(axis=0),
            color=mark.colour,
            linestyle=mark.line,
            marker=mark.marker,
            markevery=_few(rounds, log, index),
            label=policy,
        )
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    plain_ticks(axes)


def _few(rounds: NDArray[np.int64], log: bool, shift: int) -> list[int]:
    """Where markers go: a handful per curve, evenly on the axis, not on top of those of other curves."""
    low, high = (math.log(rounds[0]), math.log(rounds[-1])) if log else (0.0, float(rounds[-1]))
    wanted = low + (high - low) * (np.arange(4) + 0.35 + 0.12 * shift) / 4.3
    scaled = np.log(rounds) if log else rounds
    return sorted({int(np.argmin(np.abs(scaled - at))) for at in wanted})


def regret_by_parameter(run: RunFolder, axis: str) -> Figure:
    """Group regret at the horizon as one swept parameter varies; other axes make small multiples."""
    import matplotlib.pyplot as plt

    if axis not in run.axes:
        raise InputError(f"{axis!r} is not swept in this run: {', '.join(run.axes) or 'nothing is'}")
    others = [name for name in run.axes if name != axis]
    groups: list[Point] = [{}]
    if others:
        groups = [dict(row) for row in run.frame.select(others).unique(maintain_order=True).to_dicts()]
    shown = spread(groups, MOST_PANELS)
    with style():
        size = (WIDTH, HEIGHT) if len(shown) == 1 else (2.3 * len(shown), 2.8)
        figure: Figure
        figure, grid = plt.subplots(
            1, len(shown), figsize=size, layout="constrained", squeeze=False, sharey=True
        )
        for axes, group in zip(grid.flat, shown, strict=True):
            _by_parameter(axes, run, axis, group)
            axes.set_title(in_words(group))
            axes.set_xlabel(axis_name(axis))
        grid.flat[0].set_ylabel(f"group regret at round {horizon(run):,}")
        _legend(figure)
    return figure


def _by_parameter(axes: Axes, run: RunFolder, axis: str, group: Point) -> None:
    values = [point[axis] for point in points(run) if group.items() <= point.items()]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    places = np.array(values, float) if numeric else np.arange(len(values), dtype=float)
    step = float(np.min(np.diff(np.sort(places)))) if len(places) > 1 else 1.0
    for index, policy in enumerate(run.policies):
        mark = look(index)
        ends = [at_end(part(run, policy, {**group, axis: value})) for value in values]
        mean, reach = _mean_and_reach(ends)
        # A little aside, so that bars of different policies do not hide each other.
        aside = places + (index - (len(run.policies) - 1) / 2) * 0.04 * step
        axes.errorbar(
            aside,
            mean,
            yerr=reach,
            color=mark.colour,
            linestyle=mark.line if numeric else "none",
            marker=mark.marker,
            capsize=2,
            elinewidth=1.0,
            label=policy,
        )
    axes.set_ylim(bottom=0)
    axes.set_xticks(places, [value_name(value) for value in values])
    plain_ticks(axes, x=False)


def agent_distribution(run: RunFolder, point: Point | None = None) -> Figure:
    """How regret is spread over the agents at the horizon: quantiles over agents, averaged over trials."""
    import matplotlib.pyplot as plt

    point = points(run)[-1] if point is None else point
    with style():
        figure: Figure
        figure, axes = plt.subplots(figsize=(WIDTH, 0.36 * len(run.policies) + 1.1), layout="constrained")
        for row, policy in enumerate(run.policies):
            frame = part(run, policy, point)
            least, q10, q25, q50, q75, q90, most = (at_end(frame, name).mean() for name in QUANTILES)
            colour = look(row).colour
            axes.plot([least, most], [row, row], color=colour, linewidth=1.0, solid_capstyle="butt")
            axes.plot([q10, q90], [row, row], color=colour, linewidth=3.5, alpha=0.45, solid_capstyle="butt")
            axes.plot([q25, q75], [row, row], color=colour, linewidth=8.0, alpha=0.75, solid_capstyle="butt")
            axes.plot(q50, row, marker=look(row).marker, color="white", markeredgecolor=colour, markersize=5)
        axes.set_yticks(range(len(run.policies)), run.policies)
        axes.set_ylim(len(run.policies) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xscale("log")
        axes.set_xlabel(
            f"regret of one agent at round {horizon(run):,}\n(marker: median; bars: 50 % and 80 %; line: all)"
        )
        axes.set_title(in_words(point))
        plain_ticks(axes, y=False)
    return figure


def regret_per_message(run: RunFolder) -> Figure:
    """What communication buys: regret at the horizon against what was sent for it."""
    import matplotlib.pyplot as plt

    units = {"messages": "messages per round", "wire_bytes": "bytes per round"}
    with style():
        figure: Figure
        figure, grid = plt.subplots(1, 2, figsize=(4.8, 3.3), layout="constrained", sharey=True)
        for axes, (column, unit) in zip(grid, units.items(), strict=True):
            _against_sent(axes, run, column)
            axes.set_xlabel(unit)
        grid[0].set_ylabel(f"group regret at round {horizon(run):,}")
        _legend(figure)
    return figure


def _against_sent(axes: Axes, run: RunFolder, column: str) -> None:
    rounds = horizon(run)
    everything: list[float] = []
    for index, policy in enumerate(run.policies):
        frames = [part(run, policy, point) for point in points(run)]
        sent = [float(at_end(frame, column).mean()) / rounds for frame in frames]
        everything += sent
        mark = look(index)
        mean, reach = _mean_and_reach([at_end(frame) for frame in frames])
        axes.errorbar(
            sent,
            mean,
            yerr=reach,
            color=mark.colour,
            linestyle=mark.line if len(set(sent)) > 1 else "none",
            linewidth=0.8,
            marker=mark.marker,
            markersize=5,
            capsize=2,
            label=policy,
        )
    axes.set_yscale("log")
    plain_ticks(axes, x=False)
    decades_and_zero(axes, everything)


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
    axes.set_xticks([0, *ticks], ["0", *(short(tick) for tick in ticks)])
    axes.xaxis.set_minor_locator(NullLocator())
    nothing_sent = min(sent) == 0
    axes.set_xlim(-0.25 * 10.0**low if nothing_sent else 0.6 * min(some), 1.6 * max(some))


def _mean_and_reach(ends: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means over trials, and how far their 95 % bands reach down and up."""
    mean = np.array([end.mean() for end in ends])
    bands = np.array([bootstrap_band(end[:, None]) for end in ends])[:, :, 0]
    return mean, np.abs(bands.T - mean)


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
        axis.set_major_formatter(FuncFormatter(thousands))


def _legend(figure: Figure) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = 3 if figure.get_size_inches()[0] > 5 else 2
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2)


def main_figure(run: RunFolder) -> Figure:
    """The figure that answers the run's question: against the parameter swept, else against the round."""
    return regret_by_parameter(run, run.axes[0]) if run.axes else regret_over_time(run)


def draw_all(run: RunFolder, out_dir: Path, bounds: RunBounds | None = None) -> list[Path]:
    """Every figure that this run has something to say in, as PNG and SVG."""
    from rumormill.experiments.figures.bounds import bounds_figure
    from rumormill.experiments.figures.network import network_figures

    figures: dict[str, Figure] = {
        "regret": regret_over_time(run),
        "regret-log": regret_over_time(run, log=True),
        **{f"regret-by-{axis}": regret_by_parameter(run, axis) for axis in run.axes},
        "agents": agent_distribution(run),
        "messages": regret_per_message(run),
        **network_figures(run),
    }
    if bounds is not None:
        figures["regret-bounds"] = bounds_figure(bounds)
    return [path for name, figure in figures.items() for path in save(figure, out_dir / name)]


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write PNG and SVG without anything that changes from run to run, and close the figure."""
    import matplotlib.pyplot as plt

    stem.parent.mkdir(parents=True, exist_ok=True)
    written = []
    with style():
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None, "Creator": None})):
            path = stem.with_name(stem.name + suffix)
            figure.savefig(path, metadata=metadata)
            written.append(path)
    plt.close(figure)
    return written
