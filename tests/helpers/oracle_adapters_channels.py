"""The package's side of the comparison with `oracle_channels`, and random imperfect worlds for hypothesis."""

from dataclasses import asdict, replace
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import strategies as st

import rumormill as rm
from helpers import oracle_adapters_reality as sides_reality
from helpers import oracle_channels as oracle
from helpers.oracle import Actions, Floats
from helpers.oracle_channels import Rules, World, channel_seed
from helpers.strategies import graphs, tables
from rumormill import catalogue

TIE = 1e-9  # a smaller relative gap between two indices is a matter of rounding
AVERAGING = ("consensus", "coop2", "gossip")
ESTIMATORS = ("trimmed", "clipped", "empirical", "groups", "selftuned", "median", "huber")
OWN_INDEX = ("selftuned", "median", "huber")
KINDS = ("plain", "filtered", "held", "discarding", "both")  # of Decentralized


# ---- the package's words ---------------------------------------------------------------------------------


def guard_of(r: Rules, world: World) -> Any:
    """By default KMP withstands as many liars as there are."""
    return "auto" if r.guard == len(world.liars) else r.guard


def policy_of(r: Rules, world: World) -> Any:
    """The package's policy for the oracle's rules."""
    moments = rm.Moments(eps=r.eps, u=r.u, rho=r.rho)
    if r.policy == "origins":
        options: dict[str, Any] = {"f": r.f, "spare": r.spare, "count": r.count, "gamma": r.gamma}
        options |= {"zeta": r.zeta, "confidence": r.schedule, "moments": moments}
        return catalogue.make("policy", {"type": "origin-median", **options})
    if r.policy in AVERAGING:
        return sides_reality.policy_of(r)
    common: dict[str, Any] = {
        "estimator": rm.MedianOfMeans()
        if r.estimator == "groups"
        else sides_reality.ESTIMATORS[r.estimator](**r.options),
        "confidence": r.schedule,
        "moments": moments,
    }
    if r.estimator not in OWN_INDEX:
        common |= {"zeta": r.zeta} if r.c is None else {"c": r.c}
    if r.policy == "robust":
        return rm.RobustUCB(**common)
    common |= {"gamma": r.gamma, "quiet": r.quiet}
    if r.policy == "kmp":
        return rm.KMPUCB(guard=guard_of(r, world), **common)
    if r.policy == "centralized":
        common["patience"] = None if r.patience == float("inf") else int(r.patience)
        return rm.CentralizedMPUCB(leaders=list(r.leaders), **common)
    common |= {} if r.hold == 1 else {"hold": r.hold}
    common |= {"discard": "RCL-LF"} if r.discard else {}
    return rm.DecentralizedMPUCB(clique_filter=r.cover is not None, cover=r.cover, **common)


def keywords_of(world: World) -> dict[str, Any]:
    """What `simulate` is told of a world."""
    told: dict[str, Any] = {}
    if (world.p, world.delay) != (1.0, 0):
        parts: dict[str, Any] = {name: getattr(world, name) for name in ("p", "per", "symmetric", "delay")}
        told["channel"] = rm.Imperfect(**parts)
    if world.absences:
        told["absences"] = list(world.absences)
    if world.outages:
        told["outages"] = list(world.outages)
    if world.churn is not None:
        told["churn"] = rm.Churn(up=world.churn[0], down=world.churn[1])
    if world.rate > 0:
        parts = {"rate": world.rate, "at": world.at, "rows": world.rows}
        parts |= {"scale": world.scale} if world.scale != 1 else {"shift": world.shift}
        told["corruption"] = rm.Corruption(**parts)
    if world.liars:
        parts = {"agents": list(world.liars), "attack": world.attack, "size": world.size}
        told["byzantine"] = rm.Byzantine(**parts)
    return told


def played(
    table: Floats, graph: nx.Graph, policy: Any, means: list[float], engine: str, **told: Any
) -> rm.Result:
    """The package's result under recorded rewards."""
    return rm.simulate(
        rm.Replay(np.asarray(table, float), means=means),
        rm.Network(graph),
        policy,
        horizon=len(table),
        trials=1,
        rng=0,
        engine=engine,  # type: ignore[arg-type]
        actions=True,
        workers=1,
        **told,
    )


Game = tuple[Floats, nx.Graph, Rules, World, list[float]]


def result_of(game: Game, engine: str) -> rm.Result:
    table, graph, rules, world, means = game
    return played(table, graph, policy_of(rules, world), means, engine, **keywords_of(world))


def is_compiled(game: Game) -> bool:
    """Whether the compiled engine is meant to know the game."""
    _, _, rules, world, _ = game
    return not (rules.hold > 1 and (world.absences or world.churn))


def assert_regret_of_those_present(game: Game, result: rm.Result) -> None:
    """Whoever pulls regrets, nobody else; all pulls are counted."""
    assert result.actions is not None
    actions, means = result.actions[0], np.array(game[4])
    gaps = np.where(actions >= 0, means.max() - means[actions], 0.0)
    np.testing.assert_allclose(result.agent_regret[0, -1], gaps.sum(axis=0), rtol=1e-12, atol=1e-12)
    assert result.agent_rounds[0, -1] == np.sum(actions >= 0)


def ties_against_oracle(game: Game, actions: Actions) -> int:
    """How many choices differ from the oracle's by a floating-point tie; any other difference fails."""
    wished, gaps = oracle.follow(*game, actions)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    assert gaps[worst] < TIE, (
        f"round {worst[0] + 1}, agent {worst[1]}: chose {actions[worst]}, the rules say {wished[worst]} "
        f"(gap {gaps[worst]:.3g}) for {told(game)}"
    )
    return int(np.sum(wished != actions))


def told(game: Game) -> str:
    """A game in as few words as possible."""
    table, graph, rules, world, means = game
    return (
        f"{_changed(rules, Rules(rules.policy))} in {_changed(world, World())} on {sorted(graph.edges)} of "
        f"{len(graph)}, {table.shape[2]} arms of means {means}, {len(table)} rounds"
    )


def _changed(thing: Any, usual: Any) -> str:
    parts = [f"{k}={v!r}" for k, v in asdict(thing).items() if v != asdict(usual)[k] or k == "policy"]
    return f"{type(thing).__name__}({', '.join(parts)})"


# ---- random worlds ---------------------------------------------------------------------------------------


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
        parts |= draw(falsehoods(M))
    return World(seed=channel_seed(0), **parts)


@st.composite
def falsehoods(draw: st.DrawFn, M: int) -> dict[str, Any]:
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
def rules(draw: st.DrawFn, graph: nx.Graph, policy: str, estimator: str) -> Rules:
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
    if policy == "origins":
        common |= {"f": draw(st.integers(0, 2)), "spare": draw(st.integers(1, 2))}
        return Rules(policy, count=draw(st.sampled_from(("all", "cautious", "trimmed"))), **common)
    if estimator == "selftuned":  # small pilots, so that short games get beyond them
        common["options"] = {"pilot": draw(st.sampled_from((0, 1, 3))), "guard": 1.0, "omega": 4.0}
    elif estimator == "huber":
        common["options"] = {"scale": 1.0}
    if policy not in ("robust", "origins") and draw(st.integers(0, 3)) == 0:
        common["quiet"] = draw(st.sampled_from((0.0, 0.25, 1.0)))
    if policy == "centralized":
        order = draw(st.permutations(range(len(graph))))
        common["leaders"] = sides_reality.some_leaders(graph, gamma, list(order))
        common["patience"] = draw(st.sampled_from((0, 1, 3, 32, float("inf"))))
    if policy == "decentralized":
        kind = draw(st.sampled_from(KINDS))
        if kind == "filtered":
            common["cover"] = sides_reality.clique_cover(graph, gamma)
        common["hold"] = draw(st.integers(2, 6)) if kind in ("held", "both") else 1
        common["discard"] = kind in ("discarding", "both")
    return Rules(policy, estimator=estimator, **common)


@st.composite
def games(draw: st.DrawFn, policy: str, estimator: str, largest: int = 7, longest: int = 40) -> Game:
    graph = draw(graphs(largest, connected=policy in AVERAGING))
    table = draw(tables(len(graph), longest))
    means = draw(st.permutations(range(table.shape[2])))
    world = draw(worlds(graph, len(table), policy in AVERAGING))
    drawn = draw(rules(graph, policy, estimator))
    if policy == "kmp":
        drawn = replace(drawn, guard=len(world.liars))  # by default as many as there are
    return table, graph, drawn, world, [k / 8 for k in means]


# ---- rich games from a seed ------------------------------------------------------------------------------
# Hypothesis likes small things, and in small games most faults change nothing. These have enough agents,
# rounds and mishaps that nearly every planted fault shows within a few games.


def random_game(seed: int, policy: str, estimator: str) -> Game:
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
    return table, graph, random_rules(rng, graph, policy, estimator, world), world, means.tolist()


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
    if policy == "origins":
        common |= {"f": int(rng.integers(0, 3)), "spare": int(rng.integers(1, 3))}
        return Rules(policy, count=str(rng.choice(["all", "cautious", "trimmed"])), **common)
    if estimator == "selftuned":
        common["options"] = {"pilot": int(rng.choice([0, 1, 3])), "guard": 1.0, "omega": 4.0}
    elif estimator == "huber":
        common["options"] = {"scale": 1.0}
    if policy != "robust" and rng.random() < 0.2:
        common["quiet"] = float(rng.choice([0.0, 0.25, 1.0]))
    if policy == "kmp":
        common["guard"] = int(rng.choice([len(world.liars), len(world.liars), 0, 1]))
    if policy == "centralized":
        common["leaders"] = sides_reality.some_leaders(graph, gamma, rng.permutation(len(graph)).tolist())
        common["patience"] = float(rng.choice([0, 1, 3, 32, np.inf]))
    if policy == "decentralized":
        kind = str(rng.choice(KINDS))
        common["cover"] = sides_reality.clique_cover(graph, gamma) if kind == "filtered" else None
        common["hold"] = int(rng.integers(2, 7)) if kind in ("held", "both") else 1
        common["discard"] = kind in ("discarding", "both")
    return Rules(policy, estimator=estimator, **common)
