"""Advice as a mesh file, and the setting of a mesh file as advice compares it.

The file holds one game (arms, objective, unit, policy and settings, moments, prior) and the agents of the
log as nodes; links between groups are left out. `rumormill node`, `rumormill simulate --mesh` and specs
read it.

Recheck: the candidate of a mesh file against fresh advice, on a new log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rumormill.advice.advise import advise
from rumormill.advice.problem import DEFAULT, LABELS, LEVELS, Candidate, for_nodes
from rumormill.advice.reading.log import Log
from rumormill.advice.replay import Levels, LogProblem
from rumormill.advice.report_text import LogAdvice, compared
from rumormill.advice.search import MARGIN
from rumormill.arms import Moments
from rumormill.errors import DataError, InputError
from rumormill.graphs import Network
from rumormill.mesh.file import GamePart, Mesh, MeshFile, NodePart, PriorPart, read_mesh
from rumormill.seeds import root_seed, stream_seed
from rumormill.stats import Interval
from rumormill.text import shown

# The default port of a node.
PORT = 7400


@dataclass(frozen=True)
class MeshSetting:
    """The first game of a mesh file, ready to be simulated."""

    mesh: Mesh
    game: GamePart
    network: Network
    setting: Candidate
    moments: Moments


def mesh_of(advice: LogAdvice) -> MeshFile:
    """The recommended setting that learns as a mesh file, with its prior; no links between groups.

    A log has no addresses: each agent gets its name and port 7400.
    """
    setting, log = advice.setting, advice.log
    names = advice.names
    network = advice.networks[setting.network]
    moments = advice.model.moments
    policy: dict[str, Any] = {"type": setting.policy}
    for name, value in setting.settings(moments).items():
        if name != "moments":
            policy[name] = setting.estimator if name == "estimator" else value
    game = GamePart(
        name=log.name,
        arms=list(log.arms),
        objective=log.objective,
        unit=log.unit,
        policy=policy,
        moments={"eps": moments.eps, "u": moments.u, "rho": moments.rho},
        prior=_prior_part(advice, names),
        offsets=advice.levels.get("offsets", {}),
        scales=advice.levels.get("scales", {}),
    )
    nodes = [
        NodePart(
            name=names[v],
            id=v,
            address=f"{names[v]}:{PORT}",
            neighbours=[names[int(w)] for w in network.neighbours(v)] if setting.cooperates else [],
        )
        for v in range(len(names))
    ]
    return MeshFile(name=log.name, games=[game], nodes=nodes)


def _prior_part(advice: LogAdvice, names: Sequence[str]) -> PriorPart | None:
    """What every node knows of the arms, in the unit of the log."""
    if advice.prior is None:
        return None
    mean, n = advice.log.sign * np.asarray(advice.prior.mean), np.asarray(advice.prior.n)
    rows = [[float(f"{value:.8g}") for value in row] for row in mean]
    nodes = {name: PriorPart(mean=rows[v], n=n[v].tolist()) for v, name in enumerate(names)}
    return PriorPart(arms=list(advice.log.arms), cap=advice.prior.cap, nodes=nodes)


def read_setting(path: str | Path) -> MeshSetting:
    """The setting of the first game of a mesh file, which needs moments and zeta."""
    mesh = read_mesh(path)
    game, where = mesh.file.games[0], f"{path}: games[0]"
    moments = mesh.moments(game)
    if moments is None:
        raise DataError(f"{where}.moments: missing; `rumormill advise --write` gives them")
    if "zeta" not in game.policy and game.policy["type"] != DEFAULT:
        raise DataError(f"{where}.policy.zeta: missing; `rumormill advise --write` gives it")
    return MeshSetting(mesh, game, mesh.network(), _setting(game, f"{where}.policy"), moments)


def _setting(game: GamePart, where: str) -> Candidate:
    policy = game.policy
    estimator, gamma = policy.get("estimator", "trimmed"), policy.get("gamma", 0)
    if not isinstance(estimator, str):
        raise InputError(f"{where}.estimator = {shown(estimator)} is not allowed here: a name")
    if not isinstance(gamma, int):
        raise InputError(f"{where}.gamma = {shown(gamma)} is not allowed here: a whole number")
    if policy["type"] not in LABELS:
        raise InputError(f"{where}.type = {shown(policy['type'])} is not allowed here: {', '.join(LABELS)}")
    made = Candidate(policy["type"], gamma, levels=tuple(key for key in LEVELS if getattr(game, key)))
    if policy["type"] == DEFAULT:
        return made
    return replace(made, estimator=estimator, zeta=float(policy["zeta"]))


@dataclass(frozen=True)
class Recheck:
    """Loss of the old candidate against the new one, after the first part of the new log."""

    advice: LogAdvice
    old: Candidate
    excess: Interval
    """Loss per request of the old candidate above that of the new one."""
    margin: float

    @property
    def still_right(self) -> bool:
        """Whether the interval of the excess starts below the margin."""
        return self.excess.low <= self.margin

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        than = compared(self.advice, self.excess)
        right = "still right: keep it" if self.still_right else "no longer right"
        return (
            f"The setting in the file is {right}. It loses {than} per request than what would be recommended "
            "now."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "still_right": self.still_right,
            "old": str(self.old),
            "new": str(self.advice.setting),
            "excess": {"estimate": self.excess.estimate, "low": self.excess.low, "high": self.excess.high},
            "sentence": self.sentence,
        }


def recheck(
    given: MeshSetting,
    log: Log,
    *,
    seed: int = 0,
    jobs: int | None = None,
    on_play: Callable[[int], None] = lambda plays: None,
) -> Recheck:
    """Play the candidate of the mesh on its own network, and fresh advice, after the first part of the log.

    Its offsets and scales are its own; for a prior it gets what the first part knows: its own is old.
    """
    if sorted(log.arms) != sorted(given.game.arms):
        raise DataError(
            f"the log has the arms {', '.join(log.arms)}, the mesh {', '.join(given.game.arms)}: they must "
            "agree"
        )
    log, network = _in_mesh_order(given, log)
    advice = advise(log, None, seed=seed, jobs=jobs, estimators=for_nodes(), on_play=on_play)
    table = advice.table
    if table.n_agents != network.n_agents:
        raise DataError("some nodes of the mesh have too few values in the log to be replayed")
    networks, cut = {"old": network, **advice.networks}, advice.rounds[0]
    levels = (given.game.offsets, 0.0), (given.game.scales, 1.0)
    own = [[values.get(node.name, usual) for node in given.mesh.file.nodes] for values, usual in levels]

    def problem(moments: Moments, levels: Levels | None = None) -> LogProblem:
        """Two problems with the same seed have the same resamples, so outcomes are paired."""
        known = replace(advice.known.part(slice(None, cut)), moments=moments, known_levels=levels)
        return LogProblem(
            table.values[cut:],
            log.objective,
            networks,
            moments,
            advice.model.homogeneity.group_of,
            drifts=advice.model.drift.drifts,
            remembers=advice.model.dependence.remembers,
            recorded=table.recorded[cut:].sum(axis=0),
            known=known,
            length=table.rounds,
            seed=stream_seed(root_seed(seed), 3),
            jobs=jobs,
            on_play=on_play,
        )

    then = problem(given.moments, Levels(*np.array(own)))
    today = problem(advice.model.moments)
    (was,) = then.play([replace(given.setting, network="old", warm=given.game.prior is not None)])
    now, lone = today.play([advice.setting, advice.start.cold.candidate])
    margin = MARGIN * max(lone.mean, abs(float(now.paid.mean())))  # to change a mesh must be worth 5 %
    return Recheck(advice, given.setting, today.excess(was, now), margin)


def _in_mesh_order(given: MeshSetting, log: Log) -> tuple[Log, Network]:
    """The log with agents and arms in the order of the mesh; all nodes must be in it."""
    names = [node.name for node in given.mesh.file.nodes]
    if log.agents is None:
        raise DataError("the log does not say who measured what: name the column with --agent-column")
    lost = sorted(set(names) - set(log.agents))
    if lost:
        raise DataError(f"the log has nothing of node {lost[0]!r}, which the mesh names")
    number = {name: v for v, name in enumerate(names)}
    places = np.array([number.get(name, -1) for name in log.agents], dtype=np.int32)
    known = places[log.agent] >= 0
    found = log.taken(known)
    arms = given.game.arms
    order = np.array([arms.index(name) for name in log.arms], dtype=np.int32)
    found = replace(found, arms=tuple(arms), arm=order[found.arm])
    return replace(found, agents=tuple(names), agent=places[found.agent]), given.network
