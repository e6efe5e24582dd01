"""Specs: what is shipped, scales, sweeps, and what a spec builds."""

import math

import numpy as np
import pytest
from tiny import SWEPT, TINY

from rumormill import KMPUCB, Catoni, DecentralizedMPUCB
from rumormill.errors import InputError
from rumormill.experiments.spec.building import build_bandit, build_network, build_policy
from rumormill.experiments.spec.reading import (
    at_scale,
    decode,
    encode,
    named_spec,
    parse_spec,
    points,
    spec_names,
)

PANELS = ["fig1a", "fig1b", "fig1c", "fig1d", "fig1e", "fig1f"]


def test_what_is_shipped():
    assert spec_names() == sorted([*PANELS, "theory", "gamma-sparse", "estimators"])
    with pytest.raises(InputError, match="there is no experiment 'fig1g': did you mean 'fig1f'"):
        named_spec("fig1g")


@pytest.mark.parametrize("name", spec_names())
def test_every_shipped_spec_has_both_scales_and_says_what_it_asks(name):
    spec = named_spec(name)
    assert spec.name == name
    assert spec.title
    assert spec.question
    assert list(spec.scale) == ["quick", "full"]
    # Two of our own are smaller: the sparse family has the dearest sweep, and Catoni's mean goes through
    # all samples in every round.
    smaller = {"gamma-sparse": (50, 5_000), "estimators": (100, 1_000)}
    full = spec.scale["full"]
    assert (full.trials, full.horizon) == smaller.get(name, (100, 10_000))
    assert decode(encode(spec)) == spec


@pytest.mark.parametrize("name", PANELS)
def test_the_panels_have_the_settings_of_the_paper(name):
    spec = at_scale(named_spec(name), "full")
    assert spec.n_arms == 5
    assert spec.arms.means == "uniform"
    assert getattr(spec.network, "n", None) == (None if name in ("fig1c", "fig1d") else 200)
    assert getattr(spec.network, "subgraph", 500) == 500
    assert spec.network.fresh
    for policy in spec.policies:
        assert getattr(policy, "estimator", "trimmed") == "trimmed"
        assert getattr(policy, "zeta", 1) == 1
        assert getattr(policy, "c", None) is None
        assert getattr(policy, "gamma", "half-diameter") == "half-diameter"
    kinds = {type(build_policy(policy)).__name__ for policy in spec.policies}
    assert kinds == {"KMPUCB", "CentralizedMPUCB", "DecentralizedMPUCB", "ConsensusUCB", "RobustUCB"}
    alphas = {point.spec.arms.alpha for point in points(spec)}
    assert alphas == ({1.9} if name != "fig1f" else {1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0})


def test_all_panels_share_their_chance():
    assert len({named_spec(name).seed for name in PANELS}) == 1


def test_theory_is_fig1a_with_other_constants():
    theory, panel = encode(named_spec("theory")), encode(named_spec("fig1a"))
    for one, other in zip(theory["policies"], panel["policies"], strict=True):
        assert one.pop("c", None) == ("theory" if "zeta" in other else None)
        other.pop("zeta", None)
    for part in ("network", "arms", "policies", "seed"):
        assert theory[part] == panel[part]


def test_a_scale_and_what_replaces_it():
    smaller = at_scale(named_spec("estimators"), "quick")
    assert list(smaller.scale) == ["quick"]
    assert smaller.network.n == named_spec("estimators").scale["quick"].n == 20
    spec = named_spec("fig1c")
    changed = at_scale(spec, "full", trials=3, horizon=70)
    assert list(changed.scale) == ["custom"]
    assert (changed.size.trials, changed.size.horizon) == (3, 70)
    assert changed.network.subgraph == 500
    with pytest.raises(InputError, match="scales quick, full: choose one"):
        at_scale(spec)
    with pytest.raises(InputError, match="no scale 'custom'"):
        at_scale(spec, "custom")
    with pytest.raises(InputError, match=r"scale.custom.trials = 0 is not allowed"):
        at_scale(spec, "full", trials=0)


def test_points_of_a_sweep_in_order():
    spec = parse_spec(TINY + '[sweep]\ngamma = [0, "half-diameter"]\n"network.p" = [0.5, 1.0]\n')
    found = [(point.index, *point.values.values()) for point in points(spec)]
    assert found == [(0, 0, 0.5), (1, 0, 1.0), (2, "half-diameter", 0.5), (3, "half-diameter", 1.0)]
    last = points(spec)[3].spec
    assert (last.policies[0].gamma, last.network.p, last.sweep) == ("half-diameter", 1.0, {})


def test_an_axis_reaches_every_policy_that_has_the_parameter():
    by_name = {
        point.values["estimator"]: point.spec.policies
        for point in points(parse_spec(TINY + '[sweep]\nestimator = ["trimmed", "catoni"]\n'))
    }
    assert [policy.estimator for policy in by_name["catoni"]] == ["catoni", "catoni"]
    assert isinstance(build_policy(by_name["catoni"][0]).estimator, Catoni)
    swept = points(parse_spec(SWEPT))[2].spec.policies
    assert [getattr(policy, "gamma", None) for policy in swept] == [3, 3, None]


def test_M_is_the_number_of_agents():
    sizes = [build_network(p.spec, 0).n_agents for p in points(parse_spec(TINY + "[sweep]\nM = [4, 9]\n"))]
    assert sizes == [4, 9]


def test_trials_are_fresh_and_sweep_points_share_their_chance():
    low, high = points(parse_spec(TINY + "[sweep]\nalpha = [1.5, 1.9]\n"))
    assert build_bandit(low.spec, 0).means.tolist() == build_bandit(high.spec, 0).means.tolist()
    assert build_bandit(low.spec, 0).means.tolist() != build_bandit(low.spec, 1).means.tolist()
    edges = [build_network(p.spec, t).edges().tolist() for p in (low, high) for t in (0, 1)]
    assert edges[:2] == edges[2:]
    assert edges[0] != edges[1]


def test_a_network_that_is_not_fresh_is_the_same_in_every_trial():
    spec = parse_spec(TINY.replace("p = 0.7", "p = 0.7\nfresh = false"))
    assert build_network(spec, 0).edges().tolist() == build_network(spec, 5).edges().tolist()


@pytest.mark.parametrize(
    ("kind", "agents"),
    [
        ('kind = "barabasi_albert"\nn = 7\nm = 2', 7),
        ('kind = "watts_strogatz"\nn = 8\nk = 4\np = 0.1', 8),
        ('kind = "random_regular"\nn = 6\nd = 3', 6),
        ('kind = "ring"\nn = 5', 5),
        ('kind = "path"\nn = 5', 5),
        ('kind = "star"\nn = 5', 5),
        ('kind = "complete"\nn = 5', 5),
        ('kind = "grid"\nrows = 2\ncols = 3', 6),
        ('kind = "balanced_tree"\nbranching = 2\nheight = 2', 7),
    ],
)
def test_every_kind_of_network_is_built(kind, agents):
    spec = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', kind))
    assert build_network(spec, 0).n_agents == agents


def test_a_network_from_a_file(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("".join(f"{v} {v + 1}\n" for v in range(20)))
    network = f'kind = "file"\nfile = "{path}"'
    whole = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', network))
    assert build_network(whole, 3).n_agents == 21
    part = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', network + "\nsubgraph = 5"))
    starts = {build_network(part, trial).labels for trial in range(8)}
    assert {len(labels) for labels in starts} == {5}
    assert len(starts) > 1


@pytest.mark.parametrize(
    "law",
    [
        'law = "gaussian"\nscale = 2',
        'law = "student-t"\ndf = 1.5',
        'law = "pareto"\ntail = 1.5\nscale = 2',
        'law = "lognormal"\nsigma = 0.7',
        'law = "alpha-stable"\nalpha = 1.4\nscale = 3\nbeta = 0.5',
    ],
)
def test_every_law_is_moved_to_the_given_means(law):
    arms = TINY.replace('law = "alpha-stable"\nalpha = 1.9\nK = 3', f"{law}\nmeans = [0.25, -1.0]")
    assert build_bandit(parse_spec(arms), 0).means == pytest.approx([0.25, -1.0], abs=1e-12)


def test_means_from_the_unit_interval_and_a_given_order_of_moments():
    spec = parse_spec(TINY.replace("K = 3", "K = 40\neps = 0.5"))
    bandit = build_bandit(spec, 0)
    assert len(np.unique(bandit.means)) == 40
    assert 0 <= bandit.means.min() < bandit.means.max() <= 1
    assert bandit.moments().eps == 0.5
    assert build_bandit(parse_spec(TINY), 0).moments().eps == pytest.approx(0.85 * 0.9)
    assert math.isfinite(bandit.moments().u)


def test_policies_get_their_parameters():
    spec = parse_spec(
        TINY.replace(
            'type = "robust"',
            'type = "kmp"\ngamma = 2\nc = "theory"\nconfidence = "anytime"\nestimator = "median-of-means"',
        )
    )
    first, second = (build_policy(policy) for policy in spec.policies)
    assert first == DecentralizedMPUCB(gamma=1)
    assert isinstance(second, KMPUCB)
    assert (second.gamma, second.c, second.confidence, second.estimator.name) == (
        2,
        "theory",
        "anytime",
        "median-of-means",
    )
