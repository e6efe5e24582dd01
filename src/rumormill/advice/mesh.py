"""A file to act on: what was recommended, for whom, and how to come back with new logs.

The file names games (arms, objective, unit, policy with its settings), nodes with their neighbours, and the
groups in which to cooperate. `rumormill simulate --mesh`, a spec and a live node read the same file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rumormill import catalogue
from rumormill.advice.advise_log import LogAdvice
from rumormill.advice.grounds import restricted
from rumormill.advice.settings import IN_GROUPS, TOGETHER, Setting
from rumormill.arms import Moments
from rumormill.arms.objective import Objective
from rumormill.errors import DataError, InputError
from rumormill.experiments.spec.toml import to_toml
from rumormill.graphs import Network
from rumormill.graphs.meshfile import linked_by_name, read_toml
from rumormill.policies import Policy
from rumormill.text import shown


class GamePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One choice that the nodes face again and again."""

    name: str
    arms: list[str]
    objective: Objective
    unit: str = ""
    policy: dict[str, Any]
    restart: int | None = None
    """Everything is forgotten every so many decisions."""


class NodePart(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, whom it is linked to, and its group; a live node's address stands beside them."""

    name: str
    neighbours: list[str] = []
    group: int = 0


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
    policy: Policy
    network: Network
    setting: Setting
    moments: Moments


def mesh_of(advice: LogAdvice) -> Mesh:
    """The recommended setting as a mesh: in groups, links between them are left out."""
    setting, log = advice.chosen, advice.log
    n_agents = advice.network.n_agents
    names = log.agents or tuple(f"node{v}" for v in range(n_agents))
    network, group_of = advice.network, [0] * n_agents
    if setting.network == IN_GROUPS:
        for number, group in enumerate(advice.groups):
            for v in group:
                group_of[v] = number
        network = restricted(network, advice.evidence.sameness.group_of)
    moments = advice.evidence.moments
    policy: dict[str, Any] = {"type": setting.policy}
    for name, value in setting.settings(moments).items():
        policy[name] = setting.estimator if name == "estimator" else value
    policy["moments"] = {"eps": moments.eps, "u": moments.u, "rho": moments.rho}
    game = GamePart(
        name=log.name,
        arms=list(log.arms),
        objective=log.objective,
        unit=log.unit,
        policy=policy,
        restart=setting.restart,
    )
    nodes = [
        NodePart(
            name=names[v],
            neighbours=[names[int(w)] for w in network.neighbours(v)] if setting.cooperates else [],
            group=group_of[v],
        )
        for v in range(n_agents)
    ]
    return Mesh(name=log.name, games=[game], nodes=nodes)


def mesh_toml(mesh: Mesh) -> str:
    """The file."""
    plain = msgspec.to_builtins(mesh)
    for game in plain["games"]:
        if game["restart"] is None:
            del game["restart"]
    return to_toml(plain)


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
    policy: Policy = catalogue.make(
        "policy", game.policy, where=f"{path}: games[0].policy", folder=path.parent
    )
    given = game.policy.get("moments")
    if not isinstance(given, dict) or "zeta" not in game.policy:
        raise DataError(f"{path}: games[0].policy needs zeta and moments, as `advise --write` gives them")
    return MeshSetting(
        mesh,
        game,
        policy,
        linked_by_name(path, [(node.name, node.neighbours) for node in mesh.nodes]),
        _setting(game),
        Moments(**given),
    )


def _setting(game: GamePart) -> Setting:
    policy = game.policy
    estimator = policy.get("estimator", "trimmed")
    if not isinstance(estimator, str):
        raise InputError(f"games[0].policy.estimator = {shown(estimator)} is not allowed here: a name")
    gamma = policy.get("gamma", 0)
    if not isinstance(gamma, int):
        raise InputError(f"games[0].policy.gamma = {shown(gamma)} is not allowed here: a whole number")
    return Setting(str(policy["type"]), gamma, estimator, float(policy["zeta"]), TOGETHER, game.restart)
