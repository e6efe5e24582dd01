"""A user's own classes on the command line, named as module:Class."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rumormill.errors import SlowEngineNotice

OWN = '''
from dataclasses import dataclass

import numpy as np

import rumormill as rm


@dataclass(frozen=True)
class Greedy(rm.Policy):
    """The best average so far, and now and then any arm."""

    rate: float = 0.1
    bold: bool = False

    def agent(self, seat):
        return GreedyAgent(seat, 2 * self.rate if self.bold else self.rate)


class GreedyAgent:
    def __init__(self, seat, rate):
        self.rate, self.rng = rate, seat.rng
        self.sums, self.counts = np.zeros(seat.n_arms), np.zeros(seat.n_arms)

    def choose(self, t):
        if t <= len(self.sums):
            return t - 1
        if self.rng.random() < self.rate:
            return int(self.rng.integers(len(self.sums)))
        return int(np.argmax(self.sums / self.counts))

    def observe(self, t, arm, reward):
        self.sums[arm] += reward
        self.counts[arm] += 1

    def outgoing(self, t):
        return []

    def receive(self, messages):
        pass


@dataclass(frozen=True)
class Wheel(rm.Topology):
    """A ring with a hub."""

    n: int

    def build(self, rng):
        rim = [(v, v % (self.n - 1) + 1) for v in range(1, self.n)]
        return rm.Network.numbered(self.n, np.array([*rim, *((0, v) for v in range(1, self.n))]))


@dataclass(frozen=True)
class Coin(rm.Arm):
    """Heads or tails."""

    stake: float = 1.0
    middle: float = 0.0
    mean = property(lambda self: self.middle)
    tail_index = property(lambda self: float("inf"))

    def sample(self, rng, size):
        return self.middle + self.stake * (2.0 * rng.integers(0, 2, size) - 1.0)

    def at_mean(self, mean):
        return Coin(self.stake, mean)

    def _moment(self, p, center):
        return (abs(self.middle + self.stake - center) ** p + abs(self.middle - self.stake - center) ** p) / 2


@dataclass(frozen=True)
class Halved(rm.EmpiricalMean):
    """Of a size that no average has."""


@dataclass(frozen=True)
class Deaf(rm.Channel):
    """Nothing arrives."""

    def open(self, network, seed):
        return self

    def send(self, t, sender, receiver, batch):
        pass

    def deliver(self, t, receiver):
        return []
'''
WORDS = ("--arms", "own:Coin stake=2.0 K=2", "--horizon", "20", "--trials", "2", "--json")

pytestmark = pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    before = list(sys.path)
    yield path
    sys.path[:] = before
    sys.modules.pop("own", None)


def rows(answer: Any) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.err
    found: list[dict[str, Any]] = json.loads(answer.out)["runs"][0]["rows"]
    return found


def test_simulate_takes_all_five_kinds(cli: Any) -> None:
    policies = ("--policy", "own:Greedy rate=.2 bold=True", "--policy", "kmp gamma=1 estimator=own:Halved")
    everything = (*WORDS, *policies, "--network", "own:Wheel n=6")
    perfect = rows(cli("simulate", *everything))
    assert [row["policy"] for row in perfect] == ["Greedy", "KMP"]
    assert perfect[1]["messages_per_round"] == 2 * 10  # five spokes, five on the rim
    deaf = rows(cli("simulate", *everything, "--channel", "own:Deaf"))
    assert deaf[0] == perfect[0]
    assert deaf[1]["regret"] != perfect[1]["regret"]


def test_simulate_says_who_plays_slowly(cli: Any) -> None:
    answer = cli("simulate", *WORDS, "--network", "ring n=4", "--policy", "own:Greedy")
    assert answer.code == 0
    notices = [line for line in answer.err.splitlines() if "reference engine" in line]
    assert len(notices) == 1


def test_processes_play_own_classes_too(cli: Any) -> None:
    words = ("simulate", *WORDS, "--network", "own:Wheel n=5", "--policy", "own:Greedy", "--jobs", "2")
    threads = rows(cli(*words, "--executor", "threads"))
    assert rows(cli(*words, "--executor", "processes")) == threads


def test_a_spec_finds_classes_beside_it(
    cli: Any, spec_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = spec_file.read_text().replace('type = "kmp"\nzeta = 1.0', 'type = "own:Greedy"\nlabel = "KMP"')
    spec_file.write_text(text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    answer = cli("run", str(spec_file), "--trials", "2", "--out", "run")
    assert answer.code == 0, answer.err
    assert (elsewhere / "run" / "report.html").is_file()
    assert "KMP beats Robust" in answer.out
    assert cli("show", "run").code == 0


def test_network_and_coverage_take_own_classes(cli: Any) -> None:
    told = json.loads(cli("network", "own:Wheel", "n=6", "--json").out)
    assert (told["agents"], told["links"], told["diameter"]) == (6, 10, 2)
    answer = cli(
        *("coverage", "--law", "own:Coin stake=3", "--estimator", "own:Halved", "--zeta", "1"),
        *("--n", "20", "--repeats", "50", "--delta", "0.1", "--json"),
    )
    assert answer.code == 0, answer.err
    covered = json.loads(answer.out)
    assert covered["law"] == "Coin(stake=3.0, middle=0.0)"
    assert [row["estimator"] for row in covered["rows"]] == ["own:Halved"]


def test_advice_takes_own_networks_and_estimators(cli: Any, spec_file: Path) -> None:
    size = ("--horizon", "20", "--trials", "5", "--json")
    words = ("advise", "mine.toml", "--network", "own:Wheel n=5", *size)
    told = json.loads(cli(*words).out)
    assert told["network"]["agents"] == 5
    with_own = json.loads(cli(*words, "--estimator", "own:Halved", "--estimator", "trimmed").out)
    assert "own:Halved" in {row["estimator"] for row in with_own["settings"]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["simulate", "--policy", "own:Greedi"], "own has no 'Greedi': did you mean 'Greedy'?"),
        (
            ["simulate", "--policy", "own:Greedy rat=0.1"],
            "rat: unknown key: did you mean 'rate'?",
        ),
        (["simulate", "--policy", "own:Greedy rate=fast"], "policies[0].rate = 'fast' is not allowed"),
        (["simulate", "--policy", "own:Coin"], "is not a policy"),
        (["simulate", "--channel", "own:Wheel"], "is not a channel"),
        (["network", "own:Coin"], "is not a network"),
        (["network", "own:Wheel", "m=3"], "network.m: unknown key"),
        (["coverage", "--law", "own:Wheel"], "is not a law"),
        (["coverage", "--estimator", "own:Wheel n=3"], "is not an estimator"),
    ],
)
def test_wrong_names_get_one_line(cli: Any, words: list[str], expected: str) -> None:
    answer = cli(*words)
    assert answer.code == 2
    assert expected in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_the_notice_is_known() -> None:
    assert issubclass(SlowEngineNotice, UserWarning)
