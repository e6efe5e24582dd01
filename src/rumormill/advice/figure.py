"""The trade-off behind advice, drawn: regret against messages for every setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumormill import catalogue
from rumormill.advice.search import label_of
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.style import (
    GREY,
    HEIGHT,
    WIDTH,
    decades_and_zero,
    new_figure,
    plain_ticks,
    style,
)
from rumormill.text import rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rumormill.advice.advise import Advice


def pareto_figure(advice: Advice) -> Figure:
    """Every setting by what it sends and what it loses; the front as a line, the advice as a star.

    Hollow marks are settings without a guarantee for these tails.
    """
    rows = advice.rows()
    labels = {policy: label_of(policy) for policy in catalogue.POLICIES}
    look = looks(labels.values())
    with style():
        figure = new_figure(WIDTH + 0.6, HEIGHT + 0.4)
        axes = figure.subplots()
        axes.set_yscale("log")
        for index, (policy, label) in enumerate(labels.items()):
            mark = look[label]
            aside = 1 + 0.07 * (index - 1)  # so that policies that send as much do not hide each other
            for guaranteed in (True, False):
                shown = [r for r in rows if r["policy"] == policy and r["guaranteed"] == guaranteed]
                axes.plot(
                    [row["messages_per_round"] * aside for row in shown],
                    [row["regret"] for row in shown],
                    linestyle="none",
                    marker=mark.marker,
                    color=mark.colour,
                    markerfacecolor=mark.colour if guaranteed else "none",
                    alpha=0.85,
                    label=label if guaranteed else None,
                )
        front = sorted((row for row in rows if row["on_front"]), key=lambda row: row["messages_per_round"])
        axes.plot(
            [row["messages_per_round"] for row in front],
            [row["regret"] for row in front],
            color="#444444",
            linewidth=0.8,
            zorder=1,
            label="front",
        )
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
        if not all(row["guaranteed"] for row in rows):
            axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="hollow: no guarantee")
        axes.set_title(f"{advice.case.name}: {advice.chosen}")
        axes.set_xlabel("messages per round, all links together")
        axes.set_ylabel(f"group regret at round {rounded(advice.horizon)}")
        decades_and_zero(axes, [row["messages_per_round"] for row in rows])
        plain_ticks(axes, x=False)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
