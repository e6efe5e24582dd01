"""Specs of arms that are costs, differ between agents or change: read, written back, built and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.experiments.plan import Cell
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
