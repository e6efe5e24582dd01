"""The configuration of a node: its id and neighbours, its games, its limits; made from a mesh file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np

from rumormill.arms.base import Moments
from rumormill.errors import InputError
from rumormill.live.core.signatures import Signer
from rumormill.mesh.file import GamePart, Limits, Mesh
from rumormill.policies import Agent, Prior, Seat
from rumormill.policies.centralized import LeaderPart
from rumormill.policies.decentralized import CliquePart
from rumormill.policies.message_passing_policy import HopPart
from rumormill.text import nearest

# No decision number exceeds this. A trimmed mean drops samples that cannot be trimmed before it.
LAST_DECISION = 1 << 40


@dataclass(frozen=True, kw_only=True)
class GameConfig:
    """The configuration of one game on one node."""

    name: str
    n_arms: int
    gamma: int
    fingerprint: str
    """Neighbours exchange a game only if their fingerprints are equal."""
    make_agent: Callable[[], Agent]
    arms: tuple[str, ...] = ()
    """Their names: in another revision of the game, what was learned of those that stay is kept."""
    kind: str = ""
    """Objective and kind of policy: games of one name that differ in it have nothing in common."""
    leader: int | None = None
    """The node whose newest decision is copied; None for agents that decide for themselves."""
    patience: float = 30.0
    """Seconds without items of the leader after which a follower decides for itself."""
    reach: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """For every member the nodes within γ hops; bounds the samples that its rows may report."""
    moments: Moments | None = None
    """Moment bounds of all arms, for verdicts."""
    offset: float = 0.0
    """What the node takes off its own rewards before it learns from them and publishes them."""
    scale: float = 1.0
    """What it divides them by then."""
    propensities: bool = False
    """Whether the probability of every choice is worked out and recorded."""
    classes: int = 0
    """Request classes that are kept at most; 0: the game has none."""
    of_class: Callable[[str, Prior | None], GameConfig] | None = None
    """The configuration of a class by its full name, with the prior that it begins with."""


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    """The configuration of one node."""

    node: int
    mesh: str
    epoch: int
    """Drawn when a node starts with an empty disk; larger each time."""
    neighbours: frozenset[int]
    members: frozenset[int]
    games: tuple[GameConfig, ...]
    limits: Limits
    revoked: frozenset[str] = frozenset()
    """Serial numbers of certificates that are refused."""
    signer: Signer | None = None
    """None in a mesh without signatures."""


def node_config(mesh: Mesh, name: str, epoch: int, *, signer: Signer | None = None) -> NodeConfig:
    """The configuration of the node `name`; a mesh with signatures needs a `signer`."""
    if name not in mesh.ids:
        raise InputError(f"{mesh.path} has no node {name!r}{nearest(name, mesh.ids)}")
    return NodeConfig(
        node=mesh.ids[name],
        mesh=mesh.file.name,
        epoch=epoch,
        neighbours=frozenset(mesh.ids[other] for other in mesh.links[name]),
        members=frozenset(mesh.names),
        games=tuple(_game_config(mesh, game, name) for game in mesh.file.games),
        limits=mesh.file.limits,
        revoked=mesh.revoked,
        signer=signer,
    )


def _game_config(
    mesh: Mesh, game: GamePart, name: str, of: str | None = None, prior: Prior | None = None
) -> GameConfig:
    """Of a game, or of one of its classes, whose full name is `of`."""
    gamma, part = hop_budget(mesh, game), plan_part(mesh, game, name)
    offset, scale = mesh.level(game, name)
    takes = prior is None or mesh.policies[game.name].takes_prior
    return GameConfig(
        name=of or game.name,
        n_arms=len(game.arms),
        gamma=gamma,
        fingerprint=fingerprint(mesh, game),
        make_agent=_maker(mesh, game, name, part, prior if takes else None),
        arms=tuple(game.arms),
        kind=fingerprint(mesh, game, of_arms=False),
        leader=part.leader if isinstance(part, LeaderPart) else None,
        patience=game.patience,
        reach={mesh.ids[other]: within(mesh, other, gamma) for other in mesh.ids},
        moments=mesh.moments(game),
        offset=offset,
        scale=scale,
        propensities=game.propensities,
        classes=0 if of else game.classes or 0,
        of_class=None if of else partial(_game_config, mesh, game, name),
    )


def _maker(mesh: Mesh, game: GamePart, name: str, part: Any, prior: Prior | None) -> Callable[[], Agent]:
    policy, seat = mesh.live_policy(game), seat_of(mesh, game, name, part, prior)
    return lambda: policy.agent(seat)


def seat_of(mesh: Mesh, game: GamePart, name: str, part: Any, prior: Prior | None = None) -> Seat:
    """The seat of a node's agent; the prior is that of the file if none is given."""
    node = mesh.ids[name]
    return Seat(
        agent=node,
        n_arms=len(game.arms),
        neighbours=tuple(mesh.ids[other] for other in mesh.links[name]),
        rng=np.random.default_rng(node),
        moments=mesh.moments(game),
        horizon=LAST_DECISION,
        n_agents=len(mesh.ids),
        prior=prior or mesh.prior(game, name),
        part=part,
    )


def fingerprint(mesh: Mesh, game: GamePart, *, of_arms: bool = True) -> str:
    """Neighbours exchange a game only if its arms, objective and kind of policy agree."""
    hashed = [
        game.arms if of_arms else [],
        game.objective,
        game.policy.get("type", ""),
        *["signed"] * mesh.file.signed,
    ]
    return hashlib.blake2b(msgspec.json.encode(hashed), digest_size=8).hexdigest()


def hop_budget(mesh: Mesh, game: GamePart) -> int:
    """γ of a game: from its plan, else from its policy."""
    if game.name in mesh.file.plans:
        return mesh.file.plans[game.name].gamma
    given = game.policy.get("gamma", 0 if game.policy.get("type") == "robust" else None)
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    raise InputError(
        f"{mesh.path}: game {game.name!r} has no plan: run `rumormill mesh plan --mesh {mesh.path}`"
    )


def plan_part(mesh: Mesh, game: GamePart, name: str) -> Any:
    """The part of a game's plan that the agent of one node needs."""
    gamma, plan = hop_budget(mesh, game), mesh.file.plans.get(game.name)
    group = len(within(mesh, name, gamma))
    if plan is not None and plan.leader is not None:
        if name not in plan.leader:
            raise InputError(
                f"{mesh.path}: the plan of game {game.name!r} has no leader for {name!r}: plan again"
            )
        distance = (plan.distance or {}).get(name, 0)
        return LeaderPart(gamma, mesh.ids[plan.leader[name]], distance, group=group)
    if plan is not None and plan.cliques is not None:
        mine = next((clique for clique in plan.cliques if name in clique), [name])
        return CliquePart(gamma, frozenset(mesh.ids[each] for each in mine), group=group)
    return HopPart(gamma, group=group)


def within(mesh: Mesh, name: str, hops: int) -> frozenset[int]:
    """The ids of a node and of all nodes within so many hops."""
    seen, rim = {name}, {name}
    for _ in range(hops):
        rim = {other for each in rim for other in mesh.links[each]} - seen
        seen |= rim
    return frozenset(mesh.ids[each] for each in seen)
