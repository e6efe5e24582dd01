"""Sentences with numbers say what the tables of the same page hold, or what the library gives.

A sentence is written here as it stands on the page, with # for each number. It must stand there exactly once,
and its numbers, in their order, are compared with what follows from the table or the library.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rumormill as rm
from rumormill.experiments.analyse.summary import summarise
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.building import build_bandit, build_network
from rumormill.experiments.spec.reading import at_scale, decode, encode, named_spec
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


# ---- rewards that change -----------------------------------------------------------------------------------


def test_how_long_recovery_takes() -> None:
    name, heading = "docs/change.md", "## How long it takes to recover"
    table = rows(name, heading, 2)
    for change, sentence in {
        "brown-out": "after a brown-out # to # times as many choices",
        "outage": "an outage # to # times.",
    }.items():
        growth = [
            choices / float(before.replace(",", ""))
            for before, choices in table[change, "no forgetting"].items()
            if before != "0"
        ]
        assert says(name, sentence) == low_high(growth, 1)
    cells = {
        way: [max(numbers(row)) for row in page(name).split(heading)[1].splitlines() if f"| {way} |" in row]
        for way in ("window 800", "discount 0.998")
    }
    assert says(name, "that were measured are # and # choices") == [max(each) for each in cells.values()]
    samples = math.log(2 / (1 - 0.998)) / -math.log(0.998)
    assert says(name, "after # samples, # choices, what a discount") == [
        round(samples, -1),
        round(2 * samples, -2),
    ]


# ---- README ------------------------------------------------------------------------------------------------


def test_how_fast() -> None:
    table = {name: row["s per trial"] for (name,), row in rows("README.md", "## How fast").items()}
    drawn = table["drawing the rewards, α-stable"]
    decentralized = table["Decentralized, all agents in reach"]
    pulls = 200 * 10_000 / 1e6
    sent = regret(ER, "KMP", SENT) / 200
    sentence = (
        "some # million agent-pulls a second with # deliveries behind each, # million with their rewards"
    )
    assert says("README.md", sentence) == [
        round(pulls / decentralized),
        round(sent, -1),
        round(pulls / (decentralized + drawn)),
    ]


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


# ---- the tournament ----------------------------------------------------------------------------------------

TOURNAMENT = "docs/tournament.md"
HALF = "### Half the constant at α = 2"


def test_what_half_the_constant_costs() -> None:
    table = rows(TOURNAMENT, HALF, 2)
    half, one = ([row for (zeta, _), row in table.items() if zeta == each] for each in ("0.5", "1"))
    assert says(TOURNAMENT, "the same ζ = 1/2 loses # to # % of the trials") == low_high(
        [r["lost, %"] for r in half]
    )
    for column in ("median", "mean"):
        sentence = (
            f"{column} is # to # (ζ = 1: # to #)" if column == "median" else "mean # to # (ζ = 1: # to #)"
        )
        assert says(TOURNAMENT, sentence) == [
            each for rs in (half, one) for each in low_high([r[column] for r in rs])
        ]


@pytest.mark.slow
def test_half_the_constant_again(tmp_path: Path) -> None:
    tuned = encode(named_spec("tuned"))
    policies = [{"type": "kmp", "label": zeta, "zeta": float(zeta)} for zeta in ("0.5", "1")]
    networks = {name: tuned["networks"][name] for name in ("er", "ba")}
    arms = {**tuned["arms"], "alpha": 2.0}
    size = {"trials": 250, "horizon": 1500, "checkpoints": 10}
    spec = decode(
        {"name": "half", "seed": 77, "networks": networks, "arms": arms, "policies": policies, **size}
    )
    found = summarise(run(spec, tmp_path))
    for (zeta, network), row in rows(TOURNAMENT, HALF, 2).items():
        if network in networks:
            ends = found.of(zeta, {"network": network}).regret[:, -1]
            error = ends.std(ddof=1) / len(ends) ** 0.5
            measured = [ends.mean(), error, np.median(ends), 100 * (ends > 1500).mean()]
            assert list(row.values()) == [*np.round(measured[:3]), round(measured[3], 1)]


# ---- the reproduction --------------------------------------------------------------------------------------

REPRODUCTION = "docs/reproduction.md"


ER, BA, GNUTELLA, FACEBOOK = (
    f"## {name}: group regret over time"
    for name in (
        "fig1a: Erdős–Rényi network",
        "fig1b: Barabási–Albert network",
        "fig1c: Gnutella peer-to-peer network",
        "fig1d: Facebook friendships",
    )
)
REGRET, SENT = "group regret at T", "messages per round"


def regret(panel: str, policy: str, column: str = REGRET) -> float:
    return rows(REPRODUCTION, panel)[policy,][column]


def test_consensus_to_the_letter() -> None:
    table = rows(REPRODUCTION, "## What came out")
    for panel, row in zip((ER, BA, GNUTELLA, FACEBOOK), table.values(), strict=True):
        alone = regret(panel, "Robust")
        letter, less, moment, more = row.values()
        assert [letter, moment] == [regret(panel, "Consensus"), regret(panel, "Consensus, moment")]
        assert [less, more] == [round(percent(letter / alone)), round(percent(moment / alone))]


TAILS = "## fig1f: Erdős–Rényi network: group regret as tails get heavier"


def test_consensus_and_heavy_tails() -> None:
    at = {(alpha, policy): row[REGRET] for (alpha, policy), row in rows(REPRODUCTION, TAILS, 2).items()}
    alphas = list(dict.fromkeys(alpha for alpha, _ in at))
    worse = at["1.2", "Consensus"] / at["2", "Consensus"]
    assert says(REPRODUCTION, "It does (# times the regret of α = 2 at α = 1.2)") == [round(worse, 1)]
    least = {alpha: min(at[alpha, policy] for policy in POLICIES) for alpha in alphas}
    assert [a for a in alphas if at[a, "Consensus"] > at[a, "Robust"]] == ["2"]
    assert [a for a in alphas if at[a, "Consensus"] < least[a]] == ["1.2", "1.3"]
    assert says(REPRODUCTION, "(# against # or more, # against # or more)") == [
        number for a in ("1.2", "1.3") for number in (at[a, "Consensus"], least[a])
    ]


def test_lines_of_our_own() -> None:
    share = {
        p: regret(p, "Decentralized, unfiltered") / regret(p, "Decentralized")
        for p in (ER, BA, GNUTELLA, FACEBOOK)
    }
    assert "a third of the regret on Erdős–Rényi and three quarters on Barabási–Albert" in " ".join(
        page(REPRODUCTION).split()
    )
    assert [round(12 * share[panel]) for panel in (ER, BA)] == [4, 9]
    assert all(1 < share[panel] < 1.1 for panel in (GNUTELLA, FACEBOOK))


def test_density_and_consensus_on_facebook() -> None:
    # Over every link a message travels both ways.
    agents = {ER: 200, BA: 200, GNUTELLA: 500, FACEBOOK: 500}
    linked = {
        panel: 100 * rows(REPRODUCTION, panel)["Consensus",][SENT] / (n * (n - 1))
        for panel, n in agents.items()
    }
    better = -percent(regret(FACEBOOK, "Consensus") / regret(GNUTELLA, "Consensus"))
    said = says(
        REPRODUCTION, "It does, by # %, and # % of the pairs of its parts are linked, # % on Gnutella"
    )
    assert said == [round(better), round(linked[FACEBOOK], 1), round(linked[GNUTELLA], 1)]
    others = says(REPRODUCTION, "Barabási–Albert networks have # %, Erdős–Rényi ones # %")
    assert others == [round(linked[BA], 1), round(linked[ER])]


def test_who_explores_for_all() -> None:
    network = rm.Network.erdos_renyi(200, 0.7, rng=3)
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in (0.1, 0.9, 0.1, 0.1, 0.1)])
    policy = rm.ConsensusUCB()
    played = rm.simulate(bandit, network, policy, horizon=3000, rng=5, actions=True)
    assert played.actions is not None
    worse = (played.actions[0] != 1).sum(axis=0)
    largest = np.argsort(-policy.plan(network).epsilon)[:20]
    sentence = "in a game of # rounds the # agents of the largest ε_v had # % of the regret of all #)"
    assert says(REPRODUCTION, sentence) == [3000, 20, round(100 * worse[largest].sum() / worse.sum()), 200]


def test_clique_covers_of_the_random_networks() -> None:
    def mean_cover(panel: str, gamma: int) -> float:
        spec = at_scale(named_spec(panel), "full")
        plans = (rm.DecentralizedMPUCB(gamma=gamma).plan(build_network(spec, trial)) for trial in range(12))
        return round(float(np.mean([len(plan.groups or ()) for plan in plans])))

    near = [mean_cover("fig1b", 1), mean_cover("fig1a", 1)]
    assert says(REPRODUCTION, "At γ = 1 it is, # against #") == near
    assert says(REPRODUCTION, "at the γ in use it is # against #, and") == [mean_cover("fig1b", 2), near[1]]


ARMS = "## arms: Sparse small world: group regret as the arms get more"
GAPS = "## gaps: Erdős–Rényi network: group regret as the gap grows"


def test_more_arms() -> None:
    table = rows(REPRODUCTION, ARMS, 3)
    at = {
        (k, gamma): table[str(k), str(gamma), "Centralized"][REGRET]
        for k in (4, 16, 64)
        for gamma in (2, 4, 8)
    }
    each = says(REPRODUCTION, "at γ = 2 it is #, # and # for each of the #, # and #")
    assert each == [*(round(at[k, 2] / (k - 1)) for k in (4, 16, 64)), 3, 15, 63]
    grown = says(REPRODUCTION, "regret grows by a factor of #, with γ = 2 throughout by #.")
    assert grown == [round(at[64, 8] / at[4, 2], 1), round(at[64, 2] / at[4, 2], 1)]


@pytest.mark.slow
def test_leaders_of_the_sweep_over_arms() -> None:
    networks = [build_network(at_scale(named_spec("arms"), "full"), trial) for trial in range(20)]
    counts = [
        [len(rm.CentralizedMPUCB(gamma=gamma, leaders=way).plan(network).leaders) for network in networks]
        for way in ("qubo", "dominating")
        for gamma in (2, 4, 8)
    ]
    said = says(REPRODUCTION, "hops, are #, # and # (a small dominating set: #, # and #)")
    assert said == [round(float(np.mean(each))) for each in counts]


def test_smaller_gaps() -> None:
    table = rows(REPRODUCTION, GAPS, 2)
    at = {(float(gap), policy): row[REGRET] for (gap, policy), row in table.items()}
    sentence = (
        "KMP falls by a factor of #, of Decentralized by #: about 1/Δ, where the bounds have Δ^(−1/ε), a"
    )
    said = says(REPRODUCTION, f"{sentence} factor of #.")
    falls = [at[0.1, policy] / at[0.4, policy] for policy in ("KMP", "Decentralized")]
    assert said == [round(each, 1) for each in (*falls, 4 ** (1 / 0.765))]
    alone = {gap: value for (gap, policy), value in at.items() if policy == "Robust"}
    worst = max(alone, key=alone.__getitem__)
    assert says(REPRODUCTION, "have their worst at Δ = # (#)") == [worst, alone[worst]]
    said = says(REPRODUCTION, "(# at Δ = 0.05, where pulling at random loses #), KMP loses # there")
    assert said == pytest.approx([alone[0.05], 0.05 * 4 / 5 * 200 * 10_000, at[0.05, "KMP"]])
    ahead = [gap for gap in alone if at[gap, "Consensus"] < alone[gap]]
    assert ahead == [0.05, 0.1, 0.2, 0.4]


@pytest.mark.slow
def test_gamma_on_the_sparse_family(tmp_path: Path) -> None:
    found = summarise(run(at_scale(named_spec("gamma-sparse"), "quick"), tmp_path))
    (kmp,) = [verdict for verdict in found.verdicts if verdict.claim == "γ hardly matters for KMP"]
    assert says(REPRODUCTION, "large: # % over the sweep of") == [round(percent(1 + kmp.estimate), 1)]


COLUMNS = ("as printed", "each at its best", "at theory's constants")
OURS = ("KMP", "Centralized", "Decentralized")


@cache
def verdicts() -> dict[tuple[str, str], dict[str, list[str]]]:
    """By claim and tail, the signs of the four networks in every column."""
    lines = page(TOURNAMENT).split("## The claims in three columns")[1].splitlines()
    cells = (
        [cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines if line.startswith("| ")
    )
    return {
        (claim, alpha): {column: signs.split() for column, signs in zip(COLUMNS, said, strict=True)}
        for claim, alpha, *said in cells
        if alpha in ("1.2", "1.5", "1.9", "2")
    }


def count(
    sign: str, column: str, claims: Iterable[str], alphas: Iterable[str] = ("1.2", "1.5", "1.9", "2")
) -> int:
    return sum(verdicts()[claim, alpha][column].count(sign) for claim in claims for alpha in alphas)


def test_the_table_of_constants_is_that_of_the_tournament() -> None:
    words = {"yes": "holds", "**no**": "**fails", "?": "?"}
    lines = page(REPRODUCTION).split("| claim, α = 1.9 |")[1].splitlines()[2:]
    shown = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines[: lines.index("")]]
    for said, (claim, alpha) in zip(shown, [key for key in verdicts() if key[1] == "1.9"], strict=True):
        assert said[0].removeprefix("(ours) ").split()[0] == claim.split()[0]
        assert said[0].split(",")[0].split()[-1].replace("mean", "Self-tuned") == claim.split()[-1]
        for cell, column in zip(said[1:], COLUMNS, strict=True):
            signs = verdicts()[claim, alpha][column]
            parts = [f"{word} {signs.count(sign)}" for sign, word in words.items() if sign in signs]
            expected = ", ".join(part + "**" * part.startswith("**") for part in parts)
            assert cell.split(" (at α = 2")[0] == expected, (claim, column)


def test_what_survives_which_constants() -> None:
    best = "each at its best"
    consensus = [f"{policy} beats Consensus" for policy in OURS]
    alone = [f"{policy} beats Robust" for policy in OURS]
    order = ["KMP does at least as well as Centralized", "Centralized does at least as well as Decentralized"]
    printed, theory = "as printed", "at theory's constants"
    both, light = ("yes", "**no**"), ["1.9", "2"]
    assert says(REPRODUCTION, "as printed at α ≥ 1.5 (# of 36 comparisons)") == [
        count("yes", printed, consensus, ["1.5", *light])
    ]
    assert says(REPRODUCTION, "open at α = 1.2 (# of 12 hold, # fail)") == [
        count(sign, printed, consensus, ["1.2"]) for sign in both
    ]
    assert says(
        REPRODUCTION, "true at α ≥ 1.9 (# of 24), at α = 1.5 in # of 12 (# fails), at α = 1.2 in #;"
    ) == [
        count("yes", theory, consensus, light),
        *(count(sign, theory, consensus, ["1.5"]) for sign in both),
        count("yes", theory, consensus, ["1.2"]),
    ]
    assert count("**no**", theory, consensus, ["1.2", *light]) == 0
    assert says(REPRODUCTION, "# of 12 hold at α = 1.2, # of 12 at α = 1.5 (# fail)") == [
        count("yes", best, consensus, ["1.2"]),
        *(count(sign, best, consensus, ["1.5"]) for sign in both),
    ]
    assert says(REPRODUCTION, "of 24 at α ≥ 1.9 # hold and # fail") == [
        count(sign, best, consensus, light) for sign in both
    ]
    assert count("**no**", best, consensus, ["1.2"]) == 0
    assert says(REPRODUCTION, "of 48 comparisons each, # hold as printed, # tuned, # at theory's") == [
        count("yes", column, alone) for column in COLUMNS
    ]
    assert says(REPRODUCTION, "as printed in # of 32 comparisons, tuned in #,") == [
        count("yes", column, order) for column in COLUMNS[:2]
    ]
    assert count("yes", COLUMNS[2], order) == 32
    assert sum(count("**no**", column, [*alone, *order]) for column in COLUMNS) == 0


# ---- decisions ---------------------------------------------------------------------------------------------


def test_the_size_of_the_http_server() -> None:
    lines = (ROOT / "src/rumormill/live/io/http.py").read_text("utf-8").count("\n")
    assert says("docs/decisions/005-own-http-server.md", "written by hand, some # lines") == [
        round(lines, -2)
    ]
