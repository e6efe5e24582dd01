"""Verdicts: the words follow from the numbers, also when a claim fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from helpers.fake_runs import Key, made_up, made_up_run
from helpers.small_experiments import TINY
from rumormill.experiments.analyse.claims import (
    Verdict,
    above_zero,
    below_zero,
    hardly_matters,
    matters,
    too_few_for,
    verdict_row,
)
from rumormill.experiments.analyse.summary import Pair, Summary, summarise, too_few_to_compare, verdicts
from rumormill.experiments.plan import plan_of
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import at_scale, named_spec, parse_spec, spec_names
from rumormill.stats import Interval, least_trials

LABELS = ("KMP", "Centralized", "Decentralized", "Consensus", "Robust")
ORDER = [
    *({"kind": "beats", "policy": a, "than": b} for b in LABELS[3:] for a in LABELS[:3]),
    {"kind": "at-least-as-good", "policy": "KMP", "than": "Centralized"},
    {"kind": "at-least-as-good", "policy": "Centralized", "than": "Decentralized"},
]
REACH = [
    {"kind": "matters", "parameter": "gamma", "policy": "Decentralized"},
    {"kind": "matters", "parameter": "gamma", "policy": "Centralized"},
    {"kind": "hardly-matters", "parameter": "gamma", "policy": "KMP"},
]
TAILS = [{"kind": "worsens", "parameter": "alpha", "policy": "Consensus", "toward": "low"}]
SIMPLE: dict[Key, float] = {
    "KMP": 200,
    "Centralized": 100,
    "Decentralized": 300,
    "Consensus": 900,
    "Robust": 250,
}


def spec(name: str = "one", claims: Any = ORDER, *, seed: int = 7, trials: int = 30, **more: Any) -> Any:
    return {
        "name": name,
        "seed": seed,
        "horizon": 50,
        "trials": trials,
        "network": {"kind": "erdos_renyi", "n": 6, "p": 0.7},
        "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 3},
        "policies": [{"type": label.lower(), "label": label} for label in LABELS],
        "claims": claims,
        **more,
    }


def words(found: list[Verdict]) -> dict[str, str]:
    return {verdict.claim: verdict.word for verdict in found}


def test_claims_that_hold_and_claims_that_fail() -> None:
    found = made_up(spec(), SIMPLE).verdicts
    assert words(found) == {
        "KMP beats Consensus": "holds",
        "Centralized beats Consensus": "holds",
        "Decentralized beats Consensus": "holds",
        "KMP beats Robust": "holds",
        "Centralized beats Robust": "holds",
        "Decentralized beats Robust": "does not hold",
        "KMP does at least as well as Centralized": "does not hold",
        "Centralized does at least as well as Decentralized": "holds",
    }
    failed = next(v for v in found if v.claim == "Decentralized beats Robust")
    assert failed.low < failed.estimate < failed.high
    assert failed.estimate == pytest.approx(300 / 250 - 1, abs=0.05)
    assert failed.scope == "one (custom)"
    assert failed.trials == 30
    assert failed.detail.endswith("of 30 trials")


def test_what_is_too_close_is_not_decided() -> None:
    regret: dict[Key, float] = dict.fromkeys(LABELS, 100)
    found = made_up(spec(), regret, noise=0.5).verdicts
    assert set(words(found).values()) == {"not decided at this size"}
    few = made_up(spec(trials=3), {**regret, "KMP": 1}).verdicts
    assert set(words(few).values()) == {"not decided at this size"}
    assert few[0].estimate == pytest.approx(-0.99, abs=0.01)
    assert np.isnan(few[0].low)
    assert verdict_row(few[0])["confidence interval"] == "–"


def test_gamma_matters_or_not() -> None:
    regret: dict[Key, float] = {("KMP", 0): 900, ("KMP", 1): 100, ("KMP", 2): 100}
    regret |= {("Centralized", 0): 900, ("Centralized", 1): 300, ("Centralized", 2): 100}
    regret |= {("Decentralized", 0): 900, ("Decentralized", 1): 300, ("Decentralized", 2): 299}
    found = made_up(spec(claims=REACH, sweep={"gamma": [0, 1, 2]}), regret).verdicts
    assert words(found) == {
        "γ matters for Decentralized": "does not hold",
        "γ matters for Centralized": "holds",
        "γ hardly matters for KMP": "holds",
    }
    # Without any message everyone is alone: that is no reach to compare with.
    assert "γ = 2 against γ = 1" in found[0].detail


def test_consensus_and_heavy_tails() -> None:
    swept = spec(claims=TAILS, sweep={"alpha": [1.2, 1.6, 2.0]})
    worse: dict[Key, float] = {("Consensus", a): r for a, r in ((1.2, 300), (1.6, 200), (2.0, 100))}
    (found,) = made_up(swept, worse).verdicts
    assert found.claim == "Consensus gets worse as α goes to 1"
    assert found.word == "holds"
    assert found.estimate == pytest.approx(2.0, abs=0.1)
    assert "α = 1.2 against α = 2:" in found.detail
    assert found.detail.endswith("rises in 2 of 2 steps towards 1")
    better: dict[Key, float] = {("Consensus", a): r for a, r in ((1.2, 100), (1.6, 200), (2.0, 300))}
    assert made_up(swept, better).verdicts[0].word == "does not hold"


def test_a_parameter_without_a_limit_of_its_own_grows_or_falls() -> None:
    claims = [{**TAILS[0], "policy": "KMP", "parameter": "zeta", "toward": way} for way in ("high", "low")]
    regret: dict[Key, float] = {("KMP", zeta): 100 * zeta for zeta in (1.0, 2.0, 4.0)}
    up, down = made_up(spec(claims=claims, sweep={"zeta": [1.0, 2.0, 4.0]}), regret).verdicts
    assert (up.claim, up.word) == ("KMP gets worse as ζ grows", "holds")
    assert up.detail.endswith("rises in 2 of 2 steps up")
    assert (down.claim, down.word) == ("KMP gets worse as ζ falls", "does not hold")
    assert down.detail.endswith("rises in 0 of 2 steps down")


def test_a_claim_is_tested_at_every_point_of_a_sweep() -> None:
    claims = [{"kind": "beats", "policy": "KMP", "than": "Robust"}]
    regret: dict[Key, float] = {("KMP", 1): 50, ("KMP", 2): 200, ("Robust", 1): 100, ("Robust", 2): 100}
    found = made_up(spec(claims=claims, sweep={"gamma": [1, 2]}), regret).verdicts
    assert words(found) == {
        "KMP beats Robust at γ = 1": "holds",
        "KMP beats Robust at γ = 2": "does not hold",
    }


def test_a_parameter_is_tested_for_every_choice_of_the_others() -> None:
    regret: dict[Key, float] = {
        ("KMP", 1, "paper"): 100,
        ("KMP", 1, "anytime"): 100,
        ("KMP", 2, "paper"): 50,
        ("KMP", 2, "anytime"): 101,
    }
    swept = spec(
        claims=[{**REACH[0], "policy": "KMP"}],
        sweep={"gamma": [1, 2], "confidence": ["paper", "anytime"]},
    )
    assert words(made_up(swept, regret).verdicts) == {
        "γ matters for KMP at confidence = paper": "holds",
        "γ matters for KMP at confidence = anytime": "does not hold",
    }


def gains(to: str) -> list[dict[str, str]]:
    return [{"kind": "larger-gain", "policy": p, "over": "Robust", "than_in": to} for p in LABELS[:3]]


@pytest.mark.parametrize(("other_seed", "how"), [(7, "paired"), (8, "independent")])
def test_gains_on_two_networks(other_seed: int, how: str) -> None:
    base: dict[Key, float] = {
        "KMP": 10,
        "Centralized": 50,
        "Decentralized": 100,
        "Robust": 1000,
        "Consensus": 2000,
    }
    first = made_up(spec("here", gains("there")), base)
    second = made_up(spec("there", [], seed=other_seed), {**base, "KMP": 40, "Centralized": 25})
    assert first.verdicts == []
    found = verdicts([first, second])
    assert [v.word for v in found] == ["holds", "does not hold", "not decided at this size"]
    assert {v.scope for v in found} == {"here and there"}
    assert found[0].claim == "the gain of KMP over Robust is larger in here than in there"
    assert found[0].detail.endswith(how)
    assert found[0].estimate == pytest.approx(3.0, abs=0.4)


def test_a_comparison_waits_for_the_other_run() -> None:
    first = made_up(spec("here", [*ORDER, *gains("elsewhere")]), SIMPLE)
    assert len(first.verdicts) == len(ORDER)
    assert verdicts([first]) == first.verdicts


def test_without_a_claim_there_is_no_verdict() -> None:
    assert made_up(spec(claims=[]), SIMPLE).verdicts == []


def test_points_without_a_trial_in_common_are_not_compared() -> None:
    """A run under way: the two ends of the sweep have different trials done."""
    regret: dict[Key, float] = {(policy, g): 100 for policy in LABELS for g in (1, 2)}
    half = made_up_run(spec(claims=REACH, sweep={"gamma": [1, 2]}), regret)
    rows = (pl.col("gamma") == 1) == (pl.col("trial") < 10)
    object.__setattr__(half, "frame", half.frame.filter(rows))
    assert summarise(half).verdicts == []


@pytest.mark.parametrize(
    ("low", "high", "below", "above", "matter"),
    [
        (-0.5, -0.2, "holds", "does not hold", "holds"),
        (0.2, 0.5, "does not hold", "holds", "holds"),
        (-0.05, 0.05, "not decided at this size", "not decided at this size", "does not hold"),
        (-0.5, 0.5, *["not decided at this size"] * 3),
        (0.02, 0.05, "does not hold", "holds", "does not hold"),
        (0.05, 0.2, "does not hold", "holds", "not decided at this size"),
        (0.0, 0.0, "not decided at this size", "not decided at this size", "does not hold"),
    ],
)
def test_the_word_follows_from_the_interval(
    low: float, high: float, below: str, above: str, matter: str
) -> None:
    found = Interval((low + high) / 2, low, high)
    opposite = {"holds": "does not hold", "does not hold": "holds"}
    assert below_zero(found) == below
    assert above_zero(found) == above
    assert matters(found) == matter
    assert hardly_matters(found) == opposite.get(matter, matter)


def test_the_intervals_of_a_scope_hold_together() -> None:
    """The same two columns, once as the only claim and once among eight: the interval gets wider."""
    regret: dict[Key, float] = dict.fromkeys(LABELS, 100)

    def about_kmp(summary: Summary) -> Verdict:
        return next(v for v in summary.verdicts if v.claim == "KMP beats Robust")

    among = about_kmp(made_up(spec(), regret))
    alone = about_kmp(made_up(spec(claims=[ORDER[3]]), regret))
    assert among.estimate == alone.estimate
    assert among.low < alone.low < alone.high < among.high


def test_a_policy_without_regret_is_beaten_by_nobody() -> None:
    found = words(made_up(spec(), {**SIMPLE, "Robust": 0.0}).verdicts)
    assert found["KMP beats Robust"] == "does not hold"
    found = words(made_up(spec(), {**SIMPLE, "KMP": 0.0}).verdicts)
    assert found["KMP beats Robust"] == "holds"


def test_a_real_run(tmp_path: Path) -> None:
    claims = "".join(
        f'[[claims]]\nkind = "beats"\npolicy = "Decentralized"\nthan = "{label}"\n'
        for label in ("Consensus", "Robust")
    )
    text = TINY.replace("trials = 2", "trials = 7") + '[[policies]]\ntype = "consensus"\n' + claims
    found = summarise(run(parse_spec(text), tmp_path / "run")).verdicts
    assert [v.claim for v in found] == ["Decentralized beats Consensus", "Decentralized beats Robust"]
    assert all(v.trials == 7 and v.low <= v.high for v in found)


@pytest.mark.parametrize("name", [name for name in spec_names() if name != "tuned"])
def test_quick_experiments_have_enough_trials_for_their_claims(name: str) -> None:
    """Even if every claim is asked at every sweep point, there are intervals; `tuned` says it has none."""
    spec = at_scale(named_spec(name), "quick")
    asked = max(len(spec.claims), 1) * len(plan_of(spec).points)
    assert spec.size.trials >= least_trials(1 - 0.05 / asked)


def test_many_claims_without_an_interval_are_one_sentence() -> None:
    nan = float("nan")
    open_ = [
        Verdict(f"claim {i}", "here", "not decided at this size", 0.1, nan, nan, 0.1, 3, "") for i in range(8)
    ]
    assert too_few_for(open_) == "none of 8 claims can be decided: 3 trials played, 9 would be needed"
    assert too_few_for(open_[:6]) == ""
    known = Verdict("claim", "here", "holds", 0.1, 0.0, 0.2, 0.1, 3, "")
    assert too_few_for([*open_, known]) == ""
    pairs = [Pair({}, "a", "b", "too few trials: 11 trials would be needed", 0.1, nan, nan, 0.1, 3)] * 8
    said = "8 comparisons of policies: too few trials: 11 trials would be needed, 3 played"
    assert too_few_to_compare(pairs) == said
    assert too_few_to_compare(pairs[:6]) == ""
