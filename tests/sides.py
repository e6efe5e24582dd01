"""The package's side of the comparison with the oracle: the same rules as a policy of the package."""

import networkx as nx
import numpy as np
import oracle

import rumormill as rm

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
    common = dict(
        estimator=ESTIMATORS[r.estimator](), confidence=r.schedule, moments=moments, **constant
    )
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
