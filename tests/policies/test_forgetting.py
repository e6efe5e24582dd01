"""Forgetting: against the oracle, what is kept, and recovery that does not grow with what was learned."""

from __future__ import annotations

import json
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from helpers.oracle import Rules
from helpers.oracle_adapters import (
    MESSAGE_PASSING,
    Game,
    actions_in,
    is_compiled,
    played,
    policy_of,
    result_of,
    ties_against_oracle,
)
from helpers.random_games import FORGET_WAYS, forgetting_game, forgetting_game_with_faults
from rumormill.engine.compiled import unsupported_reason

MOMENTS = rm.Moments(eps=1.0, u=4.0, rho=3.0)
WAYS: list[tuple[str, float]] = [("window", 60), ("discount", 0.98), ("restart", 0)]


def changing(seed: int, rounds: int, agents: int, arms: int) -> Any:
    """Rewards whose means change in the middle."""
    rng = np.random.default_rng(seed)
    means = np.where(
        np.arange(rounds)[:, None] < rounds // 2, rng.normal(size=arms), rng.normal(size=arms) * 3
    )
    return means[:, None, :] + rng.standard_t(3, size=(rounds, agents, arms))


@pytest.mark.parametrize("policy", ["kmp", "decentralized", "robust"])
@pytest.mark.parametrize("forget", WAYS)
def test_oracle(policy: str, forget: tuple[str, float]) -> None:
    estimator = {"window": "median-of-means", "discount": "clipped", "restart": "trimmed"}[forget[0]]
    rounds = 240 if policy == "robust" and forget[0] == "restart" else 90
    table, graph = changing(len(policy), rounds, 4, 3), nx.cycle_graph(4)
    gamma = 0 if policy == "robust" else 2
    rules = Rules(policy, u=4.0, rho=3.0, gamma=gamma, estimator=estimator, forget=forget, zeta=0.4)
    found = played(table, graph, rules, "reference")
    ties_against_oracle(table, graph, rules, found)
    without = Rules(policy, u=4.0, rho=3.0, gamma=gamma, estimator=estimator, zeta=0.4)
    assert not np.array_equal(actions_in(found), actions_in(played(table, graph, without, "reference")))


FIELDS = ("actions", "agent_regret", "agent_rounds", "messages", "wire_bytes")


def check(game: Game) -> int:
    """Both engines against each other and against the oracle, whose ties with them are counted."""
    slow, fast = (result_of(game, engine) for engine in ("reference", "auto"))
    assert fast.engine == ("fast" if is_compiled(game) else "reference"), str(game)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name), err_msg=str(game))
    return ties_against_oracle(*game[:3], slow, *game[3:])


@pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")
@pytest.mark.parametrize("policy", MESSAGE_PASSING)
@pytest.mark.parametrize("way", FORGET_WAYS)
def test_both_engines_equal_the_oracle(policy: str, way: str) -> None:
    """Games of any size, start and quiet talk; with faults, and without."""
    ties = 0
    for estimator in ("trimmed", "clipped", "empirical" if way == "discount" else "robust-moss"):
        for seed in range(1 if way == "restart" else 4):
            ties += check(forgetting_game(seed, policy, way, estimator))
        if estimator != "robust-moss":
            ties += sum(check(forgetting_game_with_faults(seed, policy, way, estimator)) for seed in range(3))
    assert ties <= 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")
@pytest.mark.parametrize("policy", MESSAGE_PASSING)
@pytest.mark.parametrize("way", FORGET_WAYS)
def test_both_engines_equal_the_oracle_in_thousands(policy: str, way: str) -> None:
    estimators = ["trimmed", "clipped", "empirical"]
    if way != "discount":
        estimators += ["self-tuned", "median-bound", "huber-sgd"]
    ties = 0
    for estimator in estimators:
        for seed in range(100, 120):
            ties += check(forgetting_game(seed, policy, way, estimator))
            ties += check(forgetting_game_with_faults(seed, policy, way, estimator))
    assert ties <= 60


def test_many_samples_leave_a_trimmed_mean_that_forgets() -> None:
    """So small a bound that samples keep leaving, also those of streams that were dropped before."""
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.2, loc=loc) for loc in (0.0, 0.4, 0.9)])
    moments = rm.Moments(eps=0.15, u=0.05, rho=0.3)
    for forget in ({"window": 60}, {"window": 400}, "restart"):
        policy = rm.KMPUCB(gamma=1, zeta=0.3, moments=moments, forget=forget)  # type: ignore[arg-type]
        slow, fast = (
            rm.simulate(
                bandit, rm.Network.star(6), policy, horizon=500, rng=1, engine=engine, actions=True, trials=1
            )
            for engine in ("reference", "fast")
        )
        np.testing.assert_array_equal(slow.actions, fast.actions)


@pytest.mark.parametrize("forget", [{"window": 50}, {"discount": 0.97}, "restart"])
@pytest.mark.parametrize("estimator", [rm.ClippedMean(), rm.TrimmedMean()])
def test_state_and_restore(forget: Any, estimator: rm.Estimator) -> None:
    policy = rm.KMPUCB(gamma=1, forget=forget, moments=MOMENTS, estimator=estimator)
    table = changing(3, 300, 1, 3)[:, 0]
    agents = [policy.agent(rm.Seat(agent=0, n_arms=3, n_agents=2)) for _ in range(2)]
    for t in range(1, 301):
        if t % 37 == 0:
            kept = json.loads(json.dumps(agents[1].state()))
            agents[1] = policy.agent(rm.Seat(agent=0, n_arms=3, n_agents=2))
            agents[1].restore(kept)
            assert agents[1].state() == kept
        arms = [agent.choose(t) for agent in agents]
        assert arms[0] == arms[1]
        rows = ((0.2, 5.0), (1.0, float(t % 40)), (0.0, 1.0))
        for agent in agents:
            agent.observe(t, arms[0], float(table[t - 1, arms[0]]))
            agent.outgoing(t)
            agent.receive([rm.Message(1, t, t % 3, float(table[t - 1, t % 3]), rows)] if t % 3 else [])


def alone(forget: Any, **given: Any) -> Any:
    return rm.RobustUCB(forget=forget, moments=MOMENTS, **given).agent(rm.Seat(agent=0, n_arms=2))


def test_a_window_holds_the_newest_half_to_whole() -> None:
    agent = alone({"window": 20}, estimator=rm.EmpiricalMean())
    for t in range(1, 200):
        agent.observe(t, t % 2, float(t))
        counts = [n for _, n in agent.samples.estimates(t)]
        assert min(t, 10) <= sum(counts) <= 20
        newest = [s for s in range(1, t + 1) if s > t - sum(counts) and s % 2 == 0]
        assert agent.samples.latest[0][0] == pytest.approx(np.mean(newest) if newest else math.inf)


def test_rows_are_not_sent_again_when_a_shared_start_goes_on() -> None:
    """Round 1 shows all four arms, round 2 is decided; then the window holds arm 0 alone, and 2 is tried."""
    forget: Any = {"window": 8}
    policy = rm.KMPUCB(gamma=1, start="shared", forget=forget, moments=MOMENTS, estimator=rm.EmpiricalMean())
    agent = policy.agent(rm.Seat(agent=0, n_arms=4, neighbours=tuple(range(1, 12)), n_agents=12))
    none = ((0.0, 0.0),) * 4
    sent = []
    for t, others in ((1, {1: 1, 2: 2, 3: 3}), (2, dict.fromkeys(range(1, 12), 0)), (3, {})):
        arm = agent.choose(t)
        agent.observe(t, arm, 1.0)
        sent.append((arm, agent.outgoing(t)[0].rows))
        agent.receive([rm.Message(origin, t, other, 1.0, none) for origin, other in others.items()])
    assert [arm for arm, _ in sent] == [0, 0, 2]
    assert [rows == none for _, rows in sent] == [True, False, True]


def test_an_alarm_restarts_the_arm_that_changed() -> None:
    rng = np.random.default_rng(0)
    agent = alone("restart", estimator=rm.EmpiricalMean())
    for t in range(1, 1001):
        agent.observe(t, t % 2, float(rng.standard_t(3) + (5.0 if t > 600 and t % 2 else 0.0)))
    (_, kept), (mean, fresh) = agent.samples.estimates(1000)
    assert kept == 500
    assert fresh < 200
    assert mean == pytest.approx(5.0, abs=0.6)  # about 180 samples, scale 1.7: seven standard errors and more


def test_false_alarms_are_rare() -> None:
    """Laws without a change: at most 2 of 60 streams of 5,000 samples restart; calibrated."""
    rng = np.random.default_rng(1)
    laws: list[Any] = [
        rng.normal,
        lambda size: rng.standard_t(1.5, size),
        lambda size: rng.lognormal(0, 1.5, size),
    ]
    restarted = 0
    for number in range(60):
        agent = rm.RobustUCB(forget="restart", moments=MOMENTS, estimator=rm.EmpiricalMean()).agent(
            rm.Seat(agent=0, n_arms=1)
        )
        for x in laws[number % 3](size=5000):
            agent.samples.add(0, float(x))
        restarted += agent.samples.estimates(9)[0][1] < 5000
    assert restarted <= 2


def choices_to_recover(forget: Any, learned: int) -> int:
    """Choices after the best arm fell from 1 to 0, below the other's 1/2, until 9 of 10 take the other."""
    rng = np.random.default_rng(learned)
    agent = alone(forget, zeta=0.5)
    right = []
    for t in range(1, learned + 6001):
        arm = agent.choose(t)
        best = 0 if t <= learned else 1
        agent.observe(t, arm, float(rng.standard_t(3) + (0.5 if arm else t <= learned)))
        if t > learned:
            right.append(arm == best)
            if len(right) >= 50 and np.mean(right[-50:]) >= 0.9:
                return len(right)
    return 6000


@pytest.mark.parametrize("forget", [{"window": 800}, {"discount": 1 - 1 / 400}, "restart"])
def test_recovery_does_not_grow_with_what_was_learned(forget: Any) -> None:
    assert choices_to_recover(forget, 6000) <= 2 * 800
    assert choices_to_recover(None, 6000) > 2 * 800


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"window": 1}, "forget.window = 1"),
        ({"discount": 1.0}, "forget.discount = 1.0"),
        ({"windw": 5}, "forget = "),
        ({"window": 5, "discount": 0.9}, "forget = "),
        ("never", "forget = 'never' is not allowed: {window = W}"),
        (500, "forget = 500"),
    ],
)
def test_refused(given: Any, word: str) -> None:
    with pytest.raises(rm.InputError, match=word.replace("{", r"\{")):
        rm.KMPUCB(forget=given)


def test_what_cannot_forget() -> None:
    with pytest.raises(rm.InputError, match="SelfTuned cannot be discounted"):
        rm.KMPUCB(estimator=rm.SelfTuned(), forget={"discount": 0.9})  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="OriginMedianUCB does not forget"):
        rm.OriginMedianUCB(forget="restart")
    guarded = rm.KMPUCB(gamma=1, guard=1, forget="restart", moments=MOMENTS)
    with pytest.raises(rm.InputError, match="median over origins does not forget"):
        guarded.agent(rm.Seat(agent=0, n_arms=2))
    assert unsupported_reason(guarded, rm.World()) == "a guard does not forget"


def test_what_the_compiled_engine_refuses() -> None:
    forget: Any = "restart"
    stored = rm.KMPUCB(forget=forget, estimator=rm.MedianOfMeans())
    word = "does not support forgetting with MedianOfMeans"
    assert word in str(unsupported_reason(stored, rm.World()))
    leaders = rm.CentralizedMPUCB(forget=forget)
    prior = rm.Prior(mean=[0.0, 1.0], n=[9.0, 9.0])
    word = "supports a prior with leaders without faults and forgetting only"
    assert word in str(unsupported_reason(leaders, rm.World(), prior))
    assert unsupported_reason(leaders, rm.World(channel=rm.Imperfect(p=0.5))) is None


def test_named_in_a_table() -> None:
    rules = Rules("kmp", gamma=1, forget=("window", 100))
    assert policy_of(rules).forget.window == 100
