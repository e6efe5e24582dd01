"""Advice as a mesh file, and the setting of a mesh file as advice compares it.

The file holds one game (arms, objective, unit, policy and settings, moments, prior) and the agents of the
log as nodes; links between groups are left out. `rumormill node`, `rumormill simulate --mesh` and specs
read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rumormill.advice.problem import LABELS, Candidate
from rumormill.advice.report_text import LogAdvice
from rumormill.arms import Moments
from rumormill.errors import DataError, InputError
from rumormill.graphs import Network
from rumormill.mesh.file import GamePart, Mesh, MeshFile, NodePart, PriorPart, read_mesh
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
    names = log.agents or tuple(f"node{v}" for v in range(advice.network.n_agents))
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
    return PriorPart(arms=list(advice.log.arms), nodes=nodes)


def read_setting(path: str | Path) -> MeshSetting:
    """The setting of the first game of a mesh file, which needs moments and zeta."""
    mesh = read_mesh(path)
    game, where = mesh.file.games[0], f"{path}: games[0]"
    moments = mesh.moments(game)
    if moments is None:
        raise DataError(f"{where}.moments: missing; `rumormill advise --write` gives them")
    if "zeta" not in game.policy:
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
    return Candidate(str(policy["type"]), gamma, estimator, float(policy["zeta"]))
