"""One cell of an experiment: all policies of a sweep point on the rewards of one trial."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.engine import Contender, Trial, play_trial, prepare
from rumormill.engine.result import resolve_checkpoints
from rumormill.experiments.run.executors import Tick
from rumormill.experiments.run.store import Cell
from rumormill.experiments.spec import schema
from rumormill.experiments.spec.building import (
    build_bandit,
    build_network,
    build_policy,
    is_fresh,
    trial_seed,
)
from rumormill.experiments.spec.reading import Point, points
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network
from rumormill.policies import CentralizedMPUCB, ConsensusUCB, DecentralizedMPUCB, Policy

if TYPE_CHECKING:
    import polars as pl

QUANTILES = {
    "agent_min": 0.0,
    "agent_q10": 0.1,
    "agent_q25": 0.25,
    "agent_q50": 0.5,
    "agent_q75": 0.75,
    "agent_q90": 0.9,
    "agent_max": 1.0,
}
# Networks kept at hand beyond one per worker: the next sweep points of a trial use them again.
SPARE_NETWORKS = 4


@dataclass(frozen=True)
class Outcome:
    """What a cell came to. Times are processor seconds of the thread that played it."""

    frame: pl.DataFrame
    regret: dict[str, float]
    kernel_s: float
    prepare_s: float


@dataclass
class Site:
    """A network and the plans (cliques, leaders, weights) worked out on it so far."""

    network: Network
    plans: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    trials: dict[str, Trial] = field(default_factory=dict)
    """Outcomes of policies that an axis leaves as they are: the next points take them from here."""

    def contender(self, form: schema.AnyPolicy, n_arms: int) -> Contender:
        """The policy made ready; what it shares with another one (or another sweep point) is done once."""
        policy = build_policy(form)
        names = ("gamma", "clique_filter", "leaders", "kappa", "epsilon")
        key = (type(form), *(getattr(form, name, None) for name in names))
        if key in self.plans:
            policy = _with_plan(policy, self.plans[key])
        contender = prepare(policy, self.network, n_arms)
        self.plans.setdefault(key, contender.plan)
        return contender


def _with_plan(policy: Policy, plan: Any) -> Policy:
    """The same policy, told what it would otherwise work out again."""
    if isinstance(policy, DecentralizedMPUCB) and plan is not None:
        return dataclasses.replace(policy, cover=plan)
    if isinstance(policy, CentralizedMPUCB):
        return dataclasses.replace(policy, leaders=tuple(np.unique(plan.leader_of).tolist()))
    if isinstance(policy, ConsensusUCB):
        return dataclasses.replace(policy, epsilon=tuple(plan.epsilon.tolist()))
    return policy


class CellPlayer:
    """Plays cells of one spec, from any thread."""

    def __init__(self, spec: Spec, jobs: int) -> None:
        self.spec = spec
        self.points = points(spec)
        self.marks = resolve_checkpoints(spec.size.checkpoints, spec.size.horizon)
        self._jobs, self._room = jobs, jobs + SPARE_NETWORKS
        named = (_game(point.spec, form) for point in self.points for form in point.spec.policies)
        self._repeated = {game for game, count in Counter(named).items() if count > 1}
        self._sites: OrderedDict[tuple[str, int], tuple[threading.Lock, list[Site]]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def cells(self) -> list[Cell]:
        """All cells. Points of a trial stand near each other, so that they find its network ready.

        Workers get different trials at a time: what one point leaves for the next is then there.
        """
        trials = self.spec.size.trials
        return [
            Cell(point.index, trial)
            for first in range(0, trials, self._jobs)
            for point in self.points
            for trial in range(first, min(first + self._jobs, trials))
        ]

    def play(self, cell: Cell, tick: Tick) -> Outcome:
        """All policies of the point on the very same rewards."""
        point = self.points[cell.point]
        spec = point.spec
        start = time.thread_time()
        bandit = build_bandit(spec, cell.trial)
        games = [_game(spec, form) for form in spec.policies]
        site, contenders = self.prepare(point, cell.trial)
        known = {game: site.trials[game] for game in games if game in site.trials}
        missing = {game: c for game, c in zip(games, contenders, strict=True) if game not in known}
        tick(0)
        ready = time.thread_time()
        if missing:
            deliveries = float(np.mean([_deliveries(contender) for contender in missing.values()]))
            played = play_trial(
                list(missing.values()),
                bandit,
                spec.size.horizon,
                trial_seed(spec, cell.trial),
                self.marks,
                on_rounds=lambda rounds: tick(rounds * deliveries),
            )
            known.update(zip(missing, played, strict=True))
            if is_fresh(spec.network):  # else the network's place is shared by all trials
                site.trials.update({game: known[game] for game in missing if game in self._repeated})
        done = time.thread_time()
        trials = [known[game] for game in games]
        regret = {
            label: float(trial.agent_regret[-1].sum())
            for label, trial in zip(spec.labels, trials, strict=True)
        }
        return Outcome(self._table(point, cell.trial, trials), regret, done - ready, ready - start)

    def prepare(self, point: Point, trial: int) -> tuple[Site, list[Contender]]:
        """Network and plans of a trial; another point with the same network finds them done."""
        number = trial if is_fresh(point.spec.network) else 0
        key = (repr(point.spec.network), number)
        with self._lock:
            lock, made = self._sites.setdefault(key, (threading.Lock(), []))
            self._sites.move_to_end(key)
            while len(self._sites) > self._room:
                self._sites.popitem(last=False)
        with lock:
            if not made:
                made.append(Site(build_network(point.spec, number)))
            return made[0], [made[0].contender(form, point.spec.n_arms) for form in point.spec.policies]

    def _table(self, point: Point, trial: int, trials: list[Trial]) -> pl.DataFrame:
        import polars as pl

        types = axis_types(self.spec)
        frames = []
        for label, one in zip(point.spec.labels, trials, strict=True):
            spread = np.quantile(one.agent_regret, list(QUANTILES.values()), axis=1)
            columns: dict[str, Any] = {
                "experiment": pl.repeat(self.spec.name, len(self.marks), eager=True),
                "policy": pl.repeat(label, len(self.marks), eager=True),
            }
            for axis, value in point.values.items():
                kind = types[axis]
                columns[axis] = pl.repeat(kind(value), len(self.marks), dtype=column_type(kind), eager=True)
            columns["trial"] = np.full(len(self.marks), trial, dtype=np.int64)
            columns["t"] = self.marks
            columns["regret"] = one.agent_regret.sum(axis=1)
            columns.update(zip(QUANTILES, spread, strict=True))
            columns["messages"] = one.messages.astype(np.int64)
            columns["wire_bytes"] = one.wire_bytes.astype(np.int64)
            frames.append(pl.DataFrame(columns))
        return pl.concat(frames)

    def describe_networks(self) -> dict[str, dict[str, Any]]:
        """The network of trial 0 at every point: enough to draw it with its cliques and leaders."""
        seen: dict[str, str] = {}
        described: dict[str, dict[str, Any]] = {}
        for point in self.points:
            _, contenders = self.prepare(point, 0)
            network = contenders[0].network
            about: dict[str, Any] = {
                "n_agents": network.n_agents,
                "n_edges": network.n_edges,
                "diameter": network.diameter,
            }
            for contender in contenders:
                policy, plan = contender.policy, contender.plan
                if hasattr(policy, "gamma"):
                    about.setdefault("gamma", network.resolve_gamma(policy.gamma))
                if isinstance(policy, DecentralizedMPUCB) and plan is not None:
                    about.setdefault("cliques", [[int(v) for v in group] for group in plan])
                if isinstance(policy, CentralizedMPUCB):
                    about.setdefault("leaders", np.unique(plan.leader_of).tolist())
            key = repr(point.spec.network)
            if key in seen:
                about["edges_of"] = seen[key]
            else:
                seen[key] = str(point.index)
                about["edges"] = network.edges().tolist()
            described[str(point.index)] = about
        return described


def _game(spec: Spec, form: schema.AnyPolicy) -> str:
    """Everything that decides a policy's outcome in a trial, as a key."""
    return repr((spec.network, spec.arms, form))


def axis_types(spec: Spec) -> dict[str, type]:
    """The type of every sweep column: whole numbers, numbers, true/false, or words for a mixture."""
    types: dict[str, type] = {}
    for axis, values in spec.sweep.items():
        kinds = {type(value) for value in values}
        if len(kinds) == 1:
            types[axis] = kinds.pop()
        else:
            types[axis] = float if kinds == {int, float} else str
    return types


def column_type(kind: type) -> Any:
    """The column that holds values of this type."""
    import polars as pl

    return {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}[kind]


def _deliveries(contender: Contender) -> int:
    """Messages that reach an agent, per round."""
    prepared = contender.prepared
    if prepared is None or isinstance(contender.policy, ConsensusUCB):
        return int(contender.network.degrees.sum())
    return len(prepared.hearing.sources) + len(prepared.hearing.learners)
