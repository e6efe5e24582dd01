"""Several threads inside one trial, very many agents in parts, and what does not fit into memory.

Here a "crowd" is a few dozen agents cut into parts of ten: the kernels do not know the difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill import system_memory as limits
from rumormill.engine.compiled import layout_partitioned as partitioned
from rumormill.engine.compiled import reach
from rumormill.engine.result import Opening
from rumormill.engine.trial import prepare
from rumormill.errors import InputError
from rumormill.kernels.simd.masked_add import LANES

ARMS = 5
BANDIT = rm.Bandit([rm.AlphaStable(alpha=1.6, loc=0.1 + 0.2 * k) for k in range(ARMS)])
# A hub: the parts have very different work. So few agents would be heard by words; a crowd is by lists.
TREE = rm.Network.from_edges([(0, v) for v in range(1, 12)] + [(v // 2, v) for v in range(12, 75)])

POLICIES = {
    "decentralized": rm.DecentralizedMPUCB(gamma=1, clique_filter=False),
    "far": rm.DecentralizedMPUCB(gamma=3, clique_filter=False, confidence="anytime"),
    "cliques": rm.DecentralizedMPUCB(gamma=2),
    "kmp": rm.KMPUCB(gamma=1),
    "kmp far": rm.KMPUCB(gamma=3),
    "kmp plain": rm.KMPUCB(gamma=2, estimator=rm.EmpiricalMean()),
    "theory": rm.DecentralizedMPUCB(gamma=1, clique_filter=False, c="theory"),
    "alone": rm.RobustUCB(),
}


def play(policy: Any, workers: int, horizon: int = 150, **more: Any) -> rm.Result:
    game: dict[str, Any] = {"horizon": horizon, "rng": 3, "actions": True, "engine": "fast", **more}
    return rm.simulate(BANDIT, TREE, policy, workers=workers, **game)


def same(a: rm.Result, b: rm.Result) -> bool:
    arrays = [(a.actions, b.actions), (a.agent_regret, b.agent_regret), (a.messages, b.messages)]
    return all(x is not None and y is not None and np.array_equal(x, y) for x, y in arrays)


@pytest.fixture
def crowds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned, "MANY_AGENTS", 1)
    monkeypatch.setattr(partitioned, "HUGE_NETWORK", 1)
    monkeypatch.setattr(partitioned, "PART_AGENTS", 10)
    monkeypatch.setattr(reach, "DENSE_FROM", 1 + LANES)


@pytest.mark.parametrize("name", POLICIES)
def test_parts_and_threads_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = POLICIES[name]
    monkeypatch.setattr(partitioned, "HUGE_NETWORK", 1 << 40)
    whole = play(policy, workers=1)
    monkeypatch.setattr(partitioned, "MANY_AGENTS", 1)
    monkeypatch.setattr(partitioned, "HUGE_NETWORK", 1)
    monkeypatch.setattr(partitioned, "PART_AGENTS", 10)
    monkeypatch.setattr(reach, "DENSE_FROM", 1 + LANES)
    layout = prepare(policy, TREE, ARMS, engine="fast").layout
    assert getattr(layout, "divides", False), "this network was to be sparse at every distance"
    for workers in (1, 2, 3):
        assert same(whole, play(policy, workers))


def test_blocks_and_checkpoints_change_nothing_in_a_crowd(crowds: None) -> None:
    policy = POLICIES["kmp far"]
    whole = play(policy, workers=2, checkpoints=[1, 7, 64, 65, 150])
    assert same(whole, play(policy, workers=2, checkpoints=[1, 7, 64, 65, 150], block=5))
    assert same(whole, play(policy, workers=1, checkpoints=[1, 7, 64, 65, 150], block=1))


@pytest.mark.parametrize(
    "policy", [rm.ConsensusUCB(), rm.CentralizedMPUCB(gamma=2), rm.KMPUCB(gamma=2, quiet=0.25)]
)
def test_rewards_drawn_ahead_are_the_same(policy: Any) -> None:
    assert same(play(policy, workers=1, horizon=700), play(policy, workers=2, horizon=700))


def test_what_a_thread_raises_ends_the_trial(crowds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise InputError("no room")

    monkeypatch.setattr(partitioned.PartitionedTrial, "_play", fails)
    with pytest.raises(InputError, match="no room"):
        play(POLICIES["kmp"], workers=2)


def test_what_does_not_fit_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "available_bytes", lambda: 1e4)
    monkeypatch.setattr(limits, "UNNOTICED_BYTES", 0.0)
    with pytest.raises(InputError) as refused:
        play(POLICIES["kmp"], workers=1)
    text = str(refused.value)
    assert "75 agents" in text
    assert "10 kB are there; take fewer" in text
    assert "\n" not in text


def test_the_estimate_of_memory_covers_the_arrays(crowds: None) -> None:
    """The state of a crowd, counted array by array, is within the estimate that decides before the start."""
    policy = POLICIES["kmp far"]
    layout = prepare(policy, TREE, ARMS, engine="fast").layout
    assert layout is not None
    trial = layout.start(Opening(BANDIT, 100, np.array([50, 100]), False, np.random.SeedSequence(1)))
    assert isinstance(trial, partitioned.PartitionedTrial)
    arrays: list[Any] = [*trial.sent[3:], *trial.output]
    desks = {"mean", "counts", "power", "best", "action", "row"}  # a tile at work, however many agents
    for part in trial.partitions:
        arrays += [value for name, value in part._asdict().items() if name not in desks]
    counted = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    known: dict[str, Any] = {
        "pairs": layout.deliveries,
        "slots": 4,
        "shares_rows": True,
        "marks": 2,
        "columns": 1,
    }
    assert counted <= limits.trial_bytes(TREE.n_agents, ARMS, **known)
