"""Random small games for hypothesis: graphs, tables full of tails and ties, rules of every policy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

import rumormill as rm
from helpers.oracle import AVERAGING, Floats, Rules, World, channel_seed
from helpers.oracle_adapters import (
    COMPILED_ESTIMATORS,
    PAPER_ESTIMATORS,
    PAPER_POLICIES,
    Game,
    clique_cover,
    leaders,
)
from helpers.random_games import DECENTRALIZED
from rumormill import catalogue
from rumormill.arms import RewardSource

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@st.composite
def graphs(draw: st.DrawFn, largest: int = 7, connected: bool = False) -> nx.Graph:
    """Agents 0..M-1 with any set of links, in parts or not."""
    M = draw(st.integers(1, largest))
    pairs = [(v, w) for v in range(M) for w in range(v + 1, M)]
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = nx.empty_graph(M)
    graph.add_edges_from(links)
    if connected:
        parts = [min(part) for part in nx.connected_components(graph)]
        graph.add_edges_from(nx.utils.pairwise(parts))
    return graph


TABLES = ("stable", "two-point", "two-point, shared", "constant", "cauchy and zeros")


@st.composite
def tables(draw: st.DrawFn, M: int, longest: int = 60) -> Floats:
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
    mixed: Floats = np.where(rng.random((T, M, K)) < 0.4, 0.0, rng.standard_cauchy((T, M, K))) + means
    return mixed


@st.composite
def constants(draw: st.DrawFn, lemma: bool) -> dict[str, Any]:
    """c or zeta, as keyword arguments; "theory" where a lemma gives the constant."""
    kind = draw(st.sampled_from(("c", "zeta", "theory") if lemma else ("c", "zeta")))
    return {"c": "theory"} if kind == "theory" else {kind: draw(st.floats(0.01, 4.0))}


@st.composite
def rules(draw: st.DrawFn, graph: nx.Graph, policies: Sequence[str] = PAPER_POLICIES) -> Rules:
    """Any policy that can run on the graph."""
    if not nx.is_connected(graph):
        policies = [p for p in policies if p != "consensus"]
    policy = draw(st.sampled_from(policies))
    bounds: dict[str, Any] = {
        "eps": draw(st.sampled_from((1.0, 0.9, 0.5, 0.2))),
        "u": draw(st.floats(0.05, 20.0)),
        "rho": draw(st.floats(0.05, 20.0)),
    }
    if policy == "consensus":
        simple = np.all(np.diff(nx.laplacian_spectrum(graph)) > 1e-6)  # else the eigenvectors are open
        given = draw(st.floats(0.0, 5.0)) if not simple or draw(st.booleans()) else None
        kappa = draw(st.none() | st.floats(0.1, 0.9))
        return Rules(policy, eps_v=given, kappa=kappa, **bounds)
    estimator = draw(st.sampled_from(PAPER_ESTIMATORS))
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
        **draw(constants(lemma=estimator != "empirical")),
        **bounds,
    )


@st.composite
def games(
    draw: st.DrawFn, policies: Sequence[str] = PAPER_POLICIES, largest: int = 7, longest: int = 60
) -> Game:
    """A game of the paper."""
    graph = draw(graphs(largest, connected=tuple(policies) == ("consensus",)))
    return Game(draw(tables(len(graph), longest)), graph, draw(rules(graph, policies)))


@st.composite
def networks(draw: st.DrawFn, largest: int = 30) -> rm.Network:
    """Many families of the package, and any links at all (in parts or not)."""
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
    plain: dict[str, Callable[[int], rm.Network]] = {
        "ring": make.ring,
        "path": make.path,
        "star": make.star,
        "complete": make.complete,
    }
    return plain[kind](n)


def _laws(K: int, seed: int) -> dict[str, Callable[[int], rm.Arm]]:
    """Per word, the law of arm k of K; "stables" and what follows cannot share their draws."""
    rng = np.random.default_rng(seed)
    loc = (rng.permutation(K) / K + np.round(rng.random(), 2)).tolist()  # all different
    return {
        "stable": lambda k: rm.AlphaStable(alpha=1.6, loc=loc[k], scale=1 + k / 4),
        "stables": lambda k: rm.AlphaStable(alpha=1.3 + k / 20, loc=loc[k]),
        "gaussian": lambda k: rm.Gaussian(loc=loc[k], scale=0.5),
        "student": lambda k: rm.StudentT(df=2.5, loc=loc[k]),
        "pareto": lambda k: rm.Pareto.with_mean(loc[k], tail=1.7),
        "two-point": lambda k: rm.TwoPoint(probability=(1 + loc[k]) / 4, high=8.0),
        "empirical": lambda k: rm.Empirical([0.0, loc[k], 2 * loc[k], 50 * rng.random()]),
    }


LAWS = (*_laws(2, 0), "mixed")


def bandit_of(kind: str, K: int, seed: int) -> rm.Bandit:
    """A bandit of K arms of one kind, or of all kinds in turn."""
    laws = _laws(K, seed)
    words = list(laws)
    return rm.Bandit([laws[words[k % len(words)] if kind == "mixed" else kind](k) for k in range(K)])


@st.composite
def sources(draw: st.DrawFn, M: int, longest: int) -> tuple[RewardSource, int]:
    """(rewards, horizon): a bandit or a recorded table."""
    if draw(st.booleans()):
        table = draw(tables(M, longest))
        return rm.Replay(table, means=np.arange(table.shape[2]) / 8), len(table)
    kind, K, seed = draw(st.sampled_from(LAWS)), draw(st.integers(2, 8)), draw(st.integers(0, 10**6))
    return bandit_of(kind, K, seed), draw(st.integers(1, longest))


@st.composite
def policies(draw: st.DrawFn, name: str, source: RewardSource) -> rm.Policy:
    """A policy that both engines can play, parameters of every kind; moments given or the rewards'."""
    eps = draw(st.sampled_from([eps for eps in (1.0, 0.8, 0.25) if 1 + eps < source.tail_index]))
    own = {"eps": eps, "u": draw(st.floats(0.1, 10)), "rho": draw(st.floats(0.1, 10))}
    table: dict[str, Any] = {"type": name}
    takes = {setting.name for setting in catalogue.settings(catalogue.POLICIES[name])}
    # A constant table has no central moment, so only bandits are asked for theirs.
    if "moments" in takes and (isinstance(source, rm.Replay) or draw(st.booleans())):
        table["moments"] = own
    if "estimator" in takes:
        estimator = draw(st.sampled_from(COMPILED_ESTIMATORS))
        found = catalogue.make("estimator", estimator)
        table |= {"estimator": estimator, "confidence": draw(st.sampled_from(("paper", "anytime")))}
        table |= {} if found.brings_index else draw(constants(found.has_lemma))
    if "gamma" in takes:
        table["gamma"] = draw(st.integers(0, 5))
    if "clique_filter" in takes:
        table["clique_filter"] = draw(st.booleans())
    if "leaders" in takes:
        table["leaders"] = draw(st.sampled_from(("independent", "dominating")))
    if "epsilon" in takes:
        table["epsilon"] = draw(st.none() | st.floats(0, 5))
    made: rm.Policy = catalogue.make("policy", table)
    return made


# ---- faults ---------------------------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn, graph: nx.Graph, T: int, averaging: bool) -> World:
    """Some of what can go wrong, or all of it."""
    M = len(graph)
    parts: dict[str, Any] = {}
    agents, rounds = st.integers(0, M - 1), st.integers(1, T)
    spans = st.tuples(rounds, rounds).map(sorted)
    if draw(st.booleans()):
        parts["p"] = draw(st.sampled_from((0.0, 0.2, 0.5, 0.7, 0.9, 1.0)))
        parts["symmetric"] = averaging or draw(st.booleans())
        parts["per"] = "link" if averaging else draw(st.sampled_from(("link", "copy")))
    if not averaging and draw(st.booleans()):
        D = draw(st.integers(0, 5))
        parts["delay"] = D if draw(st.booleans()) else ("geometric", draw(st.floats(0.05, 1.0)), D)
    if draw(st.booleans()):
        away = draw(st.lists(st.tuples(agents, spans), max_size=2 * M))
        parts["absences"] = tuple((v, *span) for v, span in away)
    if len(graph.edges) and draw(st.booleans()):
        broken = draw(st.lists(st.tuples(st.sampled_from(sorted(graph.edges)), spans), max_size=4))
        parts["outages"] = tuple((*link, *span) for link, span in broken)
    if draw(st.booleans()):
        parts["churn"] = (draw(st.floats(1.0, 30.0)), draw(st.floats(1.0, 10.0)))
    if not averaging and draw(st.booleans()):
        parts |= draw(adversaries(M))
    return World(seed=channel_seed(0), **parts)


@st.composite
def adversaries(draw: st.DrawFn, M: int) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if draw(st.booleans()):
        parts["rate"] = draw(st.sampled_from((0.1, 0.5, 1.0)))
        parts["at"] = draw(st.sampled_from(("origin", "receiver")))
        parts["rows"] = draw(st.booleans())
        if draw(st.booleans()):
            parts["shift"] = draw(st.sampled_from((1.0, -3.0, 1000.0)))
        else:
            parts["scale"] = draw(st.sampled_from((-1.0, 0.0, 100.0)))
    if M > 1 and draw(st.booleans()):
        liars = draw(st.sets(st.integers(0, M - 1), min_size=1, max_size=max(1, M // 2)))
        parts["liars"] = tuple(sorted(liars))
        parts["attack"] = draw(st.sampled_from(("promote", "slander", "flood")))
        parts["size"] = draw(st.none() | st.sampled_from((0.5, -2.0)))
    return parts


@st.composite
def lossy_rules(draw: st.DrawFn, graph: nx.Graph, policy: str, estimator: str) -> Rules:
    common: dict[str, Any] = {
        "eps": draw(st.sampled_from((1.0, 0.8, 0.3))),
        "u": draw(st.floats(0.05, 20.0)),
        "rho": draw(st.floats(0.05, 20.0)),
        "zeta": draw(st.floats(0.05, 2.0)),
    }
    if policy in AVERAGING:
        return Rules(policy, eps_v=draw(st.floats(0.0, 3.0)), **common)
    gamma = 0 if policy == "robust" else draw(st.integers(0, 5))
    common |= {"gamma": gamma, "schedule": draw(st.sampled_from(("paper", "anytime")))}
    if policy == "origin-median":
        common |= {"f": draw(st.integers(0, 2)), "spare": draw(st.integers(1, 2))}
        return Rules(policy, count=draw(st.sampled_from(("all", "cautious", "trimmed"))), **common)
    if estimator == "self-tuned":  # small pilots, so that short games get beyond them
        common["options"] = {"pilot": draw(st.sampled_from((0, 1, 3))), "guard": 1.0, "omega": 4.0}
    elif estimator == "huber-sgd":
        common["options"] = {"scale": 1.0}
    if policy not in ("robust", "origin-median") and draw(st.integers(0, 3)) == 0:
        common["quiet"] = draw(st.sampled_from((0.0, 0.25, 1.0)))
    if policy == "centralized":
        order = draw(st.permutations(range(len(graph))))
        common["leaders"] = leaders(graph, gamma, list(order))
        common["patience"] = draw(st.sampled_from((0, 1, 3, 32, float("inf"))))
    if policy == "decentralized":
        kind = draw(st.sampled_from(DECENTRALIZED))
        if kind == "filtered":
            common["cover"] = clique_cover(graph, gamma)
        common["hold"] = draw(st.integers(2, 6)) if kind in ("held", "both") else 1
        common["discard"] = kind in ("discarding", "both")
    return Rules(policy, estimator=estimator, **common)


@st.composite
def lossy_games(draw: st.DrawFn, policy: str, estimator: str, largest: int = 7, longest: int = 40) -> Game:
    graph = draw(graphs(largest, connected=policy in AVERAGING))
    table = draw(tables(len(graph), longest))
    means = draw(st.permutations(range(table.shape[2])))
    world = draw(worlds(graph, len(table), policy in AVERAGING))
    drawn = draw(lossy_rules(graph, policy, estimator))
    if policy == "kmp":
        drawn = replace(drawn, guard=len(world.liars))  # by default as many as there are
    return Game(table, graph, drawn, world, [k / 8 for k in means])
