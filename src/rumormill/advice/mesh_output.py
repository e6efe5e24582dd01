"""A file to act on: what was recommended, for whom, and how to come back with new logs.

The file names games (arms, objective, unit, policy with its settings, moments) and nodes with their
neighbours; links between groups are left out. It is the mesh file of live nodes, who read more in it than is
needed here; `rumormill simulate --mesh` and specs read it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rumormill import catalogue
from rumormill.advice.advise_log import LogAdvice
from rumormill.advice.settings import LABELS, Setting
from rumormill.arms import Moments
from rumormill.arms.objective import Objective
from rumormill.errors import DataError, InputError
from rumormill.graphs import Network
from rumormill.mesh.file import linked_by_name, read_toml
from rumormill.text import one_line, shown
from rumormill.toml import to_toml

# Where a live node is looked for unless somebody says otherwise.
PORT = 7400


class GamePart(msgspec.Struct, frozen=True, kw_only=True):
    """One choice that the nodes face again and again."""

    name: str
    arms: list[str]
    objective: Objective = "maximise"
    unit: str = ""
    policy: dict[str, Any]
    moments: dict[str, float]


class NodePart(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, where it is reached, and whom it is linked to."""

    name: str
    id: int
    address: str
    neighbours: list[str] = []


class Mesh(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    name: str
    revision: int = 1
    games: list[GamePart]
    nodes: list[NodePart]


@dataclass(frozen=True)
class MeshSetting:
    """What a mesh file says about its first game, ready to be played."""

    mesh: Mesh
    game: GamePart
    network: Network
    setting: Setting
    moments: Moments


def mesh_of(advice: LogAdvice) -> Mesh:
    """The recommended setting as a mesh: in groups, links between them are left out.

    A log does not say where its agents are reached: their names stand for that, with a port.
    """
    setting, log = advice.chosen, advice.log
    names = log.agents or tuple(f"node{v}" for v in range(advice.network.n_agents))
    network = advice.networks[setting.network]
    moments = advice.evidence.moments
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
    return Mesh(name=log.name, games=[game], nodes=nodes)


def mesh_toml(mesh: Mesh) -> str:
    """The file."""
    return to_toml(msgspec.to_builtins(mesh))


def read_mesh(path: str | Path) -> MeshSetting:
    """The first game of a mesh file, ready to be played; every mistake named by its key."""
    path = Path(path)
    raw = read_toml(path)
    try:
        mesh = msgspec.convert(raw, Mesh)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {str(error).replace('`', '')}") from None
    if not mesh.games or not mesh.nodes:
        raise DataError(f"{path} names no {'games' if not mesh.games else 'nodes'}: it needs at least one")
    game = mesh.games[0]
    where = f"{path}: games[0].policy"
    catalogue.make("policy", game.policy, where=where, folder=path.parent)
    if "zeta" not in game.policy:
        raise DataError(f"{where} needs zeta, as `advise --write` gives it")
    try:
        moments = Moments(**game.moments)
    except (InputError, TypeError) as error:
        raise DataError(f"{path}: games[0].moments: {one_line(str(error))}") from None
    return MeshSetting(
        mesh,
        game,
        linked_by_name(path, [(node.name, node.neighbours) for node in mesh.nodes]),
        _setting(game, where),
        moments,
    )


def _setting(game: GamePart, where: str) -> Setting:
    policy = game.policy
    estimator, gamma = policy.get("estimator", "trimmed"), policy.get("gamma", 0)
    if not isinstance(estimator, str):
        raise InputError(f"{where}.estimator = {shown(estimator)} is not allowed here: a name")
    if not isinstance(gamma, int):
        raise InputError(f"{where}.gamma = {shown(gamma)} is not allowed here: a whole number")
    if policy["type"] not in LABELS:
        raise InputError(f"{where}.type = {shown(policy['type'])} is not allowed here: {', '.join(LABELS)}")
    return Setting(str(policy["type"]), gamma, estimator, float(policy["zeta"]))
