"""Advice on a log: test the model, replay settings on the first part, report on the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.advice.choice import QUICK_ESTIMATORS, Choice, choose, explore
from rumormill.advice.evidence import Evidence, examine
from rumormill.advice.log import Log
from rumormill.advice.replays import LOGS, TIMES, Replayed, Stage, spread_out
from rumormill.advice.robust import cell_means, moved_in, moved_in_cells, robust_mean
from rumormill.advice.sameness import BLOCKS, folded, group_agents
from rumormill.advice.settings import IN_GROUPS, TOGETHER, Setting, has_lemma
from rumormill.advice.table import Table, borrowed, lay_out, unsupported, without_agents
from rumormill.arms.objective import sign_of
from rumormill.errors import DataError, InputError
from rumormill.graphs import Network
from rumormill.seeds import Role, root_seed, stream_seed
from rumormill.text import nearest, plural

Array = NDArray[np.float64]

# Chosen on the first part, reported on the rest.
FIRST = 0.6
# Where fewer agents than this are left that can be replayed, there is nothing to advise on.
LEAST_LEFT = 0.5


@dataclass(frozen=True)
class Line:
    """What one way of choosing came to on the rest of the log, in the user's unit."""

    name: str
    mean: float
    low: float
    high: float
    median: float
    p90: float

    def row(self) -> dict[str, Any]:
        return {
            "way": self.name,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "median": self.median,
            "p90": self.p90,
        }


@dataclass(frozen=True)
class LogAdvice:
    """The recommendation with everything it rests on."""

    log: Log
    table: Table
    network: Network
    evidence: Evidence
    choice: Choice
    lines: tuple[Line, ...]
    groups: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]
    rounds: tuple[int, int]
    """Rounds of the first part and of the rest."""
    tried: int
    seed: int
    losses: dict[Setting, Replayed]

    @property
    def chosen(self) -> Setting:
        return self.choice.chosen.setting

    def rows(self) -> list[dict[str, Any]]:
        """Every setting of the final, least loss first."""
        return [
            {
                "setting": str(each.setting),
                "policy": each.setting.policy,
                "gamma": each.setting.gamma,
                "estimator": each.setting.estimator,
                "zeta": each.setting.zeta,
                "network": each.setting.network,
                "restart": each.setting.restart,
                "loss": each.mean,
                "worse": self.choice.excess[each.setting].estimate,
                "worse_low": self.choice.excess[each.setting].low,
                "worse_high": self.choice.excess[each.setting].high,
                "messages_per_round": each.messages,
                "bytes_per_round": each.wire_bytes,
                "recommended": each.setting == self.chosen,
                "lemma": each.setting.covered(self.evidence.moments),
            }
            for each in self.choice.finals
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        from rumormill.advice.words import findings, headline, recommendation

        log, choice = self.log, self.choice
        (mine,) = [row for row in self.rows() if row["recommended"]]
        return {
            "source": log.name,
            "objective": log.objective,
            "unit": log.unit,
            "log": {
                "values": len(log.value),
                "agents": log.n_agents if log.agents else None,
                "arms": list(log.arms),
                "recorded": self.table.kind,
                "rounds": self.table.rounds,
                "first_part": self.rounds[0],
                "rest": self.rounds[1],
            },
            "network": {"agents": self.network.n_agents, "links": self.network.n_edges},
            "model": self.evidence.as_dict(log.arms, log.agents),
            "findings": [vars(finding) for finding in findings(self)],
            "recommendation": {**mine, "code": self.code, "cooperate": self.chosen.cooperates},
            "on_the_rest": {
                "lines": [line.row() for line in self.lines],
                "loss_above_alone": vars(choice.against_alone),
                "paid_above_alone": vars(choice.paid_against_alone),
                "rejected": [str(setting) for setting in choice.rejected],
            },
            "headline": headline(self),
            "advice": recommendation(self),
            "notes": list(self.notes),
            "settings": self.rows(),
            "tried": self.tried,
            "seed": self.seed,
        }

    @property
    def code(self) -> str:
        """The recommended policy, to be copied into a program."""
        cls = catalogue.find("policy", self.chosen.policy).__name__
        given = self.chosen.settings(self.evidence.moments).items()
        return f"rm.{cls}({', '.join(f'{name}={code_of(value)}' for name, value in given)})"


def advise_log(
    log: Log,
    network: Network | None = None,
    *,
    seed: int = 0,
    estimators: Sequence[str] = QUICK_ESTIMATORS,
    jobs: int | None = None,
    on_play: Callable[[int], None] = lambda plays: None,
) -> LogAdvice:
    """Recommend a setting for the agents and arms of a log; the same seed gives the same advice."""
    for name in estimators:
        if name not in catalogue.ESTIMATORS:
            raise InputError(f"estimator {name!r} is unknown{nearest(name, catalogue.ESTIMATORS)}")
    root = root_seed(seed)
    rng = np.random.default_rng(stream_seed(root, Role.BANDIT))
    table = lay_out(log, rng)
    evidence = examine(table, rng)
    if not evidence.light and not any(has_lemma(name) for name in estimators):
        raise InputError(
            "the empirical mean alone cannot be recommended where variances may be infinite: "
            "give another estimator too"
        )
    table, evidence, notes = _supported(table, evidence, rng)
    network = _network(table, network)
    values = _for_agents(table, network.n_agents, rng)
    cut = round(FIRST * table.rounds)
    group_of, groups = _groups_of_first_part(table, evidence, values[:cut])
    networks = {TOGETHER: network}
    if len(groups) > 1:
        networks[IN_GROUPS] = restricted(network, group_of)
    drifts = evidence.drift.drifts

    counts = table.recorded.sum(axis=0) if table.log.agents is not None else None

    def stage(part: Array, number: int, count_from: int = 0) -> Stage:
        return Stage(
            part,
            table.log.objective,
            networks,
            evidence.moments,
            group_of,
            drifts=drifts,
            count_from=count_from,
            recorded=None if counts is None else counts * (len(part) / table.rounds),
            seed=stream_seed(root, number),
            jobs=jobs,
            on_play=on_play,
        )

    if drifts:
        # A part would not show how a setting gets over a change: the whole is played, and the rest counts.
        first, rest = stage(values, 1), stage(values, 2, cut)
        notes.append(
            "The log drifts: settings were compared on all of it, since a part would not show changes."
        )
    else:
        first, rest = stage(values[:cut], 1), stage(values[cut:], 2)
    finals = explore(first, list(dict.fromkeys(estimators)), evidence.light, drifts)
    choice = choose(first, rest, finals, best_differs=evidence.sameness.best_differs)
    return LogAdvice(
        table.log,
        table,
        network,
        evidence,
        choice,
        tuple(_lines(table, first, rest, choice, cut)),
        evidence.sameness.groups if evidence.sameness.tested else (tuple(range(network.n_agents)),),
        (*table.log.notes, *table.notes, *notes),
        (cut, table.rounds - cut),
        len(first.played),
        seed,
        first.played,
    )


def code_of(value: Any) -> str:
    """A setting as Python writes it, without the digits that nobody would type."""
    if dataclasses.is_dataclass(value):
        given = [
            f"{field.name}={code_of(getattr(value, field.name))}"
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != field.default
        ]
        return f"rm.{type(value).__name__}({', '.join(given)})"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def restricted(network: Network, group_of: NDArray[np.int64]) -> Network:
    """The network without its links between groups."""
    graph = nx.Graph()
    graph.add_nodes_from(range(network.n_agents))
    for v in range(network.n_agents):
        graph.add_edges_from((v, int(w)) for w in network.neighbours(v) if group_of[v] == group_of[w])
    return Network(graph)


def _supported(
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


def _network(table: Table, network: Network | None) -> Network:
    if network is None:
        if table.log.agents is None:
            raise InputError(
                "the log does not say who measured what, so it has no agents: add for example --network "
                '"erdos_renyi n=50 p=0.1", or name the column with --agent-column'
            )
        return Network.complete(table.n_agents) if table.n_agents > 1 else Network(nx.empty_graph(1))
    if table.log.agents is not None and network.n_agents != table.n_agents:
        raise InputError(
            f"the network has {plural(network.n_agents, 'agent')}, the log {table.n_agents}: give a network "
            f"of {table.n_agents}, in the order {', '.join((table.log.agents or ())[:3])}, ..."
        )
    return network


def _for_agents(table: Table, n_agents: int, rng: np.random.Generator) -> Array:
    """The table for so many agents; a log without agents is read by each from another place on."""
    if table.log.agents is not None:
        return table.values
    stream, cut = table.values[:, 0], round(FIRST * table.rounds)
    parts = []
    for part in (stream[:cut], stream[cut:]):
        shifts = rng.integers(len(part), size=n_agents)
        parts.append(part[(np.arange(len(part))[:, None] + shifts) % len(part)])
    return np.ascontiguousarray(np.concatenate(parts))


def _groups_of_first_part(
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


# --- lines to compare with ------------------------------------------------------------------------------


def _lines(table: Table, first: Stage, rest: Stage, choice: Choice, cut: int) -> list[Line]:
    """The chosen setting, and the four ways it is to be measured against, on the rest of the log."""
    sign = sign_of(rest.objective)
    n_agents, n_arms = first.values.shape[1:]
    seen = first.values[:cut]
    known = np.array([[robust_mean(seen[:, v, k])[0] for k in range(n_arms)] for v in range(n_agents)])
    common = int((sign * np.array([robust_mean(seen[:, :, k].ravel())[0] for k in range(n_arms)])).argmax())
    own = (sign * known).argmax(axis=1)
    lines = [
        _replayed_line("recommended", rest, choice.on_rest[choice.chosen.setting]),
        _replayed_line("agents alone", rest, choice.on_rest[choice.alone.setting]),
        _fixed_line(f"always {table.log.arms[common]}, the best common arm", rest, np.full(n_agents, common)),
        _fixed_line("always the own best arm", rest, own),
    ]
    if table.kind != "full":
        log = table.log
        values = log.value[table.slot >= cut]
        mean, error = robust_mean(values)
        lines.append(_line("what the log itself did", values, mean, mean - 2 * error, mean + 2 * error))
    return lines


def _replayed_line(name: str, rest: Stage, played: Replayed) -> Line:
    start = rest.count_from
    values = np.take_along_axis(rest.values[start:], played.actions[start:, :, None], axis=2).ravel()
    return _line(name, values, *_band(values, played.paid))


def _fixed_line(name: str, rest: Stage, arms: NDArray[np.int64]) -> Line:
    agents = np.arange(len(arms))
    paid = np.array(
        [
            [
                moved_in(rest.log(number + 1, time)[0][rest.count_from :, agents, arms].ravel()).mean()
                for time in range(TIMES)
            ]
            for number in range(LOGS)
        ]
    )
    values = rest.values[rest.count_from :, agents, arms].ravel()
    return _line(name, values, *_band(values, paid))


def _band(values: Array, paid: Array) -> tuple[float, float, float]:
    """The mean of the recorded order, and the band of the logs that might have been around it."""
    middle, around = float(moved_in(values).mean()), spread_out(paid)
    return middle, middle + around.low - around.estimate, middle + around.high - around.estimate


def _line(name: str, values: Array, mean: float, low: float, high: float) -> Line:
    return Line(name, mean, low, high, float(np.median(values)), float(np.quantile(values, 0.9)))
