"""Specs of arms that are costs, differ between agents or change: read, written back, built and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.experiments.plan import Cell, plan_of
from rumormill.experiments.run.cell import play_cell
from rumormill.experiments.spec.building import build_bandit
from rumormill.experiments.spec.reading import at_scale, decode, encode
from rumormill.experiments.spec.schema import Spec

RAW: dict[str, Any] = {
    "name": "mine",
    "seed": 1,
    "horizon": 60,
    "trials": 2,
    "network": {"kind": "ring", "n": 6},
    "arms": {"law": "gaussian", "means": [0.0, 2.0]},
    "policies": [{"type": "kmp", "zeta": 1.0}, {"type": "robust", "zeta": 1.0}],
}
CLUSTERS = {"clusters": [{"members": [0, 1, 5], "means": [3.0, 1.0]}]}
CHANGES = {"changes": [{"at": 31, "means": [2.0, 0.0]}]}
SEASON = {"season": {"amplitude": [3.0, 0.0], "period": 20.0}}
TREND = {"trend": {"to": [4.0, 0.0], "rounds": 60}}


def spec_of(**arms: Any) -> Spec:
    return at_scale(decode({**RAW, "arms": {**RAW["arms"], **arms}}))


def test_costs() -> None:
    bandit = build_bandit(spec_of(objective="minimise"), 0)
    assert (bandit.objective, bandit.gaps.tolist()) == ("minimise", [0.0, 2.0])
    assert build_bandit(spec_of(), 0).objective == "maximise"


@pytest.mark.parametrize("arms", [CLUSTERS, CHANGES, SEASON, TREND, {**CLUSTERS, **SEASON, **CHANGES}])
def test_they_are_read_written_back_and_played(arms: dict[str, Any]) -> None:
    spec = spec_of(**arms)
    assert decode(encode(spec)) == decode(encode(decode(encode(spec))))
    assert encode(spec)["arms"].items() >= {"law": "gaussian"}.items()
    source = build_bandit(spec, 0)
    assert isinstance(source, rm.arms.VaryingSource)
    assert source.expected(0, 60, 6).shape == (60, 6, 2)
    outcome = play_cell(spec, Cell(0, 0))
    assert outcome is not None


def test_means_by_hand() -> None:
    clusters = build_bandit(spec_of(**CLUSTERS), 0).expected(0, 1, 6)[0]  # type: ignore[union-attr]
    assert clusters.tolist() == [[3, 1], [3, 1], [0, 2], [0, 2], [0, 2], [3, 1]]
    changed = build_bandit(spec_of(**CHANGES), 0).expected(29, 31, 1)[:, 0]  # type: ignore[union-attr]
    assert changed.tolist() == [[0.0, 2.0], [2.0, 0.0]]


def test_plain_specs_are_written_as_before() -> None:
    assert not set(encode(spec_of())["arms"]) & {"objective", "clusters", "changes", "season", "trend"}


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"objective": "least"}, "objective"),
        ({"clusters": [{"members": [9], "means": [3.0, 1.0]}]}, "the network has 6 agents, the clusters 10"),
        ({"clusters": [{"members": [1, 1], "means": [3.0, 1.0]}]}, "exactly once"),
        ({"clusters": [{"members": [1], "means": [3.0, 1.0, 2.0]}]}, "give all equally many"),
        ({"changes": [{"at": 1, "means": [3.0, 1.0]}]}, "at"),
        ({"season": {"amplitude": [1.0], "period": 5.0}}, "amplitude has 1 values for 2 arms"),
        ({"trend": {"to": [1.0, 2.0], "rouns": 5}}, "rouns"),
    ],
)
def test_what_is_refused(arms: dict[str, Any], message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        spec_of(**arms)


def test_no_bounds_for_arms_that_vary() -> None:
    source = build_bandit(spec_of(**SEASON), 0)
    with pytest.raises(rm.InputError, match="the same means for all agents and rounds"):
        rm.theory.regret_bound(source, rm.Network.ring(6), rm.KMPUCB(gamma=1), 100)


def test_regret_is_that_of_the_own_best_arm() -> None:
    """The same number from the run's cell and from a simulation of the same trial."""
    source = build_bandit(spec_of(**CLUSTERS), 0)
    result = rm.simulate(
        source, rm.Network.ring(6), rm.KMPUCB(gamma=1, zeta=1.0), horizon=60, rng=3, actions=True
    )
    assert result.actions is not None
    means = source.expected(0, 60, 6)  # type: ignore[union-attr]
    chosen = np.take_along_axis(means, result.actions[0][:, :, None], axis=2)[:, :, 0]
    assert result.regret[0, -1] == pytest.approx(float((means.max(axis=2) - chosen).sum()))


def test_arms_of_different_shape() -> None:
    raw = {"law": "pareto", "means": "uniform", "each": [{"tail": 1.5}, {"tail": 3.0, "scale": 2.0}]}
    spec = decode({**RAW, "arms": raw})
    assert spec.n_arms == 2
    assert decode(encode(spec)) == spec
    one, two = (build_bandit(spec, trial) for trial in (0, 1))
    assert isinstance(one, rm.Bandit)
    assert [arm.tail_index for arm in one.arms] == [1.5, 3.0]
    assert one.arms[1].scale == 2.0  # type: ignore[attr-defined]
    assert (one.means > 0).all()
    assert (one.means != two.means).all()
    assert play_cell(at_scale(spec), Cell(0, 1)).regret["KMP"] > 0


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"law": "pareto", "each": [{"tail": 1.5}, {"tail": "x"}]}, r"arms.each\[1\].tail = 'x'"),
        ({"law": "pareto", "each": [{"tail": 1.5}, {"heavy": 1}]}, r"arms.each\[1\].heavy: unknown key"),
        ({"law": "pareto", "each": [{"tail": 1.5}] * 3, "K": 2}, r"arms.each has 3 tables for 2 arms"),
        ({"law": "pareto", "each": [{"tail": 1.5}] * 3, "means": [0.0, 1.0]}, "3 tables for 2 arms"),
    ],
)
def test_bad_shapes_are_refused(arms: dict[str, Any], message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        decode({**RAW, "arms": arms})


def test_a_sweep_that_the_shapes_would_override_is_refused() -> None:
    arms = {"law": "pareto", "each": [{"tail": 1.5}, {"tail": 3.0}]}
    with pytest.raises(rm.InputError, match=r"sweep.tail: arms.each sets tail itself"):
        decode({**RAW, "arms": arms, "sweep": {"tail": [1.5, 2.0]}})


def test_means_after_a_change_may_be_drawn() -> None:
    spec = spec_of(means="uniform", K=3, changes=[{"at": 31, "means": "uniform"}])
    drawn = [build_bandit(spec, trial).expected(29, 31, 1)[:, 0] for trial in (0, 0, 1)]  # type: ignore[union-attr]
    assert (drawn[0] == drawn[1]).all()
    assert len({*np.concatenate([drawn[0], drawn[2]]).ravel().tolist()}) == 12


def test_coins_keep_their_values() -> None:
    bandit = build_bandit(spec_of(law="bernoulli", high=10.0, means=[1.0, 2.5]), 0)
    assert isinstance(bandit, rm.Bandit)
    assert [(arm.low, arm.high, arm.probability) for arm in bandit.arms] == [(0, 10, 0.1), (0, 10, 0.25)]  # type: ignore[attr-defined]
    with pytest.raises(rm.InputError, match=r"between low = 0\.0 and high = 1\.0"):
        decode({**RAW, "arms": {"law": "bernoulli", "means": [0.5, 2.0]}})


SCENARIOS: dict[str, dict[str, Any]] = {"constant": {}, "piecewise": CHANGES, "seasonal": SEASON}


def with_scenarios(scenarios: dict[str, Any], *names: str) -> dict[str, Any]:
    swept = {"sweep": {"scenario": list(names)}} if names else {}
    return {**RAW, "arms": {**RAW["arms"], "scenarios": scenarios}, **swept}


def test_scenarios_are_an_axis() -> None:
    """Every point has the arms that a spec of its own would have."""
    spec = decode(with_scenarios(SCENARIOS, "seasonal", "constant", "piecewise"))
    assert decode(encode(spec)) == spec
    points = plan_of(at_scale(spec)).points
    assert [point.values["scenario"] for point in points] == ["seasonal", "constant", "piecewise"]
    for point, alone in zip(points, [SCENARIOS[name] for name in spec.sweep["scenario"]], strict=True):
        assert point.spec.arms == spec_of(**alone).arms
    assert isinstance(points[1].bandit(0), rm.Bandit)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (with_scenarios(SCENARIOS), "sweep.scenario: missing; some of constant, piecewise, seasonal"),
        (with_scenarios(SCENARIOS, "sesonal"), "there is no scenario 'sesonal': did you mean 'seasonal'"),
        ({**RAW, "sweep": {"scenario": ["a"]}}, r"give them by name, as \[arms.scenarios.NAME\]"),
        (
            with_scenarios({"b": {}, "a": {"sesaon": {}}}, "a"),
            "arms.scenarios.a.sesaon: unknown key: did you mean 'season'",
        ),
        (with_scenarios({"b": {}, "a": {"changes": 3}}, "a"), "arms.scenarios.a.changes = 3 is not allowed"),
    ],
)
def test_scenarios_that_are_refused(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        decode(raw)
