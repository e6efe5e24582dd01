"""A kernel for one kind of mean against the one for all kinds, bit by bit."""

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.engine.compiled import state

NETWORK = rm.Network.erdos_renyi(9, 0.4, rng=2)
BANDIT = rm.Bandit([rm.StudentT(df=2.2, loc=mean) for mean in (0.0, 0.3, 0.5)])
LOSSY = {"channel": rm.Imperfect(p=0.7, delay=1)}


def by(estimator: Any, **options: Any) -> Any:
    return rm.KMPUCB(gamma=2, estimator=estimator, **options)


QUICK: list[tuple[Any, dict[str, Any]]] = [
    (by(rm.MedianOfMeans()), {}),
    (by(rm.TrimmedMean()), LOSSY),
]
OTHERS: list[tuple[Any, dict[str, Any]]] = [
    *((by(each), {}) for each in (rm.Catoni(), rm.ClippedMean(), rm.SelfTuned(), rm.MedianBound())),
    *((by(each), LOSSY) for each in (rm.ClippedMean(), rm.Catoni(), rm.HuberSGD())),
    (by(rm.RobustMOSS()), {}),
    (by(rm.HuberSGD(), quiet=0.5), {}),
    (by(rm.TrimmedMean(), quiet=0.5, start="shared"), {}),
    (by(rm.ClippedMean(), quiet=0.5), LOSSY),
    (by(rm.ClippedMean()), {"prior": rm.Prior(mean=[0.1, 0.2, 0.3], n=[3, 4, 5])}),
    (by(rm.TrimmedMean()), {"allowed": np.array([True, False, True])}),
    (rm.ThompsonKMP(), {}),
    (rm.OriginMedianUCB(), {}),
]


def assert_equal(policy: Any, faults: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def play() -> rm.Result:
        return rm.simulate(
            BANDIT, NETWORK, policy, horizon=120, rng=3, engine="fast", actions=True, trials=2, **faults
        )

    with state.shared_kernels():
        shared = play()
    monkeypatch.setattr(state, "_SHARING", [0])
    alone = play()
    np.testing.assert_array_equal(alone.actions, shared.actions)
    np.testing.assert_array_equal(alone.messages, shared.messages)


@pytest.mark.parametrize(("policy", "faults"), QUICK)
def test_one_kind_is_played_as_all_are(
    policy: Any, faults: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_equal(policy, faults, monkeypatch)


@pytest.mark.slow  # each compiles a kernel of its own: four minutes
@pytest.mark.parametrize(("policy", "faults"), OTHERS)
def test_every_kind_is_played_as_all_are(
    policy: Any, faults: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_equal(policy, faults, monkeypatch)
