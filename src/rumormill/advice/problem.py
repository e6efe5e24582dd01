"""The problems advice is given on: from a log (support, network, groups) or from a spec (known laws)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import networkx as nx
import numpy as np
from numpy.typing import NDArray

from rumormill.advice.model_checks import Evidence, examine
from rumormill.advice.model_checks.homogeneity import BLOCKS, folded, group_agents
from rumormill.advice.reward_table import Table, borrowed, unsupported, without_agents
from rumormill.arms import Bandit, Moments, RewardSource
from rumormill.errors import DataError, InputError
from rumormill.experiments.plan import plan_of
from rumormill.experiments.spec.building import build_common_bandit, build_law
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network
from rumormill.stats.winsorize import cell_means, moved_in_cells
from rumormill.text import plural


@dataclass(frozen=True)
class ArmTail:
    """The exact tail index of one arm's law."""

    arm: str
    mean: float | None
    exact: float

    def row(self) -> dict[str, Any]:
        words = "known from the law" + (": every moment is finite" if math.isinf(self.exact) else "")
        return {"arm": self.arm, "mean": self.mean, "tail_index": self.exact, "tail": words}


@dataclass(frozen=True)
class Case:
    """A problem to give advice on: rewards for every trial, moment bounds, and why these."""

    name: str
    tails: tuple[ArmTail, ...]
    moments: Moments
    light: bool
    reasons: tuple[str, ...]
    source: Callable[[int, int, int], RewardSource]
    """The rewards of a trial, for so many agents and rounds."""


def case_of_spec(spec: Spec) -> Case:
    """The arms of an experiment: tails and moments are exact."""
    single = one_problem(spec)
    if single.arms.varies:
        raise InputError(
            f"{spec.name} has arms that differ between agents or change: advice on a spec is for one bandit; "
            "record a log of it and ask about that"
        )
    bandit = build_common_bandit(single, 0)
    eps = bandit.default_eps()
    uniform = single.arms.means == "uniform"
    # E|X + m|^p is convex in m: over means in [0, 1] it is largest at an end.
    ends = [build_law(single).at_mean(mean) for mean in (0.0, 1.0)]
    worst = Bandit(ends) if uniform else bandit
    moments = worst.moments(eps)
    tails = tuple(
        ArmTail(arm=f"arm {k}", mean=None if uniform else law.mean, exact=law.tail_index)
        for k, law in enumerate(bandit.arms)
    )
    index = bandit.tail_index
    why = "variances are finite" if index > 2 else f"moments are finite below order {index:g}"
    if single.arms.eps is not None:
        why = "given by the spec"
    means = " for any means in [0, 1]" if uniform else ""
    reasons = (
        f"ε = {eps:.3g}: {why}.",
        f"u = {moments.u:.4g}, ρ = {moments.rho:.4g}: exact{means}.",
    )
    return Case(
        single.name,
        tails,
        moments,
        index > 2,
        reasons,
        lambda trial, agents, horizon: build_common_bandit(single, trial),
    )


def one_problem(spec: Spec) -> Spec:
    """The spec at its only network and arms; refused where a sweep makes it several problems."""
    several = plan_of(spec).points
    first = several[0].spec
    if any((point.spec.network, point.spec.arms) != (first.network, first.arms) for point in several):
        raise InputError(
            f"{spec.name} sweeps {', '.join(spec.sweep)}: advice is for one network and one law, "
            "so give a spec without that sweep"
        )
    return msgspec.structs.replace(first, sweep={})


Array = NDArray[np.float64]

# Chosen on the first part, reported on the rest.
FIRST = 0.6
# More agents than this are not all linked with each other unless somebody says so.
MOST_LINKED = 300
# Where fewer agents than this are left that can be replayed, there is nothing to advise on.
LEAST_LEFT = 0.5


def restricted(network: Network, group_of: NDArray[np.int64]) -> Network:
    """The network without its links between groups."""
    graph = nx.Graph()
    graph.add_nodes_from(range(network.n_agents))
    for v in range(network.n_agents):
        graph.add_edges_from((v, int(w)) for w in network.neighbours(v) if group_of[v] == group_of[w])
    return Network(graph)


def supported(
    table: Table, evidence: Evidence, rng: np.random.Generator
) -> tuple[Table, Evidence, list[str]]:
    """Where an agent hardly tried an arm: others of its kind stand in, or it is left out."""
    weak = unsupported(table)
    if table.log.agents is not None and table.kind != "full" and not evidence.sameness.differs:
        # Few values of one agent, used again and again, would freeze its luck: all agents' values fill holes.
        same = np.zeros(table.n_agents, dtype=np.int64)
        table = borrowed(table, np.ones(weak.shape, dtype=np.bool_), same, rng)
        if not weak.any():
            return table, evidence, []
    if not weak.any():
        return table, evidence, []
    agents: NDArray[np.bool_] = np.asarray(weak.any(axis=1), dtype=np.bool_)
    names = np.array(table.log.agents or ("the log",))
    who = f"{', '.join(names[agents][:3])}{', ...' if agents.sum() > 3 else ''}"
    if not evidence.sameness.differs:
        note = (
            f"{plural(int(agents.sum()), 'agent')} ({who}) hardly tried some arms: what others got from "
            "them stands in, as the arms look the same for all."
        )
        return table, evidence, [note]
    if (~agents).sum() < max(2, LEAST_LEFT * len(agents)):
        raise DataError(
            f"{plural(int(agents.sum()), 'agent')} of {len(agents)} ({who}) hardly tried some arms, and the "
            "arms are not the same for all: the log cannot say what these agents would have got. Let every "
            "agent try every arm now and then, and record that"
        )
    smaller = without_agents(table, agents)
    note = (
        f"{plural(int(agents.sum()), 'agent')} ({who}) left out: they hardly tried some arms, and "
        "the arms are not the same for all."
    )
    return smaller, examine(smaller, rng), [note]


def network_of(table: Table, network: Network | None) -> Network:
    if network is None:
        if table.log.agents is None:
            raise InputError(
                "the log does not say who measured what, so it has no agents: add for example --network "
                '"erdos_renyi n=50 p=0.1", or name the column with --agent-column'
            )
        if table.n_agents > MOST_LINKED:
            raise InputError(
                f"the log has {table.n_agents:,} agents, too many to link all with all: say who is linked to "
                f'whom, for example --network "random_regular n={table.n_agents} d=8"'
            )
        return Network.complete(table.n_agents) if table.n_agents > 1 else Network(nx.empty_graph(1))
    if table.log.agents is not None and network.n_agents != table.n_agents:
        raise InputError(
            f"the network has {plural(network.n_agents, 'agent')}, the log {table.n_agents}: give a network "
            f"of {table.n_agents}, in the order {', '.join((table.log.agents or ())[:3])}, ..."
        )
    return network


def for_agents(table: Table, n_agents: int, rng: np.random.Generator) -> Array:
    """The table for so many agents; a log without agents is read by each from another place on."""
    if table.log.agents is not None:
        return table.values
    stream, cut = table.values[:, 0], round(FIRST * table.rounds)
    parts = []
    for part in (stream[:cut], stream[cut:]):
        shifts = rng.integers(len(part), size=n_agents)
        parts.append(part[(np.arange(len(part))[:, None] + shifts) % len(part)])
    return np.ascontiguousarray(np.concatenate(parts))


def groups_of_first_part(
    table: Table, evidence: Evidence, values: Array
) -> tuple[NDArray[np.int64], tuple[tuple[int, ...], ...]]:
    """Who belongs together, from the first part alone; one group where the arms are the same for all."""
    n_agents, n_arms = values.shape[1:]
    if not evidence.sameness.differs:
        return np.zeros(n_agents, dtype=np.int64), (tuple(range(n_agents)),)
    rounds = len(values)
    agent = np.broadcast_to(np.arange(n_agents, dtype=np.int32)[None, :, None], values.shape).ravel()
    arm = np.broadcast_to(np.arange(n_arms, dtype=np.int32), values.shape).ravel()
    block = np.repeat(np.arange(rounds) * min(BLOCKS, rounds) // rounds, n_agents * n_arms)
    cell = agent.astype(np.int64) * n_arms + arm
    tame = moved_in_cells(values.ravel(), cell, n_agents * n_arms)
    errors = cell_means(values.ravel(), cell, n_agents * n_arms)[1].reshape(n_agents, n_arms)
    sums, n = folded(table.log.sign * tame, agent, arm, block, (n_agents, n_arms))
    groups, _ = group_agents(sums, n, errors)
    group_of = np.zeros(n_agents, dtype=np.int64)
    for number, group in enumerate(groups):
        group_of[list(group)] = number
    return group_of, groups
