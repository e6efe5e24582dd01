"""The trade-off behind advice, drawn: regret against messages for every setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rumormill import catalogue
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.style import (
    GREY,
    HEIGHT,
    WIDTH,
    decades_and_zero,
    key_below,
    new_figure,
    plain_ticks,
    style,
)
from rumormill.experiments.spec.tables import label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.advice.advise import Advice

Rows = list[dict[str, Any]]


def pareto_figure(advice: Advice) -> Figure:
    """Every setting by what it sends and what it loses; the front as a line, the advice as a star.

    Hollow marks are settings without a lemma for these tails: they are not recommended.
    """
    rows = advice.rows()
    with style():
        figure = new_figure(WIDTH + 0.6, HEIGHT + 0.4)
        axes = figure.subplots()
        axes.set_yscale("log")
        _settings(axes, rows)
        _front(axes, rows)
        _recommended(axes, rows)
        if not all(row["allowed"] for row in rows):
            axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="hollow: for comparison")
        axes.set_title(f"{advice.case.name}: {advice.chosen}")
        axes.set_xlabel("messages per round, all links together")
        axes.set_ylabel(f"group regret at round {advice.horizon:,}")
        decades_and_zero(axes, [row["messages_per_round"] for row in rows])
        plain_ticks(axes, x=False)
        key_below(figure)
    return figure


def _settings(axes: Axes, rows: Rows) -> None:
    labels = {name: label_of(made) for name, made in catalogue.POLICIES.items()}
    look = looks(labels.values())
    for index, (policy, label) in enumerate(labels.items()):
        mark = look[label]
        aside = 1 + 0.07 * (index - 1)  # so that policies that send as much do not hide each other
        for allowed in (True, False):
            shown = [row for row in rows if row["policy"] == policy and row["allowed"] == allowed]
            axes.plot(
                [row["messages_per_round"] * aside for row in shown],
                [row["regret"] for row in shown],
                linestyle="none",
                marker=mark.marker,
                color=mark.colour,
                markerfacecolor=mark.colour if allowed else "none",
                alpha=0.85,
                label=label if allowed else None,
            )


def _front(axes: Axes, rows: Rows) -> None:
    front = sorted((row for row in rows if row["on_front"]), key=lambda row: row["messages_per_round"])
    axes.plot(
        [row["messages_per_round"] for row in front],
        [row["regret"] for row in front],
        color="#444444",
        linewidth=0.8,
        zorder=1,
        label="front",
    )


def _recommended(axes: Axes, rows: Rows) -> None:
    (best,) = [row for row in rows if row["recommended"]]
    axes.errorbar(
        best["messages_per_round"],
        best["regret"],
        yerr=[[best["regret"] - best["low"]], [best["high"] - best["regret"]]],
        marker="*",
        markersize=12,
        markerfacecolor="none",
        color="black",
        capsize=2,
        linestyle="none",
        label="recommended",
    )
