"""The package's side of the comparison with the oracle: its rules as a policy, its faults as keywords."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

import rumormill as rm
from helpers import oracle
from helpers.oracle import AVERAGING, CHOICES, OWN_INDEX, WITH_ROWS, Actions, Floats, Rules, World
from rumormill import catalogue
from rumormill.arms import RewardSource
from rumormill.engine.compiled.dispatch import LAYOUTS
from rumormill.engine.compiled.estimators import MEANS as COMPILED_MEANS
from rumormill.policies import CliquePlan, LeaderPlan
from rumormill.seeds import Role, root_seed, stream_seed

PAPER_POLICIES = ("decentralized", "centralized", "kmp", "consensus", "robust")
PAPER_ESTIMATORS = ("catoni", "empirical", "median-of-means", "trimmed")
MESSAGE_PASSING = ("decentralized", "centralized", "kmp", "robust")
# Policies that refuse a network in parts.
CONNECTED_ONLY = AVERAGING
# What both engines can play.
COMPILED_POLICIES = [name for name, cls in catalogue.POLICIES.items() if cls in LAYOUTS]
COMPILED_ESTIMATORS = [name for name, cls in catalogue.ESTIMATORS.items() if cls in COMPILED_MEANS]
TIE = 1e-9  # a smaller relative gap between two indices is a matter of rounding
NO_FAULTS = World(seed=oracle.channel_seed(0))  # the channel's seed of `simulate(rng=0)`

EngineName = Literal["reference", "fast"]


class Game(NamedTuple):
    """Rewards [round, agent, arm], a graph, the rules, the faults, and the means for the regret."""

    table: Floats
    graph: nx.Graph
    rules: Rules
    world: World = NO_FAULTS
    means: Sequence[float] = ()  # k/10 if not given

    def __str__(self) -> str:
        return (
            f"{_changed(self.rules, Rules(self.rules.policy))} in {_changed(self.world, World())} on "
            f"{sorted(self.graph.edges)} of {len(self.graph)}, {self.table.shape[2]} arms of means "
            f"{self.means}, {len(self.table)} rounds"
        )


def _changed(thing: Any, usual: Any) -> str:
    parts = [f"{k}={v!r}" for k, v in asdict(thing).items() if v != asdict(usual)[k] or k == "policy"]
    return f"{type(thing).__name__}({', '.join(parts)})"


# ---- rules as policies, and policies as rules ------------------------------------------------------------


def policy_of(r: Rules, world: World = NO_FAULTS) -> Any:
    """The package's policy for the oracle's rules."""
    table: dict[str, Any] = {"type": r.policy, "moments": rm.Moments(eps=r.eps, u=r.u, rho=r.rho)}
    if r.policy in AVERAGING or r.policy == "origin-median":
        names = {
            "consensus": ("kappa", "radius"),
            "coop-ucb2": ("sigma", "gamma_c"),
            "robust-gossip": (),
            "dducb": ("sigma", "eta", "accelerated", "own"),
            "origin-median": ("f", "spare", "count", "gamma"),
        }[r.policy]
        table |= {name: getattr(r, name) for name in names} | {"zeta": r.factor}
        table |= {"epsilon": r.eps_v} if r.policy == "consensus" else {}
        table |= {"confidence": r.schedule} if r.policy == "origin-median" else {}
        return catalogue.make("policy", table)
    table["estimator"] = catalogue.make("estimator", {"type": r.estimator, **r.options})
    table["confidence"] = r.schedule
    if r.estimator not in OWN_INDEX:
        table |= {"zeta": r.factor} if r.c is None else {"c": r.c}
    if r.forget is not None:
        table["forget"] = "restart" if r.forget[0] == "restart" else dict([r.forget])
    if r.policy != "robust":
        table |= {"gamma": r.gamma, "quiet": r.quiet, "start": r.start}
    if r.policy == "kmp":  # by default it withstands as many adversaries as there are
        table["guard"] = "auto" if r.guard == len(world.liars) and r.forget is None else r.guard
    if r.policy == "centralized":
        table["leaders"] = list(r.leaders)
        table["patience"] = None if r.patience == float("inf") else int(r.patience)
    if r.policy == "decentralized":
        table |= {"clique_filter": r.cover is not None, "cover": r.cover, "hold": r.hold}
        table |= {"discard": "RCL-LF"} if r.discard else {}
    return catalogue.make("policy", table)


SAME_NAME = (
    *("c", "zeta", "quiet", "start", "hold", "f", "spare", "count"),
    *("radius", "kappa", "sigma", "gamma_c", "eta", "accelerated", "own"),
)


def rules_of(policy: Any, network: rm.Network, source: RewardSource) -> Rules:
    """The oracle's rules for a policy of the package, with the cover or leaders that the policy chose."""
    name, plan = catalogue.name_of("policy", type(policy)), policy.plan(network)
    moments = getattr(policy, "moments", None) or source.moments()
    fields = catalogue.settings(type(policy))
    given = {one.name: getattr(policy, one.name) for one in fields if one.name in SAME_NAME}
    if name == "consensus":
        given["eps_v"] = plan.epsilon.tolist()
    if name not in AVERAGING:
        given |= {"gamma": plan.gamma, "schedule": getattr(policy, "confidence", "paper")}
        given["discard"] = getattr(policy, "discard", None) is not None
        given["guard"] = policy.guard if getattr(policy, "guard", "auto") != "auto" else 0
        given["cover"] = plan.groups if isinstance(plan, CliquePlan) else None
    if name in CHOICES:
        given["start"] = policy.start_and_quiet.start
        given["extra"] = {one.name: getattr(policy, one.name) for one in fields if one.name not in NOT_EXTRA}
    if hasattr(policy, "estimator") and name != "origin-median":
        given["estimator"] = catalogue.name_of("estimator", type(policy.estimator))
        options = catalogue.settings(type(policy.estimator))
        given["options"] = {one.name: getattr(policy.estimator, one.name) for one in options}
        given["options"] = {k: v for k, v in given["options"].items() if k not in NO_OPTIONS}
    if isinstance(plan, LeaderPlan):
        given["leaders"] = tuple(plan.leaders.tolist())
        given["patience"] = float("inf") if policy.patience is None else policy.patience
    return Rules(name, eps=moments.eps, u=moments.u, rho=moments.rho, **given)


NOT_EXTRA = ("moments", "estimator")
# Settings of estimators that the oracle knows at their default alone.
NO_OPTIONS = ("variant", "slack", "group")


def keywords_of(world: World) -> dict[str, Any]:
    """The fault model as keywords of `simulate`."""
    found: dict[str, Any] = {}
    if (world.p, world.delay) != (1.0, 0):
        parts: dict[str, Any] = {name: getattr(world, name) for name in ("p", "per", "symmetric", "delay")}
        found["channel"] = rm.Imperfect(**parts)
    if world.absences:
        found["absences"] = list(world.absences)
    if world.outages:
        found["outages"] = list(world.outages)
    if world.churn is not None:
        found["churn"] = rm.Churn(up=world.churn[0], down=world.churn[1])
    if world.rate > 0:
        parts = {"rate": world.rate, "at": world.at, "rows": world.rows}
        parts |= {"scale": world.scale} if world.scale != 1 else {"shift": world.shift}
        found["corruption"] = rm.Corruption(**parts)
    if world.liars:
        parts = {"agents": list(world.liars), "attack": world.attack, "size": world.size}
        found["byzantine"] = rm.Byzantine(**parts)
    return found


def graph_of(network: rm.Network) -> nx.Graph:
    """The network as a graph of agents 0..M-1."""
    graph = nx.empty_graph(network.n_agents)
    graph.add_edges_from(network.edges().tolist())
    return graph


# ---- games of the package --------------------------------------------------------------------------------


def played(
    table: ArrayLike,
    graph: nx.Graph | rm.Network,
    policy: Any,
    engine: Any = "reference",
    means: Sequence[float] = (),
    **faults: Any,
) -> rm.Result:
    """The package's result under recorded rewards; the policy may be given as rules."""
    rewards: NDArray[np.float64] = np.asarray(table, float)
    return rm.simulate(
        rm.Replay(rewards, means=np.arange(rewards.shape[2]) / 10 if len(means) == 0 else means),
        graph if isinstance(graph, rm.Network) else rm.Network(graph),
        policy_of(policy) if isinstance(policy, Rules) else policy,
        horizon=len(rewards),
        trials=1,
        rng=0,
        engine=engine,
        actions=True,
        workers=1,
        **faults,
    )


def result_of(game: Game, engine: Any = "reference") -> rm.Result:
    """The package's result of a game."""
    table, graph, rules, world, means = game
    return played(table, graph, policy_of(rules, world), engine, means, **keywords_of(world))


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
    return actions_in(played(table, graph, policy, engine, channel=channel))


def is_compiled(game: Game) -> bool:
    """Whether the compiled engine supports the game."""
    return not (game.rules.hold > 1 and (game.world.absences or game.world.churn))


def rewards_of(source: RewardSource, n_agents: int, horizon: int, seed: int, trial: int = 0) -> Floats:
    """The table [round, agent, arm] that a trial of `simulate(rng=seed)` sees."""
    stream = source.stream(stream_seed(root_seed(seed), trial, Role.REWARDS), n_agents, horizon)
    draws = stream.block(0, horizon)
    table: Floats = stream.loc + stream.scale * np.broadcast_to(draws, (horizon, n_agents, source.n_arms))
    return table


# ---- comparisons -----------------------------------------------------------------------------------------


def ties_against_oracle(
    table: ArrayLike,
    graph: nx.Graph,
    rules: Rules,
    result: rm.Result | Actions,
    world: World = NO_FAULTS,
    means: Sequence[float] = (),
) -> int:
    """How many choices differ from the oracle's by a floating-point tie; any other difference fails.

    Of a whole result without faults, messages and bytes are compared as well.
    """
    game = Game(np.asarray(table, float), graph, rules, world, means)
    actions = actions_in(result) if isinstance(result, rm.Result) else result
    wished, gaps, messages = oracle.follow(table, graph, rules, actions, world, means)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    assert gaps[worst] < TIE, (
        f"round {worst[0] + 1}, agent {worst[1]}: chose {actions[worst]}, the rules say {wished[worst]} "
        f"(gap {gaps[worst]:.3g}) for {game}"
    )
    if isinstance(result, rm.Result) and world.perfect and messages is not None:
        rows = game.table.shape[2] if rules.policy in (*WITH_ROWS, *AVERAGING) else 0
        assert result.messages[0, -1] == messages, (
            f"{result.messages[0, -1]} messages, not {messages}: {game}"
        )
        assert result.wire_bytes[0, -1] == messages * (20 + 16 * rows)
    return int(np.sum(wished != actions))


def assert_regret_of_those_present(game: Game, result: rm.Result) -> None:
    """Agents that pull have regret, no others; all pulls are counted."""
    actions, means = actions_in(result), np.array(game.means)
    gaps = np.where(actions >= 0, means.max() - means[actions], 0.0)
    np.testing.assert_allclose(result.agent_regret[0, -1], gaps.sum(axis=0), rtol=1e-12, atol=1e-12)
    assert result.agent_rounds[0, -1] == np.sum(actions >= 0)


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


# ---- covers and leaders to choose ------------------------------------------------------------------------


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
