"""Every policy in the catalogue, with every setting, through the promises, both engines and the oracle."""

import pickle
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.catalogue_samples import every, made, on_a_path_of_five
from helpers.oracle import play
from helpers.oracle_adapters import (
    CONNECTED_ONLY,
    NO_FAULTS,
    actions_in,
    graph_of,
    played,
    rules_of,
    ties_against_oracle,
    ties_between_engines,
)
from rumormill import catalogue
from rumormill.engine.compiled import unsupported_reason

anywhere = pytest.mark.parametrize(("name", "table"), every("policy"))
on_a_path = pytest.mark.parametrize(("name", "table"), on_a_path_of_five())

BANDIT = rm.Bandit([rm.AlphaStable(alpha=1.6, loc=loc) for loc in (0.0, 0.5, 1.0)])
PATH, RING = rm.Network.path(5), rm.Network.ring(7)


@anywhere
def test_keeps_its_promises(name: str, table: dict[str, Any]) -> None:
    rm.checks.check_policy(made("policy", table))


@on_a_path
def test_both_engines_take_the_same_actions(name: str, table: dict[str, Any]) -> None:
    policy = made("policy", table)
    reason = unsupported_reason(policy, rm.World())
    if reason is None:
        assert ties_between_engines(BANDIT, PATH, policy, horizon=60, seed=3) == 0
        return
    with pytest.raises(rm.InputError, match=r'^engine="fast" cannot run this'):
        rm.simulate(BANDIT, PATH, policy, horizon=5, rng=3, engine="fast")
    with pytest.warns(rm.SlowEngineNotice):
        assert rm.simulate(BANDIT, PATH, policy, horizon=5, rng=3).engine == "reference"


@on_a_path
def test_acts_as_the_oracle_says(name: str, table: dict[str, Any]) -> None:
    policy = made("policy", table)
    rewards = np.random.default_rng(4).standard_cauchy((50, 5, 3)) + np.array([0.0, 0.5, 1.0])
    rules = rules_of(policy, PATH, rm.Replay(rewards, means=[0.0, 0.1, 0.2]))
    result = played(rewards, PATH, policy)
    assert ties_against_oracle(rewards, graph_of(PATH), rules, result) == 0
    np.testing.assert_array_equal(actions_in(result), play(rewards, graph_of(PATH), rules, NO_FAULTS))


@on_a_path
def test_is_plain_data(name: str, table: dict[str, Any]) -> None:
    """Equal, hashable and picklable, so that it can be sent to another process and its plan kept by key."""
    policy = made("policy", table)
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy == made("policy", table)
    assert hash(again.plan_key()) == hash(policy.plan_key())
    assert again.plan_key() == policy.plan_key()
    assert catalogue.name_of("policy", type(policy)) == name


@on_a_path
def test_agents_are_born_outside_the_simulator(name: str, table: dict[str, Any]) -> None:
    """From a seat alone, without a horizon; the part of the plan survives a journey."""
    policy = made("policy", table)
    plan = policy.plan(PATH)
    for v in range(5):
        seat = rm.Seat(
            agent=v,
            n_arms=3,
            neighbours=tuple(PATH.neighbours(v).tolist()),
            rng=np.random.default_rng(v),
            moments=rm.Moments(eps=0.5, u=2.0, rho=2.0),
            n_agents=5,
            horizon=7 if _needs_horizon(policy) else None,
            part=pickle.loads(pickle.dumps(plan.part(v))),
        )
        agent = policy.agent(seat)
        for t in range(1, 8):
            arm = agent.choose(t)
            assert arm in range(3)
            agent.observe(t, arm, float(v - t))
            assert all(isinstance(message, rm.Message) for message in agent.outgoing(t))
            agent.receive([])


@anywhere
def test_rewards_and_agents_depend_on_the_seed_alone(name: str, table: dict[str, Any]) -> None:
    policy = made("policy", table)
    one, two = (
        rm.simulate(BANDIT, RING, policy, horizon=30, trials=2, rng=9, engine="reference", actions=True)
        for _ in range(2)
    )
    assert one.actions is not None
    np.testing.assert_array_equal(one.actions, two.actions)
    if name != "default" and table.get("start") != "shared":
        assert (one.actions[:, :3] == np.arange(3)[:, None]).all()  # in the first K rounds all pull arm t - 1


@anywhere
def test_bears_an_imperfect_world_or_refuses_it(name: str, table: dict[str, Any]) -> None:
    """Everything at once, everybody away at times: no exception, and nobody acts who is not there."""
    policy = made("policy", table)
    away = [(v, 2 + v, 9 + v) for v in range(5)]
    worlds: list[dict[str, Any]] = [
        {"channel": rm.Imperfect(p=0.6, delay=2), "absences": away, "byzantine": rm.Byzantine(agents=[4])},
        {"channel": rm.Imperfect(p=0.6, symmetric=True), "absences": away, "churn": rm.Churn(up=5, down=2)},
        {"corruption": rm.Corruption(rate=0.5, scale=-1e99, rows=True, at="receiver")},
        {"channel": rm.Imperfect(p=1.0, delay=0), "byzantine": rm.Byzantine(agents=[])},
    ]
    game: dict[str, Any] = {"horizon": 30, "rng": 9, "engine": "reference", "actions": True}
    played = []
    for world in worlds:
        if catalogue.name_of("policy", type(policy)) in CONNECTED_ONLY and not _is_two_way(world):
            with pytest.raises(rm.InputError, match=r" support| requires a fault-free channel"):
                rm.simulate(BANDIT, PATH, policy, **game, **world)
            continue
        if name == "dducb" and "churn" in world:
            with pytest.raises(rm.InputError, match="DDUCB requires a fault-free channel"):
                rm.simulate(BANDIT, PATH, policy, **game, **world)
            continue
        if (
            table.get("forget")
            and getattr(policy, "guard", None)
            and getattr(world.get("byzantine"), "agents", ())
        ):
            with pytest.raises(rm.InputError, match="a median over origins does not forget"):
                rm.simulate(BANDIT, PATH, policy, **game, **world)
            continue
        result = rm.simulate(BANDIT, PATH, policy, **game, **world)
        played.append(result)
        assert result.actions is not None
        assert result.agent_rounds[0, -1] == (result.actions >= 0).sum()
        for v, first, last in world.get("absences", []):
            assert (result.actions[0, first - 1 : last, v] == -1).all()
    perfect = rm.simulate(BANDIT, PATH, policy, **game)  # as the last one, in which nothing goes wrong
    assert perfect.actions is not None
    np.testing.assert_array_equal(played[-1].actions, perfect.actions)


def _is_two_way(world: dict[str, Any]) -> bool:
    """Whether averages keep what they hold."""
    channel = world.get("channel", rm.Imperfect())
    return "corruption" not in world and (channel.symmetric or channel.perfect)


def _needs_horizon(policy: Any) -> bool:
    return getattr(policy, "estimator", None) is not None and policy.estimator.needs_horizon
