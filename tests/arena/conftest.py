"""A suite of two small games, its entries, and an own policy that runs at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rumormill.cli import main

SUITE = """
name = "mine"
title = "Two games"

[scale.quick]
horizon = 40
trials = 6
n = 4

[networks.ring]
kind = "ring"

[laws.gauss]
law = "gaussian"
K = 2

[worlds.perfect]

[worlds.lossy]
channel = { type = "imperfect", p = 0.7, delay = 2 }

[entries."Alone, half"]
type = "robust"
zeta = 0.5
"""

OWN = """
class Greedy:
    def __init__(self, seat):
        self.paid = [0.0] * seat.n_arms
        self.pulled = [0] * seat.n_arms

    def choose(self, t):
        means = [p / n if n else 1e9 for p, n in zip(self.paid, self.pulled)]
        return means.index(max(means))

    def observe(self, t, arm, reward):
        self.paid[arm] += reward
        self.pulled[arm] += 1

    def outgoing(self, t):
        return []

    def receive(self, messages):
        pass
"""


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(SUITE)
    return path


@pytest.fixture
def own_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An own policy in the working folder, by its name."""
    (tmp_path / "greedy_of_mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return "greedy_of_mine:Greedy"


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def arena(capsys: pytest.CaptureFixture[str], suite_file: Path, tmp_path: Path) -> Call:
    """`rumormill arena` on the small suite: exit code, output, and what was said beside it."""

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["arena", *words, "--suite", str(suite_file), "--out", str(tmp_path / "out"), "--jobs", "1"])
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return call
