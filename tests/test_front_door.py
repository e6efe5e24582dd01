"""What a user types at the plain defaults: any sizes, every name of the catalogue, both engines.

Sizes are random and ordinary (218 rounds, 7 agents, 13 trials), not those that other tests use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers.oracle_adapters import COMPILED_POLICIES
from rumormill import catalogue
from rumormill.engine.result import resolve_checkpoints
from rumormill.errors import SlowEngineNotice

LONGEST = 5_000
SETTINGS = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def takes_estimator(policy: str) -> bool:
    """Whether the estimators of a policy are tried: on one engine alone the conformance tests do that."""
    takes = {one.name for one in catalogue.settings(catalogue.POLICIES[policy])}
    return "estimator" in takes and policy in COMPILED_POLICIES


PAIRS = [
    (policy, estimator)
    for policy in catalogue.POLICIES
    for estimator in (
        catalogue.ESTIMATORS if takes_estimator(policy) and policy in COMPILED_POLICIES else [None]
    )
]
LAWS: dict[str, Callable[[float], rm.Arm]] = {
    "alpha-stable": lambda mean: rm.AlphaStable(alpha=1.7, loc=mean),
    "gaussian": lambda mean: rm.Gaussian(loc=mean),
    "student-t": lambda mean: rm.StudentT(df=2.5, loc=mean),
}


@st.composite
def networks(draw: st.DrawFn) -> rm.Network:
    n = draw(st.one_of(st.integers(1, 9), st.integers(1, 30)))
    kinds = ["path", "complete", *(["star"] if n >= 2 else []), *(["ring"] if n >= 3 else [])]
    network: rm.Network = getattr(rm.Network, draw(st.sampled_from(kinds)))(n)
    return network


@st.composite
def bandits(draw: st.DrawFn) -> rm.Bandit:
    arms = draw(st.integers(2, 8))
    law = LAWS[draw(st.sampled_from(sorted(LAWS)))]
    return rm.Bandit([law(mean / arms) for mean in draw(st.permutations(range(arms)))])


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `rm.simulate` apart from the policy."""
    network = draw(networks())
    most = 60 if network.n_agents > 9 else 230  # the reference engine plays them too
    horizon = draw(st.integers(1, most))
    checkpoints = draw(
        st.one_of(
            st.none(),
            st.integers(1, 2 * most),
            st.sets(st.integers(1, horizon), min_size=1, max_size=5).map(sorted),
        )
    )
    return {
        "bandit": draw(bandits()),
        "network": network,
        "horizon": horizon,
        "trials": draw(st.integers(1, 3)),
        "checkpoints": checkpoints,
        "rng": draw(st.integers(0, 99)),
    }


def require_documented(result: rm.Result, call: dict[str, Any]) -> None:
    """Shapes and ends as the docstrings say."""
    horizon, trials = call["horizon"], call.get("trials", 1)
    agents, given_marks = call["network"].n_agents, call.get("checkpoints")
    marks = result.checkpoints
    if isinstance(given_marks, list):
        assert marks.tolist() == given_marks
    else:
        assert len(marks) == min(given_marks or 200, horizon)
        assert marks[-1] == horizon
    assert marks[0] >= 1
    assert (np.diff(marks) > 0).all()
    at_marks = (trials, len(marks))
    assert result.regret.shape == result.common_regret.shape == at_marks
    assert result.messages.shape == result.wire_bytes.shape == result.agent_rounds.shape == at_marks
    assert result.agent_regret.shape == (*at_marks, agents)
    assert (result.agent_regret >= 0).all()
    assert (result.agent_rounds == marks * agents).all()
    if result.actions is not None:
        assert result.actions.shape == (trials, horizon, agents)
        assert ((result.actions >= 0) & (result.actions < call["bandit"].n_arms)).all()


def played(call: dict[str, Any], policy: Any, engine: Any) -> rm.Result | str:
    """The result, or the refusal in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowEngineNotice)
        try:
            return rm.simulate(**call, policy=policy, engine=engine, actions=True)
        except rm.InputError as refusal:
            return str(refusal)


def require_engines_agree(call: dict[str, Any], policy: Any) -> None:
    fast, slow = played(call, policy, "auto"), played(call, policy, "reference")
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        assert len(str(fast).split()) > 3
        return
    require_documented(fast, call)
    require_documented(slow, call)
    np.testing.assert_array_equal(fast.actions, slow.actions)
    np.testing.assert_array_equal(fast.checkpoints, slow.checkpoints)
    np.testing.assert_array_equal(fast.messages, slow.messages)
    np.testing.assert_allclose(fast.regret, slow.regret, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("policy", "estimator"), PAIRS)
def test_every_policy_and_estimator_at_any_size(policy: str, estimator: str | None) -> None:
    given_policy = policy if estimator is None else {"type": policy, "estimator": estimator}

    @settings(SETTINGS, max_examples=2 if "catoni" in (estimator or "") else 3)
    @given(call=calls())
    def plays(call: dict[str, Any]) -> None:
        require_engines_agree(call, given_policy)

    plays()


@settings(SETTINGS, max_examples=60)
@example(horizon=218, agents=5, seed=1)
@example(horizon=219, agents=7, seed=1)
@example(horizon=LONGEST, agents=3, seed=1)
@given(
    horizon=st.one_of(st.integers(1, 400), st.integers(1, LONGEST)),
    agents=st.integers(3, 12),
    seed=st.integers(0, 9),
)
def test_any_horizon_at_the_defaults(horizon: int, agents: int, seed: int) -> None:
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.7, loc=loc) for loc in (0.0, 1.0)])
    call: dict[str, Any] = {
        "bandit": bandit,
        "network": rm.Network.ring(agents),
        "horizon": horizon,
        "rng": seed,
    }
    result = rm.simulate(**call, policy=rm.KMPUCB(gamma=1))
    assert result.engine == "fast"
    require_documented(result, call)


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_ordinary_sizes(workers: int | None) -> None:
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.7, loc=loc) for loc in (0.0, 1.0)])
    call: dict[str, Any] = {
        "bandit": bandit,
        "network": rm.Network.ring(7),
        "horizon": 218,
        "trials": 13,
        "rng": 1,
    }
    require_documented(rm.simulate(**call, policy="kmp", workers=workers), call)


def test_one_arm_is_refused_in_words() -> None:
    with pytest.raises(rm.InputError, match="at least two"):
        rm.Bandit([rm.Gaussian()])


def test_checkpoints_are_exact_for_every_horizon() -> None:
    """⌈i·T/n⌉ in Python's own integers, for every horizon and many numbers of checkpoints."""
    for horizon in range(1, LONGEST + 1):
        for count in {None, 1, 2, 3, 7, 13, 100, 199, 200, 201, horizon - 1, horizon, horizon + 1} - {0}:
            marks = resolve_checkpoints(count, horizon)
            n = min(count or 200, horizon)
            assert len(marks) == n
            assert marks[-1] == horizon
            if n < 14 or horizon % 97 == 0:
                assert marks.tolist() == [-(-i * horizon // n) for i in range(1, n + 1)]
            else:
                assert marks[0] == -(-horizon // n)
                assert (np.diff(marks) >= horizon // n).all()
