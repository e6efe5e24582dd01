"""Pictures of a run: every figure is a function of the run, drawn for a printed column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analysis import bootstrap_band
from rumormill.experiments.palette import look

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.store import RunFolder

Point = dict[str, Any]

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


def points(run: RunFolder) -> list[Point]:
    """The sweep points in order; one empty point when nothing is swept."""
    if not run.axes:
        return [{}]
    return [dict(row) for row in run.frame.select(run.axes).unique(maintain_order=True).to_dicts()]


def part(run: RunFolder, policy: str, point: Point) -> pl.DataFrame:
    """The rows of one policy at one sweep point."""
    import polars as pl

    keep = pl.col("policy") == policy
    for axis, value in point.items():
        keep &= pl.col(axis) == value
    return run.frame.filter(keep)


def curves(frame: pl.DataFrame, column: str = "regret") -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rounds recorded, and the column as (trials, rounds)."""
    ordered = frame.sort("trial", "t")
    rounds = np.unique(ordered["t"].to_numpy())
    return rounds, ordered[column].to_numpy().reshape(-1, len(rounds)).astype(np.float64)


def at_end(frame: pl.DataFrame, column: str = "regret") -> NDArray[np.float64]:
    """The last value of every trial."""
    return curves(frame, column)[1][:, -1]


def in_words(point: Point) -> str:
    """A sweep point as a title."""
    return ", ".join(f"{axis_name(axis)} = {value_name(value)}" for axis, value in point.items())


def axis_name(axis: str) -> str:
    """What a sweep parameter is called on an axis."""
    return {"gamma": "γ (hops)", "alpha": "tail index α", "zeta": "ζ", "eps": "ε"}.get(axis, axis)


def value_name(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def thousands(value: float, _: Any = None) -> str:
    """Tick labels as people write numbers: 12,000; parts of one keep their digits."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def regret_over_time(run: RunFolder, *, log: bool = False) -> Figure:
    """Group regret against the round: the mean, and a 95 % bootstrap band over trials."""
    import matplotlib.pyplot as plt

    shown = spread(points(run), MOST_PANELS)
    with style():
        columns = min(len(shown), 3)
        rows = math.ceil(len(shown) / columns)
        size = (WIDTH, HEIGHT) if len(shown) == 1 else (2.1 * columns, 1.75 * rows + 0.6)
        figure, grid = plt.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=log
        )
        for axes, point in zip(grid.flat, shown, strict=False):
            _over_time(axes, run, point, log)
            axes.set_title(in_words(point))
        for axes in list(grid.flat)[len(shown) :]:
            axes.set_visible(False)
        _shared_labels(figure, grid, "round", "group regret")
        _legend(figure, run)
    return figure


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
    _plain_ticks(axes)


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
        figure, grid = plt.subplots(
            1, len(shown), figsize=size, layout="constrained", squeeze=False, sharey=True
        )
        for axes, group in zip(grid.flat, shown, strict=True):
            _by_parameter(axes, run, axis, group)
            axes.set_title(in_words(group))
        _shared_labels(figure, grid, axis_name(axis), f"group regret at round {_horizon(run):,}")
        _legend(figure, run)
    return figure


def _by_parameter(axes: Axes, run: RunFolder, axis: str, group: Point) -> None:
    values = [point[axis] for point in points(run) if group.items() <= point.items()]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    places = np.array(values, float) if numeric else np.arange(len(values), dtype=float)
    step = float(np.min(np.diff(np.sort(places)))) if len(places) > 1 else 1.0
    for index, policy in enumerate(run.policies):
        mark = look(index)
        ends = [at_end(part(run, policy, {**group, axis: value})) for value in values]
        bands = np.array([bootstrap_band(end[:, None]) for end in ends])[:, :, 0]
        mean = np.array([end.mean() for end in ends])
        # A little aside, so that bars of different policies do not hide each other.
        aside = places + (index - (len(run.policies) - 1) / 2) * 0.04 * step
        axes.errorbar(
            aside,
            mean,
            yerr=np.abs(bands.T - mean),
            color=mark.colour,
            linestyle=mark.line if numeric else "none",
            marker=mark.marker,
            capsize=2,
            elinewidth=1.0,
            label=policy,
        )
    axes.set_ylim(bottom=0)
    axes.set_xticks(places, [value_name(value) for value in values])
    _plain_ticks(axes, x=False)


def agent_distribution(run: RunFolder, point: Point | None = None) -> Figure:
    """How regret is spread over the agents at the horizon: quantiles over agents, averaged over trials."""
    import matplotlib.pyplot as plt

    point = points(run)[-1] if point is None else point
    with style():
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
        axes.set_xlim(left=0)
        axes.set_xlabel(
            f"regret of one agent at round {_horizon(run):,}\n"
            "marker: median; bars: middle 50 % and 80 % of agents; line: all"
        )
        axes.set_title(in_words(point))
        _plain_ticks(axes, y=False)
    return figure


def regret_per_message(run: RunFolder) -> Figure:
    """What communication buys: regret at the horizon against the messages sent for it."""
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
        rounds = _horizon(run)
        for index, policy in enumerate(run.policies):
            frames = [part(run, policy, point) for point in points(run)]
            sent = [at_end(frame, "messages").mean() / rounds for frame in frames]
            ends = [at_end(frame) for frame in frames]
            mean = np.array([end.mean() for end in ends])
            bands = np.array([bootstrap_band(end[:, None]) for end in ends])[:, :, 0]
            mark = look(index)
            axes.errorbar(
                sent,
                mean,
                yerr=np.abs(bands.T - mean),
                color=mark.colour,
                linestyle=mark.line if len(sent) > 1 else "none",
                linewidth=0.8,
                marker=mark.marker,
                markersize=5,
                capsize=2,
                label=policy,
            )
        # Policies that send nothing must have a place on an axis that is otherwise logarithmic.
        axes.set_xscale("symlog", linthresh=_least_sent(run, rounds), linscale=0.3)
        axes.set_xlim(left=-0.05 * _least_sent(run, rounds))
        axes.margins(x=0.08)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("messages sent over links per round, all agents together")
        axes.set_ylabel(f"group regret at round {rounds:,}")
        _plain_ticks(axes)
        _legend(figure, run)
    return figure


def _least_sent(run: RunFolder, rounds: int) -> float:
    sent = run.frame.filter(run.frame["messages"] > 0)
    if sent.is_empty():
        return 1.0
    last = sent.filter(sent["t"] == rounds)["messages"].to_numpy()
    return float(10 ** math.floor(math.log10(max(last.min() / rounds, 1e-9))))


def _horizon(run: RunFolder) -> int:
    return int(run.frame["t"].to_numpy().max())


def spread(items: Sequence[Point], most: int) -> list[Point]:
    """At most so many, first and last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def _plain_ticks(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    from matplotlib.ticker import FuncFormatter

    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        if wanted:
            axis.set_major_formatter(FuncFormatter(thousands))


def _shared_labels(figure: Figure, grid: NDArray[Any], x: str, y: str) -> None:
    if grid.size == 1:
        grid.flat[0].set_xlabel(x)
        grid.flat[0].set_ylabel(y)
    else:
        figure.supxlabel(x, fontsize=8)
        figure.supylabel(y, fontsize=8)


def _legend(figure: Figure, run: RunFolder) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    wide = figure.get_size_inches()[0] > 5
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3 if wide else 2, frameon=False, handlelength=3.2
    )


def draw_all(run: RunFolder, out_dir: Path) -> list[Path]:
    """Every figure that this run has something to say in, as PNG and SVG."""
    from rumormill.experiments.netpicture import network_figures

    figures: dict[str, Figure] = {
        "regret": regret_over_time(run),
        "regret-log": regret_over_time(run, log=True),
        **{f"regret-by-{axis}": regret_by_parameter(run, axis) for axis in run.axes},
        "agents": agent_distribution(run),
        "messages": regret_per_message(run),
        **network_figures(run),
    }
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
