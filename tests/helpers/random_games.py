"""Games from a seed: of the paper, beyond it, and with faults."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from helpers.oracle import AVERAGING, Floats, Rules, World, channel_seed
from helpers.oracle_adapters import PAPER_ESTIMATORS, PAPER_POLICIES, Game, clique_cover, leaders

DECENTRALIZED = ("plain", "filtered", "held", "discarding", "both")  # kinds of it


# ---- the paper -------------------------------------------------------------------------------------------


def paper_game(seed: int) -> Game:
    """Any policy and estimator of the paper."""
    rng = np.random.default_rng(seed)
    T, M, K = int(rng.integers(1, 60)), int(rng.integers(1, 9)), int(rng.integers(2, 7))
    policy = PAPER_POLICIES[seed % len(PAPER_POLICIES)]
    graph = nx.gnp_random_graph(M, rng.uniform(0.1, 0.8), seed=int(rng.integers(1 << 30)))
    if policy == "consensus":
        graph.add_edges_from(nx.utils.pairwise(range(M)))
    table = (
        rng.standard_cauchy((T, M, K)) * 0.5 if rng.random() < 0.5 else rng.choice([0, 1, 0.25, 8], (T, M, K))
    )
    estimator = str(rng.choice(PAPER_ESTIMATORS))
    constant: list[dict[str, Any]] = [
        {"c": float(rng.uniform(0.05, 3))},
        {"zeta": float(rng.uniform(0.1, 2))},
        {"c": "theory"},
    ]
    gamma = int(rng.integers(0, 6))
    rules = Rules(
        policy,
        eps=float(rng.choice([1, 0.8, 0.3])),
        u=float(rng.uniform(0.5, 5)),
        rho=float(rng.uniform(0.5, 5)),
        gamma=gamma,
        estimator=estimator,
        schedule=str(rng.choice(["paper", "anytime"])),
        cover=clique_cover(graph, gamma) if policy == "decentralized" and rng.random() < 0.5 else None,
        leaders=leaders(graph, gamma, rng.permutation(M).tolist()) if policy == "centralized" else (),
        eps_v=float(rng.uniform(0, 3)),
        **(constant[rng.integers(2 if estimator == "empirical" else 3)] if policy != "consensus" else {}),
    )
    return Game(table, graph, rules)


# ---- beyond the paper -----------------------------------------------------------------------------------


def some(rng: np.random.Generator, *values: float | None) -> float | None:
    """One of a few values."""
    return values[int(rng.integers(len(values)))]


def random_options(estimator: str, rng: np.random.Generator) -> dict[str, Any]:
    """Parameters of an estimator, at random; often small ones, so that short games get beyond the pilot."""
    if estimator == "self-tuned":
        kappa = float(rng.choice([0.5, 1.0, 2.0]))
        return {
            "C": float(rng.uniform(0.1, 3)),
            "kappa": kappa,
            "omega": float(rng.choice([1.0, 4.0, 16.0])),
            "guard": kappa * float(rng.choice([1.0, 1.5, 4.0])),
            "pilot": int(rng.choice([0, 1, 3, 7, 15])),
        }
    if estimator == "median-bound":
        return {"scale": float(10 ** rng.uniform(-2, 2))}
    if estimator == "robust-moss":
        return {"a": float(rng.uniform(1.05, 2)), "zeta": some(rng, None, 0.3, 1.0)}
    if estimator == "huber-sgd":
        return {
            "scale": some(rng, None, 1.0, 0.3),
            "lam": float(rng.uniform(0.5, 4)),
            "coeff": float(rng.uniform(0.2, 2)),
        }
    if estimator == "mr-ucb":
        return {"c": float(rng.uniform(0.1, 2)), "p": some(rng, None, 1.2, 2.0)}
    return {}


def random_table(rng: np.random.Generator, T: int, M: int, K: int) -> Floats:
    kind = rng.integers(5)
    means = np.round(rng.random(K), 3)
    if kind == 0:
        return np.asarray(rng.standard_cauchy((T, M, K)) * 0.5 + means)
    if kind == 1:
        return rng.choice([0.0, 1.0, 0.25, 8.0], (T, M, K))
    if kind == 2:
        return np.asarray(rng.standard_t(2.5, (T, M, K)) + means)
    if kind == 3:
        return np.asarray(rng.pareto(1.6, (T, M, K)) * means)
    table = np.where(rng.random((T, M, K)) < 0.4, 0.0, rng.standard_cauchy((T, M, K)))
    return np.asarray(table + means)


def game_beyond_the_paper(seed: int, policy: str, estimator: str = "trimmed") -> Game:
    """Every estimator, rival policy and way to start and to save messages."""
    rng = np.random.default_rng([seed, *policy.encode(), *estimator.encode()])
    T, M, K = int(rng.integers(1, 90)), int(rng.integers(1, 9)), int(rng.integers(2, 7))
    graph = nx.gnp_random_graph(M, rng.uniform(0.1, 0.8), seed=int(rng.integers(1 << 30)))
    if policy in AVERAGING:
        graph.add_edges_from(nx.utils.pairwise(range(M)))
    gamma = int(rng.integers(0, 5))
    constant = [{"zeta": float(rng.uniform(0.1, 2))}, {"c": float(rng.uniform(0.05, 3))}, {"c": "theory"}]
    order = rng.permutation(M).tolist()
    return Game(
        random_table(rng, T, M, K),
        graph,
        Rules(
            policy,
            eps=float(rng.choice([1, 0.8, 0.3])),
            u=float(rng.uniform(0.5, 5)),
            rho=float(rng.uniform(0.5, 5)),
            gamma=gamma,
            estimator=estimator,
            options=random_options(estimator, rng),
            schedule=str(rng.choice(["paper", "anytime"])),
            cover=clique_cover(graph, gamma) if policy == "decentralized" and rng.random() < 0.4 else None,
            leaders=leaders(graph, gamma, order) if policy == "centralized" else (),
            quiet=some(rng, None, 0.0, 0.25, 1.0) if policy != "robust" else None,
            start=str(rng.choice(["round-robin", "shared"])) if policy != "robust" else "round-robin",
            radius=str(rng.choice(["printed", "moment", "logarithmic"])),
            eps_v=float(rng.uniform(0, 3)),
            sigma=some(rng, None, 0.5),
            gamma_c=float(rng.uniform(1.01, 2)),
            eta=float(rng.choice([1.01, 2.0])),
            accelerated=bool(rng.random() < 0.7),
            own=bool(rng.random() < 0.6),
            **constant[rng.integers(2 if policy in AVERAGING or estimator == "empirical" else 3)],  # type: ignore[arg-type]
        ),
    )


# ---- faults ---------------------------------------------------------------------------------------------
# Hypothesis likes small things, and in small games most faults change nothing. These have enough agents,
# rounds and mishaps that nearly every planted fault shows within a few games.


def lossy_game(seed: int, policy: str, estimator: str) -> Game:
    """With faults of every kind."""
    rng = np.random.default_rng([seed, *policy.encode(), *estimator.encode()])
    T, M, K = int(rng.integers(25, 46)), int(rng.integers(4, 9)), int(rng.integers(2, 5))
    graph = nx.gnp_random_graph(M, rng.uniform(0.3, 0.7), seed=int(rng.integers(1 << 30)))
    if policy in AVERAGING or rng.random() < 0.7:
        graph.add_edges_from(nx.utils.pairwise(rng.permutation(M).tolist()))
    means = np.round(rng.random(K), 3)
    if rng.random() < 0.8:
        table = rng.standard_t(2.0, (T, M, K)) * 0.5 + means
    else:
        table = rng.choice([0.0, 1.0, 0.25, 8.0], (T, M, K))
    world = random_world(rng, graph, T, policy in AVERAGING)
    rules = random_rules(rng, graph, policy, estimator, world)
    return Game(table, graph, rules, world, means.tolist())


def random_world(rng: np.random.Generator, graph: nx.Graph, T: int, averaging: bool) -> World:
    M = len(graph)

    def maybe(chance: float) -> bool:
        return bool(rng.random() < chance)

    def span() -> tuple[int, int]:
        first = int(rng.integers(1, T + 1))
        return first, min(T, first + int(rng.integers(0, 12)))

    parts: dict[str, Any] = {}
    if maybe(0.6):
        parts |= {"p": float(rng.uniform(0.3, 0.95)), "symmetric": averaging or maybe(0.4)}
        parts["per"] = "link" if averaging or maybe(0.5) else "copy"
    if not averaging and maybe(0.5):
        D = int(rng.integers(1, 6))
        parts["delay"] = D if maybe(0.5) else ("geometric", float(rng.uniform(0.2, 0.9)), D)
    if maybe(0.5):
        away = [(int(v), *span()) for v in rng.integers(0, M, M)]
        late = [(v, 1, int(rng.integers(1, T))) for v in range(M) if maybe(0.2)]
        parts["absences"] = (*away, *late)
    if maybe(0.4):
        edges = sorted(graph.edges)
        flipped = [edge if maybe(0.5) else edge[::-1] for edge in edges]
        parts["outages"] = tuple((*edge, *span()) for edge in flipped if maybe(0.4))
    if maybe(0.4):
        parts["churn"] = (float(rng.uniform(1, 20)), float(rng.uniform(1, 6)))
    if not averaging and maybe(0.4):
        parts |= {"rate": float(rng.uniform(0.1, 0.9)), "rows": maybe(0.5)}
        parts["at"] = "origin" if maybe(0.5) else "receiver"
        parts |= {"shift": float(rng.normal())} if maybe(0.5) else {"scale": float(rng.normal())}
    if not averaging and maybe(0.4):
        liars = rng.permutation(M)[: int(rng.integers(1, 1 + max(1, M // 3)))]
        parts |= {"liars": tuple(sorted(liars.tolist())), "size": None if maybe(0.6) else float(rng.normal())}
        parts["attack"] = str(rng.choice(["promote", "slander", "flood"]))
    return World(seed=channel_seed(0), **parts)


def random_rules(
    rng: np.random.Generator, graph: nx.Graph, policy: str, estimator: str, world: World
) -> Rules:
    common: dict[str, Any] = {
        "eps": float(rng.choice([1.0, 0.8, 0.3])),
        "u": float(rng.uniform(0.3, 3)),
        "rho": float(rng.uniform(0.3, 3)),
        "zeta": float(rng.uniform(0.02, 0.8)),
    }
    if policy in AVERAGING:
        return Rules(policy, eps_v=float(rng.uniform(0, 1)), **common)
    gamma = 0 if policy == "robust" else int(rng.integers(1, 5))
    common |= {"gamma": gamma, "schedule": str(rng.choice(["paper", "anytime"]))}
    if policy == "origin-median":
        common |= {"f": int(rng.integers(0, 3)), "spare": int(rng.integers(1, 3))}
        return Rules(policy, count=str(rng.choice(["all", "cautious", "trimmed"])), **common)
    if estimator == "self-tuned":
        common["options"] = {"pilot": int(rng.choice([0, 1, 3])), "guard": 1.0, "omega": 4.0}
    elif estimator == "huber-sgd":
        common["options"] = {"scale": 1.0}
    if policy != "robust" and rng.random() < 0.2:
        common["quiet"] = float(rng.choice([0.0, 0.25, 1.0]))
    if policy == "kmp":
        common["guard"] = int(rng.choice([len(world.liars), len(world.liars), 0, 1]))
    if policy == "centralized":
        common["leaders"] = leaders(graph, gamma, rng.permutation(len(graph)).tolist())
        common["patience"] = float(rng.choice([0, 1, 3, 32, np.inf]))
    if policy == "decentralized":
        kind = str(rng.choice(DECENTRALIZED))
        common["cover"] = clique_cover(graph, gamma) if kind == "filtered" else None
        common["hold"] = int(rng.integers(2, 7)) if kind in ("held", "both") else 1
        common["discard"] = kind in ("discarding", "both")
    return Rules(policy, estimator=estimator, **common)


# ---- forgetting -----------------------------------------------------------------------------------------

FORGET_WAYS = ("window", "discount", "restart")


def forgetting_game(seed: int, policy: str, way: str, estimator: str = "trimmed") -> Game:
    """As beyond the paper, with means that jump; short windows, and rounds enough for an alarm."""
    base = game_beyond_the_paper(seed, policy, estimator)
    rng = np.random.default_rng([seed, *policy.encode(), *way.encode()])
    M, K = base.table.shape[1:]
    longest = 90 if way != "restart" else 260 if policy == "robust" else 120
    T = int(rng.integers(2 if way != "restart" else longest - 20, longest))
    jump = np.where(np.arange(T)[:, None] < T // 2, rng.random(K), rng.normal(size=K) * 4)
    table = jump[:, None] + rng.standard_t(2.5, (T, M, K))
    value = {"window": int(rng.integers(2, 70)), "discount": float(rng.uniform(0.5, 0.99)), "restart": 0}[way]
    return Game(table, base.graph, replace(base.rules, forget=(way, value)))


def forgetting_game_with_faults(seed: int, policy: str, way: str, estimator: str = "trimmed") -> Game:
    """Faults of every kind, and memories so short that rows expire."""
    game, rng = lossy_game(seed, policy, estimator), np.random.default_rng([seed, *way.encode()])
    value = {"window": int(rng.integers(2, 50)), "discount": float(rng.uniform(0.6, 0.98)), "restart": 0}[way]
    table = game.table
    if way == "restart":  # long enough for an alarm, at least among many
        table = np.concatenate([table, table, table + 4.0 * rng.normal(size=table.shape[2])])
    return game._replace(table=table, rules=replace(game.rules, forget=(way, value), guard=0))
