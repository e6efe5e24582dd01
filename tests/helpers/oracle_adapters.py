"""The package's side of the comparison with the oracle: the same rules as a policy of the package."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

import rumormill as rm
from helpers import oracle
from helpers.oracle import Actions, Floats
from rumormill import catalogue
from rumormill.arms import RewardSource
from rumormill.engine.compiled.dispatch import LAYOUTS
from rumormill.engine.compiled.estimators import MEANS
from rumormill.policies import CliquePlan, HopPlan, LeaderPlan
from rumormill.seeds import Role, root_seed, stream_seed

# The oracle's words for what the catalogue names; policies are called the same.
ESTIMATOR_WORDS = {
    "trimmed": "trimmed",
    "empirical": "empirical",
    "median": "median-of-means",
    "catoni": "catoni",
}
KNOWN_TO_THE_ORACLE = ("decentralized", "centralized", "kmp", "consensus", "robust")
# Policies that refuse a network in parts.
CONNECTED_ONLY = ("consensus", "coop-ucb2", "dducb", "robust-gossip")
# What both engines can play.
COMPILED_POLICIES = [name for name, cls in catalogue.POLICIES.items() if cls in LAYOUTS]
COMPILED_ESTIMATORS = [name for name, cls in catalogue.ESTIMATORS.items() if cls in MEANS]
TIE = 1e-9  # a smaller relative gap between two indices is a matter of rounding

EngineName = Literal["reference", "fast"]


def policy_of(r: oracle.Rules) -> rm.Policy:
    """The package's policy for the oracle's rules."""
    settings: dict[str, Any] = {"moments": {"eps": r.eps, "u": r.u, "rho": r.rho}}
    if r.policy == "consensus":
        settings |= {"kappa": r.kappa, "epsilon": r.eps_v}
    else:
        settings |= {"estimator": ESTIMATOR_WORDS[r.estimator], "confidence": r.schedule}
        settings |= {"c": r.c} if r.zeta is None else {"zeta": r.zeta}
    if r.policy in ("decentralized", "centralized", "kmp"):
        settings["gamma"] = r.gamma
    if r.policy == "centralized":
        settings["leaders"] = list(r.leaders)
    if r.policy == "decentralized":
        settings |= {"clique_filter": r.cover is not None, "cover": r.cover}
    made: rm.Policy = catalogue.make("policy", {"type": r.policy, **settings})
    return made


def rules_of(policy: Any, network: rm.Network, source: RewardSource) -> oracle.Rules:
    """The oracle's rules for a policy of the package, with the cover or leaders that the policy chose."""
    name = catalogue.name_of("policy", type(policy))
    moments = policy.moments or source.moments()
    bounds: dict[str, Any] = {"eps": moments.eps, "u": moments.u, "rho": moments.rho}
    plan = policy.plan(network)
    if name == "consensus":
        return oracle.Rules(name, kappa=policy.kappa, eps_v=plan.epsilon.tolist(), **bounds)
    assert isinstance(plan, HopPlan)
    estimator = catalogue.name_of("estimator", type(policy.estimator))
    return oracle.Rules(
        name,
        gamma=plan.gamma,
        estimator={known: word for word, known in ESTIMATOR_WORDS.items()}[estimator],
        c=1.0 if policy.c is None else policy.c,
        zeta=1.0 if policy.c is None and policy.zeta is None else policy.zeta,
        schedule=policy.confidence,
        cover=plan.groups if isinstance(plan, CliquePlan) else None,
        leaders=plan.leaders.tolist() if isinstance(plan, LeaderPlan) else (),
        **bounds,
    )


def graph_of(network: rm.Network) -> nx.Graph:
    """The network as a graph of agents 0..M-1."""
    graph = nx.empty_graph(network.n_agents)
    graph.add_edges_from(network.edges().tolist())
    return graph


def actions_in(result: rm.Result, trial: int = 0) -> Actions:
    """The actions (T, M) of one trial."""
    assert result.actions is not None
    actions: Actions = result.actions[trial]
    return actions


def actions_of(
    table: ArrayLike,
    graph: nx.Graph | rm.Network,
    policy: Any,
    engine: EngineName = "reference",
    channel: rm.Channel | None = None,
) -> Actions:
    """Actions (T, M) of the package under recorded rewards."""
    rewards: NDArray[np.float64] = np.asarray(table, float)
    result = rm.simulate(
        rm.Replay(rewards, means=np.arange(rewards.shape[2]) / 10),
        graph if isinstance(graph, rm.Network) else rm.Network(graph),
        policy,
        horizon=len(rewards),
        trials=1,
        rng=0,
        engine=engine,
        actions=True,
        channel=channel,
    )
    return actions_in(result)


def ties_against_oracle(table: ArrayLike, graph: nx.Graph, rules: oracle.Rules, actions: Actions) -> int:
    """How many choices differ from the oracle's by a floating-point tie; any other difference fails."""
    wished, gaps = oracle.follow(table, graph, rules, actions)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    assert gaps[worst] < TIE, (
        f"round {worst[0] + 1}, agent {worst[1]}: chose {actions[worst]}, the rules say {wished[worst]} "
        f"(gap {gaps[worst]:.3g}) for {rules} on {sorted(graph.edges)} of {len(graph)}"
    )
    return int(np.sum(wished != actions))


def clique_cover(graph: nx.Graph, gamma: int) -> list[list[int]]:
    """Some partition into cliques of the power graph: first fit, in order of id."""
    dist = dict(nx.all_pairs_shortest_path_length(graph, cutoff=gamma))
    groups: list[list[int]] = []
    for v in range(len(graph)):
        for group in groups:
            if all(w in dist[v] for w in group):
                group.append(v)
                break
        else:
            groups.append([v])
    return groups


def leaders(graph: nx.Graph, gamma: int, order: Iterable[int]) -> tuple[int, ...]:
    """Some maximal independent set of the power graph: first fit, in the given order."""
    dist = dict(nx.all_pairs_shortest_path_length(graph, cutoff=gamma))
    chosen: list[int] = []
    for v in order:
        if not any(w in dist[v] for w in chosen):
            chosen.append(v)
    return tuple(sorted(chosen))


def ties_between_engines(
    source: RewardSource,
    network: rm.Network,
    policy: Any,
    horizon: int,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
) -> int:
    """Play on both engines. Equal in everything: 0. Else the number of ties, each proven by the oracle."""
    slow, fast = (
        rm.simulate(
            source,
            network,
            policy,
            horizon=horizon,
            trials=1,
            rng=seed,
            engine=engine,
            actions=True,
            checkpoints=checkpoints,
            workers=1,
        )
        for engine in ("reference", "fast")
    )
    np.testing.assert_array_equal(slow.messages, fast.messages)
    np.testing.assert_array_equal(slow.wire_bytes, fast.wire_bytes)
    if np.array_equal(actions_in(slow), actions_in(fast)):
        np.testing.assert_array_equal(slow.agent_regret, fast.agent_regret)
        np.testing.assert_array_equal(slow.regret, fast.regret)
        return 0
    table = rewards_of(source, network.n_agents, horizon, seed)
    graph, rules = graph_of(network), rules_of(policy, network, source)
    ties_against_oracle(table, graph, rules, actions_in(slow))
    ties_against_oracle(table, graph, rules, actions_in(fast))
    t = np.argwhere(actions_in(slow) != actions_in(fast))[0, 0]
    # Later rounds differ because of these.
    return int(np.sum(actions_in(slow)[t] != actions_in(fast)[t]))


def rewards_of(source: RewardSource, n_agents: int, horizon: int, seed: int, trial: int = 0) -> Floats:
    """The table [round, agent, arm] that a trial of `simulate(rng=seed)` sees."""
    stream = source.stream(stream_seed(root_seed(seed), trial, Role.REWARDS), n_agents, horizon)
    draws = stream.block(0, horizon)
    table: Floats = stream.loc + stream.scale * np.broadcast_to(draws, (horizon, n_agents, source.n_arms))
    return table
