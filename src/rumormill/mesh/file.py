"""The mesh file: games, nodes, links and plans; its one reader and writer."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from rumormill import catalogue
from rumormill.arms import Moments
from rumormill.errors import DataError, InputError
from rumormill.estimators import Estimator
from rumormill.files import write_atomically
from rumormill.graphs.network import Network
from rumormill.graphs.topologies import Topology
from rumormill.policies import Policy
from rumormill.policies.centralized import LeaderPart
from rumormill.policies.decentralized import CliquePart
from rumormill.policies.message_passing_policy import HopPart
from rumormill.text import nearest, one_line
from rumormill.toml import to_toml
from rumormill.validate import refused

KEYS = "keys"
"""The folder of the keys, beside the mesh file."""
MOST_ARMS = 65_534
"""A frame stores an arm in two bytes; one number is left over for items that are no samples."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds on the memory of a node, and its timeouts in seconds."""

    retain: int = 100_000
    """Items of each stream kept for others."""
    window: int = 100_000
    """Decisions for which a late reward is still taken."""
    max_open: int = 10_000
    """Choices without a reward at one time."""
    block: int = 1_024
    """Decision numbers reserved at a time."""
    batch: int = 512
    """Items in one frame."""
    epochs: int = 8
    """Streams of one origin: it may lose its disk that often, less one."""
    have_every: float = 10.0
    skip_after: float = 30.0
    ping_every: float = 1.0
    silence: float = 5.0
    rate: float = 10_000.0
    """Items of one origin taken in per second."""
    frames: float = 10_000.0
    """Frames of one link taken in per second."""


class PlanPart(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What `rumormill mesh plan` worked out for the links: hop budget, cliques, leaders."""

    gamma: int
    cliques: list[list[str]] | None = None
    leader: dict[str, str] | None = None
    distance: dict[str, int] | None = None


class GamePart(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One choice that all nodes face."""

    name: str
    arms: list[str]
    policy: dict[str, Any]
    objective: Literal["minimise", "maximise"] = "maximise"
    unit: str = ""
    moments: dict[str, float] | None = None
    patience: float = 30.0
    ttl: float = 300.0
    restart: int | None = None
    """Forget everything every so many decisions: an advice that a node cannot follow."""


class NodePart(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One node; ids are never given twice. An advice has no ids and addresses: `mesh adopt` gives them."""

    name: str
    id: int = -1
    address: str = ""
    neighbours: list[str] = []
    group: int = 0
    """Those of one group face the same: an advice says so, and links only them."""
    key: str = ""
    """Its public key, with which others check what it signed."""


class MeshFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The whole file."""

    name: str
    revision: int = 1
    signed: bool = False
    """Whether every node signs its observations, so that no other can speak for it."""
    games: list[GamePart] = []
    nodes: list[NodePart] = []
    network: dict[str, Any] | None = None
    """A generator for the links, as in a spec; `rumormill mesh plan` writes what it made."""
    limits: Limits = Limits()
    plans: dict[str, PlanPart] = {}
    """Per game, what `rumormill mesh plan` worked out."""


class Mesh:
    """A mesh file that has been read and found right."""

    def __init__(self, file: MeshFile, path: Path) -> None:
        self.file, self.path = file, path
        self.ids = {node.name: node.id for node in file.nodes}
        self.names = {node.id: node.name for node in file.nodes}
        self.nodes = {node.name: node for node in file.nodes}
        self.games = {game.name: game for game in file.games}
        self._check()
        self.links = self._links()

    def _check(self) -> None:
        file = self.file
        for what, names in (
            ("node", [node.name for node in file.nodes]),
            ("id", [str(node.id) for node in file.nodes]),
            ("game", [game.name for game in file.games]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise self._wrong(f"{what} {sorted(twice)[0]!r} is given twice")
        for node in file.nodes:
            if node.id < 0 or not node.address:
                raise self._wrong(
                    f"node {node.name!r} has no {'id' if node.address else 'address'}: "
                    "`rumormill mesh adopt` completes an advice"
                )
            split_address(node.address, f"{self.path}: node {node.name}")
            for other in node.neighbours:
                if other not in self.ids or other == node.name:
                    raise self._wrong(
                        f"node {node.name!r} has the neighbour {other!r}{nearest(other, self.ids)}"
                    )
            if file.signed and not _is_key(node.key):
                raise self._wrong(
                    f"signed = true, but node {node.name!r} has no key: remove and add it again"
                )
        for game in file.games:
            if len(set(game.arms)) < 2 or len(set(game.arms)) != len(game.arms) or len(game.arms) > MOST_ARMS:
                raise self._wrong(f"game {game.name!r} needs at least two arms, each named once")
            if game.restart is not None:
                raise self._wrong(
                    f"game {game.name!r}: restart = {game.restart} is for replays, a node does not forget: "
                    "take the line out"
                )
        for name, plan in file.plans.items():
            if name not in self.games:
                raise self._wrong(f"plans.{name}: there is no such game{nearest(name, self.games)}")
            self._check_plan(name, plan)

    def _check_plan(self, game: str, plan: PlanPart) -> None:
        named = [name for clique in plan.cliques or [] for name in clique]
        named += [*(plan.leader or {}), *(plan.leader or {}).values(), *(plan.distance or {})]
        for name in named:
            if name not in self.ids:
                raise self._wrong(f"the plan of game {game!r} names {name!r}{nearest(name, self.ids)}")

    def _wrong(self, text: str) -> InputError:
        return InputError(f"{self.path}: {text}")

    def _links(self) -> dict[str, list[str]]:
        """Every node's neighbours; a link given on one side holds for both."""
        linked: dict[str, set[str]] = {name: set() for name in self.ids}
        for node in self.file.nodes:
            for other in node.neighbours:
                linked[node.name].add(other)
                linked[other].add(node.name)
        return {name: sorted(others, key=self.ids.__getitem__) for name, others in linked.items()}

    def within(self, name: str, hops: int) -> frozenset[int]:
        """The ids of a node and of all within so many hops."""
        seen, rim = {name}, {name}
        for _ in range(hops):
            rim = {other for each in rim for other in self.links[each]} - seen
            seen |= rim
        return frozenset(self.ids[each] for each in seen)

    def gamma(self, game: GamePart) -> int:
        """How many hops the observations of a game travel."""
        if game.name in self.file.plans:
            return self.file.plans[game.name].gamma
        given = game.policy.get("gamma", 0 if game.policy.get("type") == "robust" else None)
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        raise self._wrong(f"game {game.name!r} has no plan: run `rumormill mesh plan {self.path}`")

    def fingerprint(self, game: GamePart) -> str:
        """Neighbours exchange a game only if arms, objective and kind of policy agree."""
        told = [game.arms, game.objective, game.policy.get("type", ""), *["signed"] * self.file.signed]
        return hashlib.blake2b(msgspec.json.encode(told), digest_size=8).hexdigest()

    def policy(self, game: GamePart) -> Policy:
        where = f"{self.path}: game {game.name!r}: policy"
        made: Policy = catalogue.make("policy", game.policy, where=where, folder=self.path.parent)
        estimator = getattr(made, "estimator", None)
        if isinstance(estimator, Estimator):
            self._require_endless(game, estimator)
        return made

    def _require_endless(self, game: GamePart, estimator: Estimator) -> None:
        """A node runs for ever: an estimator that cannot is refused."""
        if estimator.needs_horizon:
            raise self._wrong(
                f"game {game.name!r}: the estimator must know the number of rounds, and there is none; take "
                '"trimmed"'
            )
        if not is_bounded(estimator, self.moments(game)):
            raise self._wrong(
                f"game {game.name!r}: the estimator keeps every sample, so memory would grow for ever; take "
                '"trimmed"'
            )
        if estimator.needs_moments and game.moments is None and "moments" not in game.policy:
            raise self._wrong(
                f"game {game.name!r}: the estimator needs moments; give [games.moments], or take "
                'estimator = "self-tuned"'
            )

    def moments(self, game: GamePart) -> Moments | None:
        if game.moments is None:
            return None
        try:
            return Moments(**game.moments)
        except (InputError, TypeError) as error:
            raise self._wrong(f"game {game.name!r}: moments: {one_line(str(error))}") from None

    def part(self, game: GamePart, name: str) -> Any:
        """What the agent of a node has to know of the plan."""
        gamma, plan = self.gamma(game), self.file.plans.get(game.name)
        group = len(self.within(name, gamma))
        if plan is not None and plan.leader is not None:
            distance = (plan.distance or {}).get(name, 0)
            if name not in plan.leader:
                raise self._wrong(f"the plan of game {game.name!r} has no leader for {name!r}: plan again")
            return LeaderPart(gamma, self.ids[plan.leader[name]], distance, group=group)
        if plan is not None and plan.cliques is not None:
            mine = next((clique for clique in plan.cliques if name in clique), [name])
            return CliquePart(gamma, frozenset(self.ids[each] for each in mine), group=group)
        return HopPart(gamma, group=group)


def is_bounded(estimator: Estimator, moments: Moments | None) -> bool:
    """Whether a mean of many samples is kept in little memory."""
    online = estimator.online(moments or Moments(eps=0.5, u=1.0, rho=1.0), last_L=100.0)
    for i in range(1, 4097):
        online.update((i * 7919 % 1009 - 504) / 100.0)
        if i % 256 == 0:
            online.mean(float(np.log(i)))
    return len(msgspec.msgpack.encode(online.state())) < 32_000


def _is_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == 32
    except ValueError:
        return False


def read_mesh(path: Path) -> Mesh:
    """The mesh in a file; every mistake is named."""
    return Mesh(read_file(path), path)


def read_file(path: Path) -> MeshFile:
    """What a file says, right or not."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; `rumormill mesh init NAME` makes one") from None
    try:
        return msgspec.toml.decode(data, type=MeshFile)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: {one_line(str(error))}") from None


def split_address(address: str, where: str) -> tuple[str, int]:
    """HOST:PORT in its parts; an IPv6 address stands in brackets."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InputError(f"{where}: {address!r} is no address: give HOST:PORT")
    return host.strip("[]"), int(port)


def write_mesh(path: Path, file: MeshFile) -> None:
    """Write a mesh file in the order a person reads it."""
    plain = msgspec.to_builtins(file)
    write_atomically(path, to_toml(plain).encode())  # a node may be about to read it


@dataclass(frozen=True, kw_only=True)
class MeshTopology(Topology):
    """The nodes and neighbours of a mesh file, numbered in the order of the file."""

    file: str
    """The path of a mesh file."""

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not self.file:
            raise refused("file", self.file, "the path of a mesh file")

    def build(self, rng: np.random.Generator) -> Network:
        nodes = read_toml(self.file).get("nodes", [])
        try:
            linked = [
                (str(node["name"]), [str(name) for name in node.get("neighbours", [])]) for node in nodes
            ]
        except (TypeError, KeyError, AttributeError):
            raise DataError(
                f"{self.file}: every one of [[nodes]] has a name, and perhaps neighbours"
            ) from None
        return linked_by_name(self.file, linked)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def linked_by_name(path: str | Path, nodes: Sequence[tuple[str, Sequence[str]]]) -> Network:
    """A network from names and the names of neighbours."""
    if not nodes:
        raise DataError(f"{path} names no nodes: it needs at least one")
    number = {name: v for v, (name, _) in enumerate(nodes)}
    if len(number) < len(nodes):
        raise DataError(f"{path}: two nodes have the same name")
    edges = set()
    for name, neighbours in nodes:
        for other in neighbours:
            if other not in number:
                raise DataError(f"{path}: {name!r} has the neighbour {other!r}, which is no node")
            if other != name:
                edges.add((min(number[name], number[other]), max(number[name], number[other])))
    return Network.numbered(len(nodes), np.array(sorted(edges), np.int64).reshape(-1, 2))
