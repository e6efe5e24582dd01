"""Random small games for hypothesis: graphs, tables full of tails and ties, rules of every policy."""

import networkx as nx
import numpy as np
from hypothesis import strategies as st

import rumormill as rm
from oracle import Rules
from sides import clique_cover, leaders

POLICIES = ("decentralized", "centralized", "kmp", "consensus", "robust")


@st.composite
def graphs(draw, largest=7, connected=False):
    """Agents 0..M-1 with any set of links, in parts or not."""
    M = draw(st.integers(1, largest))
    pairs = [(v, w) for v in range(M) for w in range(v + 1, M)]
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = nx.Graph()
    graph.add_nodes_from(range(M))
    graph.add_edges_from(links)
    if connected:
        parts = [min(part) for part in nx.connected_components(graph)]
        graph.add_edges_from(nx.utils.pairwise(parts))
    return graph


TABLES = ("stable", "two-point", "two-point, shared", "constant", "cauchy and zeros")


@st.composite
def tables(draw, M, longest=60):
    """Rewards [round, agent, arm]. Discrete ones have few binary digits, so that equal sums are equal."""
    T, K = draw(st.integers(1, longest)), draw(st.integers(2, 6))
    kind, seed = draw(st.sampled_from(TABLES)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    means = np.round(rng.random(K), 3)
    if kind == "stable":
        return rm.AlphaStable(alpha=1.2 + 0.8 * rng.random()).sample(rng, T * M * K).reshape(T, M, K) + means
    if kind == "two-point":
        return rng.choice([0.0, 1.0, 8.0], (T, M, K), p=[0.6, 0.3, 0.1])
    if kind == "two-point, shared":  # the arms pay the same: ties everywhere
        return np.repeat(rng.choice([-0.25, 0.0, 4.0], (T, M, 1)), K, axis=2)
    if kind == "constant":
        return np.broadcast_to(rng.choice([0.5, 0.25, 2.0], K), (T, M, K)).copy()
    return np.where(rng.random((T, M, K)) < 0.4, 0.0, rng.standard_cauchy((T, M, K))) + means


@st.composite
def constants(draw, estimator):
    """c or zeta, as keyword arguments of the rules."""
    kind = draw(st.sampled_from(("c", "zeta") if estimator == "empirical" else ("c", "zeta", "theory")))
    if kind == "theory":
        return {"c": "theory"}
    return {kind: draw(st.floats(0.01, 4.0))}


@st.composite
def rules(draw, graph, policies=POLICIES):
    """Any policy that can run on the graph."""
    if not nx.is_connected(graph):
        policies = [p for p in policies if p != "consensus"]
    policy = draw(st.sampled_from(policies))
    bounds = {
        "eps": draw(st.sampled_from((1.0, 0.9, 0.5, 0.2))),
        "u": draw(st.floats(0.05, 20.0)),
        "rho": draw(st.floats(0.05, 20.0)),
    }
    if policy == "consensus":
        simple = np.all(np.diff(nx.laplacian_spectrum(graph)) > 1e-6)  # else the eigenvectors are open
        given = draw(st.floats(0.0, 5.0)) if not simple or draw(st.booleans()) else None
        kappa = draw(st.none() | st.floats(0.1, 0.9))
        return Rules(policy, eps_v=given, kappa=kappa, **bounds)
    estimator = draw(st.sampled_from(("trimmed", "empirical", "median", "catoni")))
    gamma = draw(st.integers(0, 5)) if policy != "robust" else 0
    order = draw(st.permutations(range(len(graph))))
    filtered = policy == "decentralized" and draw(st.booleans())
    return Rules(
        policy,
        gamma=gamma,
        estimator=estimator,
        schedule=draw(st.sampled_from(("paper", "anytime"))),
        cover=clique_cover(graph, gamma) if filtered else None,
        leaders=leaders(graph, gamma, order) if policy == "centralized" else (),
        **draw(constants(estimator)),
        **bounds,
    )


@st.composite
def games(draw, policies=POLICIES, largest=7, longest=60):
    """(table, graph, rules)."""
    graph = draw(graphs(largest, connected=policies == ("consensus",)))
    return draw(tables(len(graph), longest)), graph, draw(rules(graph, policies))


@st.composite
def networks(draw, largest=30):
    """Every generator of the package, and any links at all (in parts or not)."""
    kind = draw(
        st.sampled_from(
            ("any", "er", "er", "ba", "ws", "regular", "ring", "path", "star", "complete", "grid", "tree")
        )
    )
    seed, n = draw(st.integers(0, 10**6)), draw(st.integers(4, largest))
    make = rm.Network
    if kind == "any":
        return make(draw(graphs(7)))
    if kind == "er":
        return make.erdos_renyi(n, draw(st.floats(0.05, 0.9)), rng=seed, connected=False)
    if kind == "ba":
        return make.barabasi_albert(n, draw(st.integers(1, 3)), rng=seed)
    if kind == "ws":
        return make.watts_strogatz(n, 2, draw(st.floats(0.0, 1.0)), rng=seed, connected=False)
    if kind == "regular":
        return make.random_regular(2 * (n // 2), 3, rng=seed)
    if kind == "grid":
        return make.grid(draw(st.integers(1, 5)), draw(st.integers(2, 5)))
    if kind == "tree":
        return make.balanced_tree(draw(st.integers(2, 3)), draw(st.integers(1, 3)))
    return getattr(make, kind)(n)


LAWS = ("stable", "stables", "gaussian", "student", "pareto", "two-point", "empirical", "mixed")


def bandit_of(kind, K, seed):
    """A bandit of K arms of one kind; "stables" and what follows cannot share their draws."""
    rng = np.random.default_rng(seed)
    loc = rng.permutation(K) / K + np.round(rng.random(), 2)  # all different
    laws = {
        "stable": lambda k: rm.AlphaStable(alpha=1.6, loc=loc[k], scale=1 + k / 4),
        "stables": lambda k: rm.AlphaStable(alpha=1.3 + k / 20, loc=loc[k]),
        "gaussian": lambda k: rm.Gaussian(loc=loc[k], scale=0.5),
        "student": lambda k: rm.StudentT(df=2.5, loc=loc[k]),
        "pareto": lambda k: rm.Pareto.with_mean(loc[k], tail=1.7),
        "two-point": lambda k: rm.TwoPoint(probability=(1 + loc[k]) / 4, high=8.0),
        "empirical": lambda k: rm.Empirical([0.0, loc[k], 2 * loc[k], 50 * rng.random()]),
    }
    names = list(laws)
    return rm.Bandit([laws[names[k % len(names)] if kind == "mixed" else kind](k) for k in range(K)])


@st.composite
def sources(draw, M, longest):
    """(rewards, horizon): a bandit or a recorded table."""
    if draw(st.booleans()):
        table = draw(tables(M, longest))
        return rm.Replay(table, means=np.arange(table.shape[2]) / 8), len(table)
    kind, K, seed = draw(st.sampled_from(LAWS)), draw(st.integers(2, 8)), draw(st.integers(0, 10**6))
    return bandit_of(kind, K, seed), draw(st.integers(1, longest))
