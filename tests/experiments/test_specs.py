"""Specs: what is shipped, scales, sweeps, and what a spec builds."""

import itertools
import math
import pickle
from pathlib import Path

import msgspec
import numpy as np
import pytest

from helpers.small_experiments import OPEN, SWEPT, TINY
from rumormill import (
    KMPUCB,
    Catoni,
    DecentralizedMPUCB,
    MedianOfMeans,
    Moments,
    PerfectChannel,
    TrimmedMean,
    catalogue,
)
from rumormill.errors import InputError
from rumormill.experiments.plan import plan_of
from rumormill.experiments.spec.building import (
    build_bandit,
    build_common_bandit,
    build_laws,
    build_network,
    build_policy,
    build_world,
    is_fresh,
)
from rumormill.experiments.spec.nesting import place
from rumormill.experiments.spec.reading import (
    at_scale,
    decode,
    encode,
    named_spec,
    parse_spec,
    restore,
    spec_names,
)
from rumormill.experiments.spec.schema import (
    AtLeastAsGood,
    Beats,
    HardlyMatters,
    LargerGain,
    Matters,
    Spec,
    Worsens,
)

PANELS = ["fig1a", "fig1b", "fig1c", "fig1d", "fig1e", "fig1f"]
WORLDS = ["loss", "delay", "churn", "liars"]


def test_what_is_shipped() -> None:
    others = ["theory", "arms", "gaps", "gamma-sparse", "estimators", "tuned", "change"]
    assert spec_names() == sorted([*PANELS, *WORLDS, *others])
    with pytest.raises(InputError, match="there is no experiment 'fig1g': did you mean 'fig1f'"):
        named_spec("fig1g")


@pytest.mark.parametrize("name", PANELS)
def test_the_panels_find_leaders_the_paper_s_way(name: str) -> None:
    (centralized,) = (part for part in named_spec(name).policies if part.type == "centralized")
    assert centralized.settings["leaders"] == "qubo"


@pytest.mark.parametrize("name", spec_names())
def test_every_shipped_spec_has_both_scales_and_says_what_it_asks(name: str) -> None:
    spec = named_spec(name)
    assert spec.name == name
    assert spec.title
    assert spec.question
    assert list(spec.scale) == ["quick", "full"]
    # Some of our own are smaller: the sparse family has the dearest sweep, Catoni's mean goes through all
    # samples in every round, tuning plays everything at every constant, and in an imperfect world every
    # message has to be followed.
    smaller = {"gamma-sparse": (50, 5_000), "estimators": (100, 1_000), "tuned": (24, 1_500)}
    smaller |= {"arms": (20, 5_000), "gaps": (40, 10_000), "change": (20, 3_000)}
    smaller |= {**dict.fromkeys(WORLDS, (20, 2_000)), "liars": (20, 500)}
    full = spec.scale["full"]
    assert (full.trials, full.horizon) == smaller.get(name, (100, 10_000))
    assert decode(encode(spec)) == spec


@pytest.mark.parametrize("name", PANELS)
def test_the_panels_have_the_settings_of_the_paper(name: str) -> None:
    spec = at_scale(named_spec(name), "full")
    assert spec.n_arms == 5
    assert spec.arms.means == "uniform"
    assert spec.network.settings.get("n") == (None if name in ("fig1c", "fig1d") else 200)
    assert spec.network.settings.get("subgraph", 500) == 500
    assert is_fresh(spec)
    for policy in spec.policies:
        assert policy.settings.get("estimator", "trimmed") == "trimmed"
        assert policy.settings.get("zeta", 1) == 1
        assert "c" not in policy.settings
        assert policy.settings.get("gamma", "half-diameter") == "half-diameter"
    kinds = {type(build_policy(spec, policy)).__name__ for policy in spec.policies}
    assert kinds == {"KMPUCB", "CentralizedMPUCB", "DecentralizedMPUCB", "ConsensusUCB", "RobustUCB"}
    alphas = {point.spec.arms.settings["alpha"] for point in plan_of(spec).points}
    assert alphas == ({1.9} if name != "fig1f" else {1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0})


def test_all_panels_share_their_chance() -> None:
    assert len({named_spec(name).seed for name in PANELS}) == 1


def test_theory_is_fig1a_with_other_constants() -> None:
    theory, panel = encode(named_spec("theory")), encode(named_spec("fig1a"))
    for one, other in zip(theory["policies"], panel["policies"], strict=True):
        if other["type"] != "consensus":  # its radius has no lemma to take a constant from
            assert (one.pop("c"), other.pop("zeta")) == ("theory", 1.0)
    for part in ("network", "arms", "policies", "seed"):
        assert theory[part] == panel[part]


def test_the_sweep_over_arms_holds_the_points_where_gamma_is_the_root_of_k() -> None:
    spec = named_spec("arms")
    points = {(k, gamma) for k in spec.sweep["K"] for gamma in spec.sweep["gamma"]}
    assert all((k, round(k**0.5)) in points for k in spec.sweep["K"])
    assert spec.arms.gap == 0.5


@pytest.mark.parametrize(("objective", "best"), [("maximise", 0.65), ("minimise", 0.35)])
def test_a_gap_puts_one_arm_before_the_others(objective: str, best: float) -> None:
    spec = parse_spec(TINY.replace("K = 3", f'K = 4\ngap = 0.3\nobjective = "{objective}"'))
    means = np.array([build_common_bandit(spec, trial).means for trial in range(12)])
    assert means.shape == (12, 4)
    np.testing.assert_allclose(
        np.sort(np.abs(means - best)), np.tile([0, 0.3, 0.3, 0.3], (12, 1)), atol=1e-12
    )
    assert len(set(np.abs(means - best).argmin(axis=1))) > 1  # drawn in every trial


def test_a_scale_and_what_replaces_it() -> None:
    smaller = at_scale(named_spec("estimators"), "quick")
    assert list(smaller.scale) == ["quick"]
    assert smaller.network.settings["n"] == named_spec("estimators").scale["quick"].n == 20
    spec = named_spec("fig1c")
    changed = at_scale(spec, "full", trials=3, horizon=70)
    assert list(changed.scale) == ["custom"]
    assert (changed.size.trials, changed.size.horizon) == (3, 70)
    assert changed.network.settings["subgraph"] == 500
    with pytest.raises(InputError, match="scales quick, full: choose one"):
        at_scale(spec)
    with pytest.raises(InputError, match="no scale 'custom'"):
        at_scale(spec, "custom")
    with pytest.raises(InputError, match=r"^trials = 0 is not allowed: a whole number >= 1"):
        at_scale(spec, "full", trials=0)


def test_points_of_a_sweep_in_order() -> None:
    spec = parse_spec(OPEN + '[sweep]\ngamma = [0, "half-diameter"]\n"network.p" = [0.5, 1.0]\n')
    found = [(point.index, *point.values.values()) for point in plan_of(spec).points]
    assert found == [(0, 0, 0.5), (1, 0, 1.0), (2, "half-diameter", 0.5), (3, "half-diameter", 1.0)]
    last = plan_of(spec).points[3].spec
    assert last.policies[0].settings["gamma"] == "half-diameter"
    assert (last.network.settings["p"], last.sweep) == (1.0, {})


def test_an_axis_reaches_every_policy_that_has_the_parameter() -> None:
    found = plan_of(parse_spec(TINY + '[sweep]\nestimator = ["trimmed", "catoni"]\n')).points
    by_name = {point.values["estimator"]: point.spec for point in found}
    assert [part.settings["estimator"] for part in by_name["catoni"].policies] == ["catoni", "catoni"]
    made = build_policy(by_name["catoni"], by_name["catoni"].policies[0])
    assert isinstance(made, DecentralizedMPUCB)
    assert isinstance(made.estimator, Catoni)
    swept = plan_of(parse_spec(SWEPT)).points[2].spec.policies
    assert [part.settings.get("gamma") for part in swept] == [3, 3, None]


def test_a_short_axis_is_found_wherever_its_parameter_stands() -> None:
    text = TINY.replace("alpha = 1.9", "alpha = 1.9\nscale = 1.0")
    for axis, part in (("beta", "arms"), ("scale", "arms"), ("K", "arms"), ("confidence", "policies")):
        values = ["paper", "anytime"] if part == "policies" else [1, 2] if axis == "scale" else [0.1, 0.2]
        if axis == "K":
            values = [2, 4]
        spec = parse_spec(f"{text}[sweep]\n{axis} = {values}\n")
        assert place(spec, axis) == (part, axis)
    assert plan_of(parse_spec(text + "[sweep]\nK = [2, 4]\n")).points[1].spec.n_arms == 4


def test_what_a_policy_leaves_open_may_be_swept_though_its_default_is_written_out() -> None:
    spec = parse_spec(OPEN + "[sweep]\ngamma = [0, 2]\n")
    assert spec.policies[0].settings["gamma"] == "half-diameter"
    assert decode(encode(spec)) == spec


def test_M_is_the_number_of_agents() -> None:
    sizes = [
        build_network(p.spec, 0).n_agents for p in plan_of(parse_spec(TINY + "[sweep]\nM = [4, 9]\n")).points
    ]
    assert sizes == [4, 9]


def test_trials_are_fresh_and_sweep_points_share_their_chance() -> None:
    low, high = plan_of(parse_spec(TINY + "[sweep]\nalpha = [1.5, 1.9]\n")).points
    assert build_bandit(low.spec, 0).means.tolist() == build_bandit(high.spec, 0).means.tolist()
    assert build_bandit(low.spec, 0).means.tolist() != build_bandit(low.spec, 1).means.tolist()
    edges = [build_network(p.spec, t).edges().tolist() for p in (low, high) for t in (0, 1)]
    assert edges[:2] == edges[2:]
    assert edges[0] != edges[1]


def test_a_network_that_is_not_fresh_is_the_same_in_every_trial() -> None:
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
def test_every_kind_of_network_is_built(kind: str, agents: int) -> None:
    spec = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', kind))
    assert build_network(spec, 0).n_agents == agents


def test_a_network_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    path.write_text("".join(f"{v} {v + 1}\n" for v in range(20)))
    network = f'kind = "file"\nfile = "{path}"'
    whole = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', network))
    assert build_network(whole, 3).n_agents == 21
    part = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', network + "\nsubgraph = 5"))
    starts = {build_network(part, trial).labels for trial in range(8)}
    assert {len(labels) for labels in starts} == {5}
    assert len(starts) > 1


LAWS = {
    "alpha-stable": "alpha = 1.4\nscale = 3\nbeta = 0.5",
    "gaussian": "scale = 2",
    "student-t": "df = 1.5",
    "pareto": "tail = 1.5\nscale = 2",
    "lognormal": "sigma = 0.7\nmu = 0.1",
    "two-point": "probability = 0.3\nhigh = 4",
    "bernoulli": "low = -2\nhigh = 8",
    "empirical": "data = [1, 2.5, 9]",
}


@pytest.mark.parametrize("name", catalogue.LAWS)
def test_every_law_is_moved_to_the_given_means(name: str) -> None:
    law = f'law = "{name}"\n{LAWS[name]}'
    arms = TINY.replace('law = "alpha-stable"\nalpha = 1.9\nK = 3', f"{law}\nmeans = [0.25, -1.0]")
    spec = parse_spec(arms)
    assert build_bandit(spec, 0).means == pytest.approx([0.25, -1.0], abs=1e-12)
    (only,) = build_laws(spec)
    assert only.at_mean(7.0).mean == pytest.approx(7.0)
    assert type(only.at_mean(7.0)) is catalogue.LAWS[name]
    assert decode(encode(spec)) == spec
    drawn = parse_spec(TINY.replace('law = "alpha-stable"\nalpha = 1.9', law))
    assert build_bandit(drawn, 0).means == pytest.approx(build_bandit(parse_spec(TINY), 0).means)


def test_means_from_the_unit_interval_and_a_given_order_of_moments() -> None:
    spec = parse_spec(TINY.replace("K = 3", "K = 40\neps = 0.5"))
    bandit = build_bandit(spec, 0)
    assert len(np.unique(bandit.means)) == 40
    assert 0 <= bandit.means.min() < bandit.means.max() <= 1
    assert bandit.moments().eps == 0.5
    assert build_bandit(parse_spec(TINY), 0).moments().eps == pytest.approx(0.85 * 0.9)
    assert math.isfinite(bandit.moments().u)


def test_policies_get_their_parameters() -> None:
    spec = parse_spec(
        TINY.replace(
            'type = "robust"',
            'type = "kmp"\ngamma = 2\nc = "theory"\nconfidence = "anytime"\nestimator = "median-of-means"',
        )
    )
    first, second = (build_policy(spec, policy) for policy in spec.policies)
    assert first == DecentralizedMPUCB(gamma=1)
    assert isinstance(second, KMPUCB)
    assert (second.gamma, second.c, second.confidence) == (2, "theory", "anytime")
    assert isinstance(second.estimator, MedianOfMeans)


def test_an_estimator_may_have_settings_and_moments_may_be_given() -> None:
    estimator = 'estimator = {type = "trimmed", variant = "literal"}'
    spec = parse_spec(TINY.replace("gamma = 1", f"{estimator}\nmoments = {{eps = 0.5, u = 3, rho = 2}}"))
    made = build_policy(spec, spec.policies[0])
    assert isinstance(made, DecentralizedMPUCB)
    assert made.estimator == TrimmedMean(variant="literal")
    assert made.moments == Moments(eps=0.5, u=3, rho=2)
    assert decode(encode(spec)) == spec == restore(encode(spec))


def test_every_tag_may_be_called_type_and_a_channel_may_be_named() -> None:
    other = TINY.replace("kind =", "type =").replace("law =", "type =") + '[channel]\ntype = "perfect"\n'
    assert parse_spec(other) == parse_spec(TINY) == parse_spec('channel = "perfect"\n' + TINY)
    assert type(build_world(parse_spec(other)).channel) is PerfectChannel


def test_any_scale_may_be_given_a_name() -> None:
    text = TINY.replace("horizon = 50\ntrials = 2\n", "")
    text += "[scale.medium]\nhorizon = 60\ntrials = 3\n[scale.over-night]\nhorizon = 90\ntrials = 4\nn = 9\n"
    spec = parse_spec(text)
    assert at_scale(spec, "medium").size.trials == 3
    assert at_scale(spec, "over-night").network.settings["n"] == 9
    with pytest.raises(InputError, match=r"no scale 'medum': did you mean 'medium'"):
        at_scale(spec, "medum")


def test_a_spec_can_be_sent_to_another_process() -> None:
    for name in spec_names():
        spec = named_spec(name)
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec


def test_labels_come_from_the_policies() -> None:
    labels = [catalogue.label_of(cls) for cls in catalogue.POLICIES.values()]
    assert labels[:5] == ["Decentralized", "Centralized", "KMP", "Consensus", "Robust"]
    assert parse_spec(SWEPT).labels == ["KMP", "Centralized", "Consensus"]


def test_the_claims_of_the_paper_are_in_the_specs() -> None:
    ours = ["KMP", "Centralized", "Decentralized"]
    panel = [Beats(policy=a, than=b) for b in ("Consensus", "Robust") for a in ours]
    order = [AtLeastAsGood(policy=a, than=b) for a, b in itertools.pairwise(ours)]
    matters = [Matters(policy=a, parameter="gamma") for a in ("Decentralized", "Centralized")]
    gamma = [*matters, HardlyMatters(policy="KMP", parameter="gamma")]
    claims = {name: named_spec(name).claims for name in spec_names()}
    for name, other in {"fig1a": "fig1b", "fig1c": "fig1d", "fig1b": "", "fig1d": "", "theory": ""}.items():
        gains = [LargerGain(policy=a, over="Robust", than_in=other) for a in ours if other]
        assert claims[name] == [*panel, *order, *gains]
    assert claims["fig1e"] == claims["gamma-sparse"] == gamma
    assert claims["fig1f"] == [Worsens(policy="Consensus", parameter="alpha", toward="low")]
    assert claims["estimators"] == []
