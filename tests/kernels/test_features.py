"""A kernel for one kind of mean against the one for all kinds, bit by bit."""

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.engine.compiled import state
from rumormill.kernels import jit
from rumormill.kernels.lossy_round import lossy_block_kernel
from rumormill.kernels.state import Features

# Uncompiled kernels divide by zero as loudly as NumPy does.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NETWORK = rm.Network.erdos_renyi(9, 0.4, rng=2)
BANDIT = rm.Bandit([rm.StudentT(df=2.2, loc=mean) for mean in (0.0, 0.3, 0.5)])
LOSSY = {"channel": rm.Imperfect(p=0.7, delay=1)}


def by(estimator: Any, **options: Any) -> Any:
    return rm.KMPUCB(gamma=2, estimator=estimator, **options)


QUICK: list[tuple[Any, dict[str, Any]]] = [(by(rm.MedianOfMeans()), {})]
# Each compiles a kernel of its own, four minutes together; test_without_compilation.py plays them uncompiled.
OTHERS: list[tuple[Any, dict[str, Any]]] = [
    *((by(each), {}) for each in (rm.ClippedMean(), rm.SelfTuned(), rm.MedianBound(), rm.RobustMOSS())),
    *((by(each), LOSSY) for each in (rm.TrimmedMean(), rm.ClippedMean())),
    (by(rm.TrimmedMean(), quiet=0.5, start="shared"), {}),
    (by(rm.ClippedMean(), quiet=0.5), LOSSY),
    (by(rm.ClippedMean()), {"prior": rm.Prior(mean=[0.1, 0.2, 0.3], n=[3, 4, 5])}),
    (by(rm.TrimmedMean()), {"allowed": np.array([True, False, True])}),
    (rm.OriginMedianUCB(), {}),
]
# Uncompiled these are slow, or raise: whole numbers of Python know no overflow.
COMPILED: list[tuple[Any, dict[str, Any]]] = [
    (by(rm.Catoni()), {}),
    *((by(each), LOSSY) for each in (rm.Catoni(), rm.HuberSGD())),
    (by(rm.HuberSGD(), quiet=0.5), {}),
    (rm.ThompsonKMP(), {}),
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


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "faults"), OTHERS)
def test_every_kind_is_played_as_all_are(
    policy: Any, faults: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_equal(policy, faults, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "faults"), COMPILED)
def test_kinds_that_are_only_compiled(
    policy: Any, faults: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_equal(policy, faults, monkeypatch)


def test_kernels_are_kept_on_disk_by_the_values_that_they_were_made_with() -> None:
    """numba's key of a closure with compiled parts is another in every process."""

    def key(features: Features) -> Any:
        return jit.closure_key(lossy_block_kernel.__wrapped__(features, False).py_func)  # type: ignore[attr-defined]

    assert key(Features(0, False, 1)) == key(Features(0, False, 1))
    others = [Features(0, False, 2), Features(0, True, 1), Features(3, False, 1)]
    assert len({key(each) for each in (Features(0, False, 1), *others)}) == 4
