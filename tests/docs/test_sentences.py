"""Sentences with numbers say what the tables of the same page hold, or what the library gives.

A sentence is written here as it stands on the page, with # for each number. It must stand there exactly once,
and its numbers, in their order, are compared with what follows from the table or the library.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import rumormill as rm
from rumormill.experiments.spec.building import build_bandit, build_network
from rumormill.experiments.spec.reading import at_scale, named_spec
from rumormill.theory import regret_bound

ROOT = Path(__file__).parents[2]
NUMBER = r"[-−+]?\d[\d,]*(?:\.\d+)?"
Row = dict[str, float]


@cache
def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def numbers(text: str) -> list[float]:
    return [float(each.replace("−", "-").replace(",", "")) for each in re.findall(NUMBER, text)]


def says(name: str, sentence: str) -> list[float]:
    """The numbers of a sentence, wherever its lines are broken."""
    parts = [r"\s+".join(re.escape(word) for word in part.split(" ")) for part in sentence.split("#")]
    found = re.findall(f"({NUMBER})".join(parts), page(name))
    assert len(found) == 1, f"{name}: stands {len(found)} times: {sentence}"
    return numbers(" ".join(found[0]) if isinstance(found[0], tuple) else found[0])


@cache
def rows(name: str, heading: str, keys: int = 1) -> dict[tuple[str, ...], Row]:
    """The first table below a heading: by its first columns, the first number of each cell by column."""
    lines = page(name).split(f"\n{heading}\n", 1)[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next((i for i, line in enumerate(lines[start:], start) if not line.startswith("|")), len(lines))
    head, _, *body = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines[start:end])
    return {
        tuple(cells[:keys]): {
            column: numbers(cell)[0]
            for column, cell in zip(head[keys:], cells[keys:], strict=True)
            if numbers(cell)
        }
        for cells in body
    }


def low_high(values: list[float], digits: int = 0) -> list[float]:
    return [round(min(values), digits), round(max(values), digits)]


def percent(ratio: float) -> float:
    return 100 * (ratio - 1)


# ---- the imperfect world -----------------------------------------------------------------------------------

IMPERFECT = "docs/imperfect.md"


def test_what_loss_costs() -> None:
    table = rows(IMPERFECT, "## Lost")
    talking = {key: row for key, row in table.items() if key != ("Robust (alone)",)}
    for sentence, p in {
        "than the bands are wide (# to # % here)": "0.9",
        "three in ten # to # %, half": "0.7",
        "half of them # to # %;": "0.5",
    }.items():
        assert says(IMPERFECT, sentence) == low_high([percent(row[p] / row["1"]) for row in talking.values()])
    gain = [-percent(row["0.1"] / table["Robust (alone)",]["0.1"]) for row in talking.values()]
    assert says(IMPERFECT, "talking is still # to # % better than silence") == low_high(gain)
    filtered, plain = table["RCL-LF",], table["Decentralized, unfiltered",]
    worse = [percent(filtered[p] / plain[p]) for p in ("0.1", "0.3", "0.5")]
    assert says(IMPERFECT, "(RCL-LF) is worse by # to # % where much is lost") == low_high(worse)
    assert says(IMPERFECT, "where nothing is (# against #)") == [filtered["1"], plain["1"]]


def test_what_delay_and_absence_cost() -> None:
    late = rows(IMPERFECT, "## Late")
    followers, kmp = late["Centralized (dominating)",], late["KMP",]
    assert says(IMPERFECT, "(# times at D = 20, KMP #)") == [
        round(followers["20"] / followers["0"], 1),
        round(kmp["20"] / kmp["0"], 1),
    ]
    away = rows(IMPERFECT, "## Coming and going")
    patient = percent(
        away["Centralized, patience 32",]["100"] / away["Centralized, patient for ever",]["100"]
    )
    assert says(IMPERFECT, "(# % at 100 rounds;") == [round(patient)]


def test_what_lies_cost() -> None:
    table = rows(IMPERFECT, "## Liars")
    alone = table["Robust (alone)",]["promote"]
    lied = [
        table[name,][attack]
        for name in ("KMP, `guard=0`", "Decentralized, unfiltered")
        for attack in ("promote", "slander")
    ]
    change = [percent(each / alone) for each in lied]
    better, worse = [-each for each in change if each < 0], [each for each in change if each > 0]
    assert len(better) == len(worse) == 2
    assert says(IMPERFECT, "what talking gains: # to # % better than silence") == low_high(better)
    assert says(IMPERFECT, "# to # % worse in the two other cases") == low_high(worse)
    guarded = table["KMP (guarded where somebody lies)",]
    share = [100 * guarded[attack] / alone for attack in ("promote", "slander", "flood")]
    assert says(IMPERFECT, "Guarded KMP is at # to # % of the regret") == low_high(share)


# ---- theory ------------------------------------------------------------------------------------------------

THEORY = "docs/theory.md"


def test_the_constants_of_the_lemmas() -> None:
    constants = {
        mean: [
            rm.RobustUCB(estimator=mean, c="theory").radius(rm.Moments(eps=eps / 20, u=1.0, rho=1.0)).constant
            for eps in range(2, 21)
        ]
        for mean in (rm.TrimmedMean(), rm.ClippedMean())
    }
    trimmed, clipped = constants.values()
    for name, least, most in (
        ("README.md", "# or more for the trimmed mean", "mean, # to # for `rm.ClippedMean()`"),
        (THEORY, r"$4^{p/\varepsilon}$, at least # |", r"\varepsilon$, # to # for $\varepsilon \ge 0.1$"),
    ):
        assert says(name, least) == [round(min(trimmed))]
        low, high = says(name, most)
        assert low <= min(clipped) < max(clipped) <= high
        assert (low, high) == (1.5, 2.5)
    at_theory = rows("docs/tournament.md", "## Mean group regret, at theory's constants")
    share = [
        100 * at_theory["KMP, clipped",][f"{network} 1.9"] / at_theory["KMP",][f"{network} 1.9"]
        for network in ("er", "ba", "ring", "gnutella")
    ]
    assert says("README.md", "with # to # % of its regret at these constants") == low_high(share)


POLICIES = {
    "KMP": rm.KMPUCB,
    "Centralized": rm.CentralizedMPUCB,
    "Decentralized": rm.DecentralizedMPUCB,
}
MEANS = {"clipped": rm.ClippedMean(), "trimmed": rm.TrimmedMean()}


def test_which_bounds_say_something_at_the_size_of_the_paper() -> None:
    table = rows(THEORY, "## How the bounds are checked", 2)
    telling = {mean: sum(r <= 1 for p in POLICIES for r in table[p, mean].values()) for mean in MEANS}
    sentence = "# of # bounds of the cooperating policies say something, with the trimmed mean # of #;"
    assert says(THEORY, sentence) == [telling["clipped"], 12, telling["trimmed"], 12]
    assert all(
        min(table[row].values()) > 1 for row in (("Robust", "clipped"), ("Consensus", "printed radius"))
    )


@pytest.mark.parametrize("panel", ["fig1a", "fig1b"])
def test_the_bounds_of_the_random_networks(panel: str) -> None:
    spec = at_scale(named_spec(panel), "full")
    network, bandit = build_network(spec, 0), build_bandit(spec, 0)
    assert isinstance(bandit, rm.Bandit)
    gamma = network.resolve_gamma("half-diameter")
    policies: dict[tuple[str, str], rm.Policy] = {
        (name, mean): cls(gamma=gamma, c="theory", confidence="anytime", estimator=estimator)
        for name, cls in POLICIES.items()
        for mean, estimator in MEANS.items()
    }
    policies["Robust", "clipped"] = rm.RobustUCB(c="theory", confidence="anytime", estimator=MEANS["clipped"])
    policies["Consensus", "printed radius"] = rm.ConsensusUCB()
    table = rows(THEORY, "## How the bounds are checked", 2)
    for key, policy in policies.items():
        bound = regret_bound(bandit, network, policy, spec.size.horizon)
        assert bound.covered
        assert table[key][panel] == pytest.approx(bound.value / bound.ceiling, abs=0.0051)


# ---- decisions ---------------------------------------------------------------------------------------------


def test_the_size_of_the_http_server() -> None:
    lines = (ROOT / "src/rumormill/live/io/http.py").read_text("utf-8").count("\n")
    assert says("docs/decisions/005-own-http-server.md", "written by hand, some # lines") == [
        round(lines, -2)
    ]
