"""What is recommended, and that the paper's settings stay what they were."""

from __future__ import annotations

import numpy as np
import pytest

import rumormill as rm


def test_by_what_is_known() -> None:
    assert rm.recommended() == rm.recommended(symmetric=True) == rm.Default()
    moments = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in (0.0, 1.0)]).moments()
    proven = rm.recommended(proven=True)
    assert isinstance(proven, rm.KMPUCB)
    assert proven.radius(moments).covered
    with pytest.raises(rm.InputError, match="symmetric = 1 is not allowed"):
        rm.recommended(symmetric=1)  # type: ignore[arg-type]


def test_the_paper_is_the_class_itself() -> None:
    """Outside checks and the golden tables mean these by the names."""
    for cls in (rm.KMPUCB, rm.DecentralizedMPUCB, rm.CentralizedMPUCB, rm.RobustUCB):
        policy = cls()
        assert policy.estimator == rm.TrimmedMean()
        assert (policy.c, policy.zeta, policy.confidence, policy.start_and_quiet.start) == (
            None,
            None,
            "paper",
            "round-robin",
        )


@pytest.mark.parametrize("policy", [rm.recommended(), rm.KMPUCB(estimator=rm.SelfTuned()), rm.ThompsonKMP()])
def test_it_plays_without_moments(policy: rm.Policy) -> None:
    table = np.random.default_rng(1).standard_cauchy((60, 6, 2)) + np.array([0.0, 1.0])
    source = rm.Replay(table, means=[0.0, 1.0])
    played = [
        rm.simulate(
            source, rm.Network.ring(6), policy, horizon=60, trials=1, rng=0, engine=engine, actions=True
        )
        for engine in ("reference", "fast")
    ]
    assert played[0].actions is not None
    assert played[1].actions is not None
    assert np.array_equal(played[0].actions, played[1].actions)
