"""Agents by their regret, and regret by what was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from figures.conftest import small_run
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures.regret import agent_distribution, regret_per_message
from rumormill.experiments.run.store import RunFolder
from rumormill.plotting.style import key_below, new_figure, style


def test_agents_are_drawn_from_their_quantiles(plain_run: RunFolder, plain: Summary) -> None:
    (axes,) = agent_distribution(plain).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == plain.policies
    last = plain_run.frame.filter(pl.col("policy") == "KMP", pl.col("t") == 40)
    whole, middle = axes.lines[0].get_xdata(), axes.lines[3].get_xdata()
    assert whole == pytest.approx([last["agent_min"].mean(), last["agent_max"].mean()])
    assert middle == pytest.approx([last["agent_q50"].mean()])


def test_lines_of_messages_go_along_the_reach_only(swept: Summary) -> None:
    left, _ = regret_per_message(swept).axes
    bars: list[Any] = list(left.containers)
    for policy, drawn in zip(swept.policies, bars, strict=True):
        assert len(drawn.lines[0].get_xdata()) == 3  # γ = 0, 1, 3, at the last confidence
        assert (drawn.lines[0].get_linestyle() != "None") == (policy != "Robust")


def test_messages_against_regret(plain_run: RunFolder, plain: Summary) -> None:
    left, right = regret_per_message(plain).axes
    for axes, column in ((left, "messages"), (right, "wire_bytes")):
        bars: list[Any] = list(axes.containers)
        for policy, drawn in zip(plain.policies, bars, strict=True):
            last = plain_run.frame.filter(pl.col("policy") == policy, pl.col("t") == 40)
            assert drawn.lines[0].get_xdata() == pytest.approx([last[column].to_numpy().mean() / 40])
    low, high = left.get_xlim()
    assert low < 0 < high  # those who send nothing have a place


def test_those_who_send_as_much_stand_side_by_side(plain: Summary) -> None:
    figure = regret_per_message(plain)
    figure.canvas.draw()
    left = figure.axes[0]
    places = []
    for bars in left.containers:
        line: Any = bars.get_children()[0]
        x, y = line.get_transform().transform(line.get_xydata())[0]
        places.append(x)
        low, high = left.get_window_extent().intervaly
        assert low < y < high  # offset, not out of sight
    talking = sorted(places)[1:]  # all but agents alone send on every link
    apart = np.diff(talking) * 72 / figure.dpi
    assert apart == pytest.approx([5.0] * (len(talking) - 1), abs=0.5)


@pytest.mark.parametrize("count", range(1, 14))
@pytest.mark.parametrize("long", [0, -1])
def test_no_name_of_the_key_is_cut_off(count: int, long: int) -> None:
    names = [f"Policy {i}" for i in range(count)]
    names[long] = "a policy with rather a long name"
    with style():
        figure = new_figure(5.2, 3.3)
        axes = figure.subplots()
        for name in names:
            axes.plot([0, 1], [0, 1], label=name)
        key_below(figure)
    figure.canvas.draw()
    words = [text.get_window_extent() for text in figure.legends[0].get_texts()]
    assert max(box.x1 for box in words) <= figure.bbox.x1
    assert min(box.x0 for box in words) >= 0


def test_nobody_sends_anything(tmp_path: Path) -> None:
    alone = small_run(tmp_path / "alone", policies=[{"type": "robust", "zeta": 1.0}])
    for axes in regret_per_message(summarise(alone)).axes:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0"]
