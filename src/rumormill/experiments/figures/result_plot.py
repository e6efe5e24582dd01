"""A simulation's own picture, in the looks of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.regret_over_time import curve
from rumormill.experiments.figures.style import (
    HEIGHT,
    WIDTH,
    band_key,
    for_pyplot,
    from_zero,
    new_figure,
    plain_ticks,
    style,
)
from rumormill.experiments.spec.nesting import label_of
from rumormill.stats.bootstrap import bootstrap_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rumormill.engine.result import Result


def plot_result(result: Result, axes: Any = None, label: str | None = None) -> Figure:
    """Group regret against the round, on the axes given (their scale stays) or in a new figure."""
    cls = result.policy if isinstance(result.policy, type) else type(result.policy)
    name = label if label is not None else result.policy if isinstance(result.policy, str) else label_of(cls)
    with for_pyplot(), style():
        own = axes is None
        axes = new_figure(WIDTH, HEIGHT).subplots() if own else axes
        taken = axes.get_legend_handles_labels()[1]
        log = axes.get_xscale() == "log"
        regret, mark = result.regret, looks([*taken, name])[name]
        curve(
            axes,
            result.checkpoints,
            regret.mean(axis=0),
            bootstrap_band(regret),
            mark,
            name,
            log,
            len(taken),
        )
        handles, labels = axes.get_legend_handles_labels()
        more = band_key(len(regret))
        axes.legend([*handles, *more.values()], [*labels, *more], frameon=False)
        axes.set_xlabel("round")
        axes.set_ylabel("group regret")
        if own:
            axes.set_xlim(left=0)
            from_zero([axes])
            plain_ticks(axes)
            # Ticks are made when they are first drawn: made here, they are of this style too.
            axes.figure.draw_without_rendering()
    figure: Figure = axes.figure
    return figure
