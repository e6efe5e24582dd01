"""Verdicts: the words follow from the numbers, also when a claim fails."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tiny import TINY

from rumormill.experiments.analyse.bootstrap import Interval
from rumormill.experiments.analyse.claims import above_zero, below_zero, hardly_matters, matters, verdicts
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import parse_spec

POLICIES = """
[[policies]]
type = "kmp"
label = "KMP"
[[policies]]
type = "centralized"
label = "Centralized"
[[policies]]
type = "decentralized"
label = "Open"
clique_filter = false
[[policies]]
type = "decentralized"
label = "Decentralized"
[[policies]]
type = "consensus"
label = "Consensus"
[[policies]]
type = "robust"
label = "Robust"
"""


def made_up(name, regret, *, sweep="", seed=7, trials=30, noise=0.05):
    """A run with chosen mean regrets: {policy: value} or {(policy, axis value): value}."""
    text = TINY.split("[[policies]]")[0].replace('"tiny"', f'"{name}"').replace("seed = 7", f"seed = {seed}")
    spec = parse_spec(text + POLICIES + (f"[sweep]\n{sweep}\n" if sweep else ""))
    axes = list(spec.sweep)
    chance = np.random.default_rng(seed)
    size = chance.lognormal(sigma=1.0, size=trials)  # some trials are harder, for everybody
    rows = []
    for key, mean in regret.items():
        policy, *value = key if isinstance(key, tuple) else (key,)
        own = mean * size * (1 + noise * chance.standard_normal(trials))
        for trial in range(trials):
            for t, share in ((25, 0.5), (50, 1.0)):
                rows.append((policy, *value, trial, t, share * own[trial]))
    frame = pl.DataFrame(rows, schema=["policy", *axes, "trial", "t", "regret"], orient="row")
    points = [dict.fromkeys(axes, value) for axis in axes for value in spec.sweep[axis]] or [{}]
    manifest = {"name": name, "scale": "custom", "horizon": 50, "points": points}
    return SimpleNamespace(spec=spec, frame=frame, axes=axes, manifest=manifest)


def words(found):
    return {verdict.claim: verdict.word for verdict in found}


def test_claims_that_hold_and_claims_that_fail():
    found = verdicts(
        made_up(
            "fig1a",
            {
                "KMP": 200,
                "Centralized": 100,
                "Open": 1,
                "Decentralized": 300,
                "Consensus": 900,
                "Robust": 250,
            },
        )
    )
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
    assert failed.scope == "fig1a (custom)"
    assert failed.trials == 30
    assert failed.detail.endswith("of 30 trials")


def test_what_is_too_close_is_not_decided():
    regret = {"KMP": 100, "Centralized": 100, "Decentralized": 100, "Consensus": 100, "Robust": 100}
    found = verdicts(made_up("fig1a", regret, noise=0.5))
    assert set(words(found).values()) == {"not decided at this size"}
    few = verdicts(made_up("fig1a", {**regret, "KMP": 1}, trials=3))
    assert set(words(few).values()) == {"not decided at this size"}
    assert few[0].estimate == pytest.approx(-0.99, abs=0.01)
    assert np.isnan(few[0].low)


def test_gamma_matters_or_not():
    regret = {("KMP", g): 100 for g in (1, 2)} | {("KMP", 0): 900}
    regret |= {("Centralized", 0): 900, ("Centralized", 1): 300, ("Centralized", 2): 100}
    regret |= {("Decentralized", 0): 900, ("Decentralized", 1): 300, ("Decentralized", 2): 299}
    found = verdicts(made_up("fig1e", regret, sweep="gamma = [0, 1, 2]"))
    assert words(found) == {
        "γ matters for Decentralized": "does not hold",
        "γ matters for Centralized": "holds",
        "γ hardly matters for KMP": "holds",
    }
    assert "γ = 2 against γ = 1" in found[0].detail


def test_consensus_and_heavy_tails():
    swept = "alpha = [1.2, 1.6, 2.0]"
    worse = {("Consensus", a): r for a, r in ((1.2, 300), (1.6, 200), (2.0, 100))}
    (found,) = verdicts(made_up("fig1f", worse, sweep=swept))
    assert found.word == "holds"
    assert found.estimate == pytest.approx(2.0, abs=0.1)
    assert "rises in 2 of 2 steps" in found.detail
    better = {("Consensus", a): r for a, r in ((1.2, 100), (1.6, 200), (2.0, 300))}
    assert verdicts(made_up("fig1f", better, sweep=swept))[0].word == "does not hold"


@pytest.mark.parametrize(("other_seed", "how"), [(7, "paired"), (8, "independent")])
def test_gains_on_two_networks(other_seed, how):
    base = {"KMP": 10, "Centralized": 50, "Decentralized": 100, "Robust": 1000, "Consensus": 2000}
    first = made_up("fig1a", base)
    second = made_up("fig1b", {**base, "KMP": 40, "Centralized": 25}, seed=other_seed)
    found = [v for v in verdicts([first, second]) if v.scope == "fig1a and fig1b"]
    assert [v.word for v in found] == ["holds", "does not hold", "not decided at this size"]
    assert found[0].detail.endswith(how)
    assert found[0].estimate == pytest.approx(3.0, abs=0.4)


def test_a_sweep_without_a_claim_has_no_verdict():
    assert verdicts(made_up("mine", {("KMP", 1): 1.0}, sweep="zeta = [1]")) == []


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
def test_the_word_follows_from_the_interval(low, high, below, above, matter):
    found = Interval((low + high) / 2, low, high)
    opposite = {"holds": "does not hold", "does not hold": "holds"}
    assert below_zero(found) == below
    assert above_zero(found) == above
    assert matters(found) == matter
    assert hardly_matters(found) == opposite.get(matter, matter)


def test_the_intervals_of_a_scope_hold_together():
    """The same two columns, once as the only claim and once among eight: the interval gets wider."""
    text = TINY.split("[[policies]]")[0].replace('"tiny"', '"fig1a"')
    among = made_up(
        "fig1a", dict.fromkeys(("Robust", "KMP", "Centralized", "Decentralized", "Consensus"), 100)
    )
    alone = SimpleNamespace(
        spec=parse_spec(text + '[[policies]]\ntype = "kmp"\n[[policies]]\ntype = "robust"\n'),
        frame=among.frame,
        axes=[],
        manifest=among.manifest,
    )
    (single,) = verdicts(alone)
    same = next(v for v in verdicts(among) if v.claim == single.claim == "KMP beats Robust")
    assert same.estimate == single.estimate
    assert same.low < single.low < single.high < same.high


def test_a_real_run(tmp_path):
    text = TINY.replace("trials = 2", "trials = 6") + '[[policies]]\ntype = "consensus"\n'
    found = verdicts(run(parse_spec(text), tmp_path / "run"))
    assert [v.claim for v in found] == ["Decentralized beats Consensus", "Decentralized beats Robust"]
    assert all(v.trials == 6 and v.low <= v.high for v in found)
