"""`rumormill figure`: pictures and tables to publish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]

STORED = str(Path(__file__).parent.parent / "experiments" / "data" / "run-0.1.0")


def test_one_figure_at_the_width_of_a_column(cli: Cli) -> None:
    said = cli("figure", STORED, "--only", "agents", "--style", "paper", "--width", "84mm", "--out", "drawn")
    assert said.code == 0
    assert said.out.split() == [f"drawn/agents.{kind}" for kind in ("png", "svg", "pdf", "txt")]
    drawing = Path("drawn/agents.svg").read_text()
    assert f'width="{84 / 25.4 * 72:.2f}'[:-1] in drawing
    assert "STIXGeneral" in drawing


def test_runs_in_one_figure_with_tables_aside(cli: Cli) -> None:
    said = cli("figure", STORED, STORED, "--panel", "--linear", "--out", "here/both")
    assert said.code == 0
    assert said.out.split() == [f"here/both.{kind}" for kind in ("png", "svg", "pdf", "txt")]
    assert Path("here/both.txt").read_text().startswith("Mean group regret of all agents together. (a) ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "agent"], "--only 'agent' is not allowed: did you mean 'agents'"),
        (["--width", "wide"], "--width 'wide' is not allowed: from 1in to 40in, as 3.3in, 84mm"),
        (["--width", "1mm"], "--width '1mm' is not allowed"),
        (["--linear"], "--linear is for --panel"),
    ],
)
def test_mistakes_in_a_line(cli: Cli, words: list[str], message: str) -> None:
    said = cli("figure", STORED, *words)
    assert said.code == 2
    assert message in said.err
