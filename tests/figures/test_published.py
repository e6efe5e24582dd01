"""What goes into a paper: panels of several runs, tables, upper limits, sheets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from figures.conftest import START
from rumormill.errors import InputError
from rumormill.experiments.analyse.summary import Summary
from rumormill.experiments.figures.registry import panel_caption, panel_figure
from rumormill.experiments.figures.regret import agent_distribution, regret_over_time
from rumormill.experiments.figures.theory import coverage_figure
from rumormill.experiments.report.markup import escaped, write_tables
from rumormill.plotting import style
from rumormill.plotting.rendering import rendered
from rumormill.theory import CoverageRow


@pytest.mark.parametrize("sheet", ["screen", "paper"])
def test_text_stays_text(plain: Summary, sheet: str) -> None:
    with style.drawn_for(sheet):
        svg = rendered(agent_distribution(plain), "svg").decode()
    assert "Decentralized</text>" in svg
    assert ("STIXGeneral" in svg) == (sheet == "paper")


def test_a_figure_for_paper_has_the_width_of_a_column_or_a_page(plain: Summary) -> None:
    def width(figure: Any) -> float:
        return float(figure.get_size_inches()[0])

    with style.drawn_for("paper"):
        assert width(agent_distribution(plain)) == 3.3
        assert width(regret_over_time(plain)) == 6.75
    with style.drawn_for(width=5.0):
        assert width(agent_distribution(plain)) == width(regret_over_time(plain)) == 5.0
    refused = pytest.raises(InputError, match=r"style = 'papier' is not allowed: did you mean 'paper'")
    with refused, style.drawn_for("papier"):
        pass


def test_runs_side_by_side_share_a_key(plain: Summary, swept: Summary) -> None:
    figure = panel_figure([plain, swept, plain, plain])
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [f"({letter}) small" for letter in "abcd"]
    assert [axes.get_xlabel() for axes in shown[:2]] == ["round", "γ (hops) (confidence = anytime)"]
    assert [axes.get_yscale() for axes in panel_figure([plain], linear=True).axes] == ["linear"]
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    others = ["mean, 95 % band (5 trials)", "95 % interval (5 trials)"]
    assert [name for name in key if name != START] == [*plain.policies, *others]
    assert "(b) small (small): at round 40 against γ (hops)" in panel_caption([plain, swept])


def test_the_table_to_publish(swept: Summary, tmp_path: Path) -> None:
    latex, marked, plain_text = (path.read_text() for path in write_tables(swept, tmp_path))
    assert latex.count(r" \\") == 1 + len(swept.rows)
    assert r"\begin{tabular}{lllrrrrr}" in latex
    assert r"$\gamma$ (hops) & confidence & policy & group regret & 95 \% band" in latex
    assert marked.splitlines()[1] == "|---|---|---|---:|---:|---:|---:|---:|"
    assert "5 trials, seed 3 (rumormill, small)." in marked
    read = pl.read_csv(plain_text.encode())
    assert read["regret"].to_list() == [row["regret"] for row in swept.rows]  # all digits


def test_latex_takes_any_label() -> None:
    assert escaped("a_b & 5 % {γ}") == r"a\_b \& 5 \% \{$\gamma$\}"


def test_no_failure_is_an_upper_limit() -> None:
    row = CoverageRow(
        estimator="trimmed",
        law="any",
        eps=1.0,
        n=50,
        L=2.3,
        delta=0.1,
        radius=1.0,
        valid=True,
        repeats=100,
        above=0,
        below=0,
        confidence=0.999,
        low=0.0,
        high=0.05,
    )
    found = {"trimmed": [row]}
    figure = coverage_figure(found)
    limits: Any = figure.axes[0].containers[-1]
    assert limits.lines[0].get_ydata() == pytest.approx([0.05])
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "none failed: upper limit"
