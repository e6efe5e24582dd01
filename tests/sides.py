"""The package's side of the comparison with the oracle: the same rules as a policy of the package."""

import networkx as nx
import numpy as np

import oracle
import rumormill as rm
from rumormill.engine import Role, root_seed, stream_seed

ESTIMATORS = {
    "trimmed": rm.TrimmedMean,
    "empirical": rm.EmpiricalMean,
    "median": rm.MedianOfMeans,
    "catoni": rm.Catoni,
}
TIE = 1e-9  # a smaller relative gap between two indices is a matter of rounding


def policy_of(r):
    """The package's policy for the oracle's rules."""
    moments = rm.Moments(eps=r.eps, u=r.u, rho=r.rho)
    if r.policy == "consensus":
        return rm.ConsensusUCB(moments=moments, kappa=r.kappa, epsilon=r.eps_v)
    constant = {"c": r.c} if r.zeta is None else {"zeta": r.zeta}
    common = dict(estimator=ESTIMATORS[r.estimator](), confidence=r.schedule, moments=moments, **constant)
    if r.policy == "robust":
        return rm.RobustUCB(**common)
    if r.policy == "kmp":
        return rm.KMPUCB(gamma=r.gamma, **common)
    if r.policy == "centralized":
        return rm.CentralizedMPUCB(gamma=r.gamma, leaders=list(r.leaders), **common)
    return rm.DecentralizedMPUCB(gamma=r.gamma, clique_filter=r.cover is not None, cover=r.cover, **common)


def actions_of(table, graph, policy, engine="reference"):
    """Actions (T, M) of the package under recorded rewards."""
    table = np.asarray(table, float)
    replay = rm.Replay(table, means=np.arange(table.shape[2]) / 10)
    result = rm.simulate(
        replay, rm.Network(graph), policy, horizon=len(table), trials=1, rng=0, engine=engine, actions=True
    )
    return result.actions[0]


def ties_against_oracle(table, graph, rules, actions):
    """How many choices differ from the oracle's by a floating-point tie; any other difference fails."""
    wished, gaps = oracle.follow(table, graph, rules, actions)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    assert gaps[worst] < TIE, (
        f"round {worst[0] + 1}, agent {worst[1]}: chose {actions[worst]}, the rules say {wished[worst]} "
        f"(gap {gaps[worst]:.3g}) for {rules} on {sorted(graph.edges)} of {len(graph)}"
    )
    return int(np.sum(wished != actions))


def clique_cover(graph, gamma):
    """Some partition into cliques of the power graph: first fit, in order of id."""
    dist = dict(nx.all_pairs_shortest_path_length(graph, cutoff=gamma))
    groups = []
    for v in range(len(graph)):
        for group in groups:
            if all(w in dist[v] for w in group):
                group.append(v)
                break
        else:
            groups.append([v])
    return groups


def leaders(graph, gamma, order):
    """Some maximal independent set of the power graph: first fit, in the given order."""
    dist = dict(nx.all_pairs_shortest_path_length(graph, cutoff=gamma))
    chosen = []
    for v in order:
        if not any(w in dist[v] for w in chosen):
            chosen.append(v)
    return tuple(sorted(chosen))


FIELDS = ("actions", "agent_regret", "messages", "wire_bytes")


def ties_between_engines(source, network, policy, horizon, seed=0, checkpoints=None):
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
    if np.array_equal(slow.actions, fast.actions):
        np.testing.assert_array_equal(slow.agent_regret, fast.agent_regret)
        np.testing.assert_array_equal(slow.regret, fast.regret)
        return 0
    table = rewards_of(source, network.n_agents, horizon, seed)
    graph, rules = nx.Graph(), rules_of(policy, network, source)
    graph.add_nodes_from(range(network.n_agents))
    graph.add_edges_from(network.edges().tolist())
    ties_against_oracle(table, graph, rules, slow.actions[0])
    ties_against_oracle(table, graph, rules, fast.actions[0])
    t = np.argwhere(slow.actions[0] != fast.actions[0])[0, 0]
    return int(np.sum(slow.actions[0, t] != fast.actions[0, t]))  # later rounds differ because of these


def rewards_of(source, n_agents, horizon, seed, trial=0):
    """The table [round, agent, arm] that a trial of `simulate(rng=seed)` sees."""
    stream = source.stream(stream_seed(root_seed(seed), trial, Role.REWARDS), n_agents, horizon)
    draws = stream.block(0, horizon)
    return stream.loc + stream.scale * np.broadcast_to(draws, (horizon, n_agents, source.n_arms))


def rules_of(policy, network, source):
    """The oracle's rules for a policy of the package, with the cover or leaders that the policy chose."""
    moments = policy.moments or source.moments()
    bounds = {"eps": moments.eps, "u": moments.u, "rho": moments.rho}
    plan = policy.plan(network)
    if isinstance(policy, rm.ConsensusUCB):
        return oracle.Rules("consensus", kappa=policy.kappa, eps_v=plan.epsilon, **bounds)
    name = {
        rm.DecentralizedMPUCB: "decentralized",
        rm.CentralizedMPUCB: "centralized",
        rm.KMPUCB: "kmp",
        rm.RobustUCB: "robust",
    }[type(policy)]
    return oracle.Rules(
        name,
        gamma=policy.reach(network),
        estimator={cls: word for word, cls in ESTIMATORS.items()}[type(policy.estimator)],
        c=policy.c,
        zeta=1.0 if policy.c is None and policy.zeta is None else policy.zeta,
        schedule=policy.confidence,
        cover=plan if name == "decentralized" else None,
        leaders=tuple(set(plan.leader_of.tolist())) if name == "centralized" else (),
        **bounds,
    )
