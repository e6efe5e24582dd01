"""The mesh file: games, nodes, links and plans. Its one form, one reader and one writer.

`read_mesh` serves the commands that edit a mesh, nodes, `rumormill advise --like`, `rumormill simulate
--mesh` and the network kind "mesh": all accept the same files and refuse others in the same words. Every
mistake is one line: the file, the key, what is allowed.
"""

from __future__ import annotations

import re
import tomllib
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np

from rumormill import catalogue
from rumormill.errors import DataError, InputError
from rumormill.files import to_toml, write_atomically
from rumormill.graphs.network import Network
from rumormill.graphs.topologies import Topology
from rumormill.text import nearest, one_line, shown
from rumormill.validate import level_scale, refused, reward

if TYPE_CHECKING:  # `rumormill list networks` imports this module
    from rumormill.arms import Moments
    from rumormill.policies import Policy, Prior

KEYS = "keys"
"""The folder of the keys, beside the mesh file."""
MOST_ARMS = 65_534
"""A frame stores an arm in two bytes; one number is left over for items that are no samples."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds on the memory of a node, and its timeouts in seconds."""

    retain: Count = 100_000
    """Items of each stream kept for others."""
    window: Count = 500_000
    """Decisions for which a late reward is still accepted, if it is not later than `window_seconds`."""
    window_seconds: Seconds = 86_400.0
    max_open: Count = 10_000
    """Decisions without a reward at one time."""
    block: Count = 1_024
    """Decision numbers reserved at a time."""
    batch: Count = 512
    """Items in one frame."""
    epochs: Count = 8
    """Streams of one origin: it may lose its disk that often, less one."""
    have_every: Seconds = 10.0
    """Between two frames that say how far this node is in every stream."""
    skip_after: Seconds = 30.0
    """Before items that no neighbour keeps are skipped."""
    ping_every: Seconds = 1.0
    silence: Seconds = 5.0
    """Without a frame, after which a link is closed."""
    tick_within: Seconds = 5.0
    """Without a tick, after which the node is not alive any more."""
    rate: Annotated[float, msgspec.Meta(gt=0)] = 10_000.0
    """Items of one origin accepted per second."""
    frames: Annotated[float, msgspec.Meta(gt=0)] = 10_000.0
    """Frames of one link accepted per second; every 256 bytes of one count as one more."""


class PlanPart(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The plan of one game, as `rumormill mesh plan` writes it: hop budget, cliques, leaders."""

    gamma: Annotated[int, msgspec.Meta(ge=0)]
    cliques: list[list[str]] | None = None
    leader: dict[str, str] | None = None
    distance: dict[str, int] | None = None


def _written(default: Any) -> Any:
    """A default that is written to the file too: `omit_defaults` leaves out plain ones only."""
    return msgspec.field(default_factory=lambda: copy(default))


class PriorPart(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What nodes know of the arms before their first decision, in the unit of the outcomes."""

    arms: list[str] = []
    """Whose values these are, in order, also those of single nodes; without, the arms of the game."""
    mean: list[float] = []
    """Per arm; for every node that has no values of its own."""
    n: list[float] = []
    spread: list[float] = []
    cap: Count | None = None
    probe: Count | None = None
    nodes: dict[str, PriorPart] = {}
    """Values of single nodes, by name."""


class GamePart(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One game that all nodes play: its arms, its objective, its policy."""

    name: str
    arms: list[str]
    objective: Literal["minimise", "maximise"] = _written("maximise")
    unit: str = _written("")
    policy: dict[str, Any]
    """Its name under "type", its settings beside it, as in a spec."""
    moments: dict[str, float] | None = None
    """eps, u and rho, for policies and estimators that need moment bounds."""
    prior: PriorPart | None = None
    """What nodes know of the arms already (`rm.Prior`)."""
    offsets: dict[str, float] = {}
    """Per node, in the unit of the outcomes: what it takes off its own before it learns and sends them."""
    scales: dict[str, float] = {}
    """Per node: what it divides them by then."""
    patience: float = 30.0
    """Seconds of its leader's silence after which a follower decides for itself."""
    ttl: Seconds = 300.0
    """Seconds after which a decision without a reward is closed."""
    propensities: bool = False
    """Whether nodes record the probability of every choice, for `rumormill evaluate`."""
    classes: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None
    """Request classes of this game that a node keeps at most, each a game of its own; None: it has none."""
    restart: int | None = None
    """Forget everything every so many decisions: for replays; nodes refuse it."""


class NodePart(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One node. Without id or address only `rumormill mesh adopt` reads it, which adds them."""

    name: str
    id: int = -1
    address: str = ""
    neighbours: list[str] = _written([])
    """Their names. A link given on one side holds for both."""
    group: int = 0
    """Nodes of one group face the same rewards; for people."""
    key: str = ""
    """Its public key, with which others verify its signatures."""
    former_keys: list[str] = []
    """Its public keys before `rumormill mesh rotate`: what they signed is still accepted."""


class MeshFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The whole file."""

    name: str
    revision: Annotated[int, msgspec.Meta(ge=0)] = _written(1)
    next_id: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Ids below this were given, also to nodes that are removed: none is given twice."""
    revoked: list[str] = []
    """Serial numbers (hexadecimal) of certificates that are refused: of removed nodes, or replaced ones."""
    signed: bool = False
    """Whether every node signs its observations, so that no other node can forge them."""
    games: list[GamePart] = []
    nodes: list[NodePart] = []
    network: dict[str, Any] | None = None
    """A generator for the links, as in a spec; `rumormill mesh plan` writes the links it makes."""
    limits: Limits = Limits()
    plans: dict[str, PlanPart] = {}
    """Per game, what `rumormill mesh plan` computed."""


class Mesh:
    """A mesh file that was read and checked, with its links and policies."""

    def __init__(self, file: MeshFile, path: Path) -> None:
        self.file, self.path = file, path
        self.ids = {node.name: node.id for node in file.nodes}
        self.names = {node.id: node.name for node in file.nodes}
        self.nodes = {node.name: node for node in file.nodes}
        self.games = {game.name: game for game in file.games}
        if not file.games:
            raise self._wrong("games: missing; a mesh needs at least one [[games]]")
        self._check_names()
        self.revoked = frozenset(self._serial(i, text) for i, text in enumerate(file.revoked))
        for i, node in enumerate(file.nodes):
            self._check_node(f"nodes[{i}]", node)
        for i, game in enumerate(file.games):
            self._check_game(f"games[{i}]", game)
        for name, plan in file.plans.items():
            self._check_plan(f"plans.{name}", name, plan)
        self.policies: dict[str, Policy] = {
            game.name: self._policy(f"games[{i}].policy", game) for i, game in enumerate(file.games)
        }
        for i, game in enumerate(file.games):
            self._check_prior(f"games[{i}].prior", game)
            for key, values, check in (
                ("offsets", game.offsets, reward),
                ("scales", game.scales, level_scale),
            ):
                for name, value in values.items():
                    self._require_node(f"games[{i}].{key}", name)
                    try:
                        check(f"games[{i}].{key}.{name}", value)
                    except InputError as error:
                        raise self._wrong(str(error)) from None
        self.links = self._links()

    # --- checks -------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        nodes, games = self.file.nodes, self.file.games
        for where, values in (
            ("nodes[{}].name", [node.name for node in nodes]),
            ("nodes[{}].id", [node.id for node in nodes if node.id >= 0]),
            ("games[{}].name", [game.name for game in games]),
        ):
            for i, value in enumerate(values):
                if value in values[:i]:
                    raise self._wrong(f"{where.format(i)} = {value!r} is given twice")

    def _check_node(self, where: str, node: NodePart) -> None:
        for key, is_given in (("id", node.id >= 0), ("address", bool(node.address))):
            if not is_given:
                raise self._wrong(f"{where}.{key}: missing; `rumormill mesh adopt` adds ids and addresses")
        split_address(node.address, f"{self.path}: {where}.address", DataError)
        for other in node.neighbours:
            if other == node.name:
                raise self._wrong(f"{where}.neighbours: {other!r} is the node itself")
            self._require_node(f"{where}.neighbours", other)
        for key in (node.key, *node.former_keys) if self.file.signed else ():
            if not _is_key(key):
                raise self._wrong(
                    f"{where}.key = {shown(key)} is not allowed: signed = true needs every node's key; "
                    "remove the node and add it again"
                )

    def _serial(self, i: int, text: str) -> str:
        """A serial number as certificates give it."""
        try:
            return serial_text(int(text, 16))
        except ValueError:
            raise self._wrong(
                f"revoked[{i}] = {shown(text)} is not allowed: a certificate's serial number, hexadecimal"
            ) from None

    def _check_game(self, where: str, game: GamePart) -> None:
        arms = game.arms
        if not 2 <= len(arms) <= MOST_ARMS or len(set(arms)) < len(arms):
            raise self._wrong(
                f"{where}.arms = {shown(arms)} is not allowed: 2 to {MOST_ARMS:,} names, each given once"
            )
        if game.restart is not None:
            raise self._wrong(
                f"{where}.restart = {game.restart} is not allowed: a node does not forget; take the line out"
            )
        if game.moments is not None:
            for key in game.moments:
                if key not in MOMENTS:
                    raise self._wrong(f"{where}.moments.{key}: unknown key{nearest(key, MOMENTS)}")
            for key in MOMENTS:
                if key not in game.moments:
                    raise self._wrong(f"{where}.moments.{key}: missing")
            try:
                self.moments(game)
            except InputError as error:
                raise self._wrong(f"{where}.moments: {one_line(str(error))}") from None

    def _check_prior(self, where: str, game: GamePart) -> None:
        """Refuse a prior that the policy does not take, or whose values do not fit the arms."""
        for name, part in game.prior.nodes.items() if game.prior is not None else ():
            self._require_node(f"{where}.nodes", name)
            for key in ("arms", "cap", "probe", "nodes"):
                if getattr(part, key):
                    raise self._wrong(
                        f"{where}.nodes.{name}.{key}: not for a single node; {where}.{key} holds for all"
                    )
        for name in self.ids if game.prior is not None else ():
            try:
                prior = self.prior(game, name)
                if prior is not None:
                    self.policies[game.name].require_prior(prior, len(game.arms))
            except InputError as error:
                own = f".nodes.{name}" if game.prior is not None and name in game.prior.nodes else ""
                raise self._wrong(f"{where}{own}: {one_line(str(error))}") from None

    def _check_plan(self, where: str, game: str, plan: PlanPart) -> None:
        if game not in self.games:
            raise self._wrong(f"{where}: there is no such game{nearest(game, self.games)}")
        leader = plan.leader or {}
        for key, names in (
            ("cliques", [name for clique in plan.cliques or [] for name in clique]),
            ("leader", [*leader, *leader.values()]),
            ("distance", list(plan.distance or {})),
        ):
            for name in names:
                self._require_node(f"{where}.{key}", name)

    def _require_node(self, where: str, name: str) -> None:
        if name not in self.ids:
            raise self._wrong(f"{where}: there is no node {name!r}{nearest(name, self.ids)}")

    def _policy(self, where: str, game: GamePart) -> Policy:
        try:
            made: Policy = catalogue.make("policy", game.policy, where=where, folder=self.path.parent)
        except InputError as error:
            raise self._wrong(str(error)) from None
        return made

    def _wrong(self, text: str) -> DataError:
        return DataError(f"{self.path}: {text}")

    # --- what follows from it -----------------------------------------------------------------------

    def _links(self) -> dict[str, list[str]]:
        """Every node's neighbours; a link given on one side holds for both."""
        linked: dict[str, set[str]] = {name: set() for name in self.ids}
        for node in self.file.nodes:
            for other in node.neighbours:
                linked[node.name].add(other)
                linked[other].add(node.name)
        return {name: sorted(others, key=self.ids.__getitem__) for name, others in linked.items()}

    def part(self, name: str) -> GamePart | None:
        """The game of this name; of a class ("game/class") its template."""
        found = self.games.get(name) or self.games.get(name.rpartition("/")[0])
        return found if found is None or found.name == name or found.classes else None

    def network(self) -> Network:
        """The links as a network, nodes numbered in the order of the file."""
        number = {name: v for v, name in enumerate(self.ids)}
        edges = sorted((number[a], number[b]) for a in number for b in self.links[a] if number[a] < number[b])
        return Network.numbered(len(number), np.array(edges, np.int64).reshape(-1, 2))

    def moments(self, game: GamePart) -> Moments | None:
        """The moment bounds of a game, if it has any."""
        from rumormill.arms import Moments

        return None if game.moments is None else Moments(**game.moments)

    def prior(self, game: GamePart, name: str) -> Prior | None:
        """What the agent of a node knows before its first decision, as rewards: costs are negated."""
        from rumormill.arms.base import sign_of
        from rumormill.policies import Prior

        given = game.prior
        part = None if given is None else given.nodes.get(name, given)
        if given is None or part is None or not part.mean:
            return None
        sign, part = sign_of(game.objective), in_order_of(game, part)
        limits = {key: value for key in ("cap", "probe") if (value := getattr(given, key)) is not None}
        mean = [sign * value for value in part.mean]
        return Prior(mean=mean, n=part.n, spread=part.spread or None, **limits)

    def level(self, game: GamePart, name: str) -> tuple[float, float]:
        """What a node takes off its rewards (of costs the negative), and what it divides them by."""
        from rumormill.arms.base import sign_of

        return sign_of(game.objective) * game.offsets.get(name, 0.0), game.scales.get(name, 1.0)

    def live_policy(self, game: GamePart) -> Policy:
        """The policy of a game, if a node can run it without end; else InputError."""
        policy = self.policies[game.name]
        estimator = getattr(policy, "estimator", None)  # an own policy may have none
        refusal = getattr(policy, "live_refusal", "")
        has_moments = game.moments is not None or "moments" in game.policy
        for refuses, why in (
            (refusal, f"this policy cannot be played live: {refusal}; take kmp"),
            (
                getattr(estimator, "needs_horizon", False),
                'the estimator must know the number of rounds, and there is none; take "trimmed"',
            ),
            (
                not getattr(estimator, "bounded_memory", True),
                'the estimator keeps every sample, so memory would grow without bound; take "trimmed"',
            ),
            (
                getattr(estimator, "needs_moments", False) and not has_moments,
                'the estimator needs moments; give [games.moments], or take estimator = "self-tuned"',
            ),
        ):
            if refuses:
                raise InputError(f"{self.path}: game {game.name!r}: {why}")
        return policy


MOMENTS = ("eps", "u", "rho")


def in_order_of(game: GamePart, part: PriorPart) -> PriorPart:
    """Values of a game's prior in the order of its arms; of an arm that is not named nothing is known."""
    named = game.prior.arms if game.prior is not None else []
    if not named:
        return part
    place = {arm: i for i, arm in enumerate(named)}
    made = PriorPart()
    for key in ("mean", "n", "spread"):
        if values := getattr(part, key):
            if not len(values) == len(place) == len(named):
                raise InputError(
                    f"{key} has {len(values)} values, arms {len(place)} names: give one of each per arm"
                )
            setattr(made, key, [values[place[arm]] if arm in place else 0.0 for arm in game.arms])
    return made


def serial_text(number: int) -> str:
    """The serial number of a certificate as the mesh file and logs have it."""
    return f"{number:x}"


def _is_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == 32
    except ValueError:
        return False


def split_address(
    address: str, where: str, error: type[InputError | DataError] = InputError
) -> tuple[str, int]:
    """HOST:PORT in its parts; an IPv6 address stands in brackets."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise error(f"{where} = {address!r} is not allowed: give HOST:PORT")
    return host.strip("[]"), int(port)


# --- reading and writing --------------------------------------------------------------------------------


def read_mesh(path: str | Path, *, empty: bool = False) -> Mesh:
    """The mesh in a file.

    - `path`: the mesh file: TOML in UTF-8, with or without a byte-order mark.
    - `empty`: accept a mesh without nodes, to which nodes are about to be added.

    Raises InputError if there is no such file, DataError naming the key of the first mistake in it.
    """
    file, path = read_file(path), Path(path)
    if file.games and not file.nodes and not empty:
        raise DataError(f"{path}: nodes: missing; `rumormill mesh add NAME HOST:PORT` adds one")
    return Mesh(file, path)


def read_file(path: str | Path) -> MeshFile:
    """The form of a file, keys and types checked; what the values mean together is not."""
    try:
        raw = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; `rumormill mesh init NAME` makes one") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path} cannot be read: {one_line(str(error))}") from None
    try:
        return msgspec.convert(raw, MeshFile)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {_explain(raw, str(error))}") from None


def write_mesh(path: Path, file: MeshFile) -> None:
    """Write a mesh file; a node that reads it meanwhile finds the old one or the new one."""
    write_atomically(path, mesh_text(file).encode())


def mesh_text(file: MeshFile) -> str:
    """A mesh file as TOML, in the order a person reads it."""
    return to_toml(msgspec.to_builtins(file))


FORMS: dict[str, Any] = {"games": GamePart, "nodes": NodePart, "limits": Limits, "plans": PlanPart}
VALUES: dict[str, Any] = {
    "plans": PlanPart,
    "nodes": PriorPart,
    "moments": float,
    "offsets": float,
    "scales": float,
    "leader": str,
    "distance": int,
}
"""What the tables hold whose keys are names."""


def _explain(raw: Any, text: str) -> str:
    """A message of msgspec with the path of the key first, the value found there, and the nearest name."""
    words, _, at = text.partition(" - at `")
    path, value = _found(raw, at.rstrip("`").removeprefix("$").lstrip("."))
    where = f"{path}." if path else ""
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", words)
    if unknown:
        form = PriorPart if ".prior" in path else FORMS.get(re.split(r"[.\[]", path)[0], MeshFile)
        return f"{where}{unknown[1]}: unknown key{nearest(unknown[1], form.__struct_fields__)}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", words)
    if missing:
        return f"{where}{missing[1]}: missing"
    if words.startswith("Invalid enum"):
        return f"{path} = {shown(value)} is not allowed: minimise or maximise"
    words = words.replace("`", "").replace("object", "a table").replace("Expected", "expected")
    return f"{path} = {shown(value)} is not allowed: {words}"


def _found(raw: Any, path: str) -> tuple[str, Any]:
    """The path, with the names that msgspec prints as [...] filled in, and the value at its end."""
    steps: list[str] = []
    form: Any = None
    for step in re.findall(r"\[\.\.\.\]|[^.\[\]]+", path):
        if step == "[...]":
            step = next(key for key, value in raw.items() if not _fits(value, form))
            steps.append(f".{step}")
        elif isinstance(raw, list):
            step = int(step)
            steps.append(f"[{step}]")
        else:
            steps.append(f".{step}")
            form = VALUES.get(step)
        raw = raw[step]
    return "".join(steps).lstrip("."), raw


def _fits(value: Any, form: Any) -> bool:
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class MeshTopology(Topology):
    """The nodes and neighbours of a mesh file, numbered in the order of the file."""

    file: str
    """The path of a mesh file."""

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not self.file:
            raise refused("file", self.file, "the path of a mesh file")

    def build(self, rng: np.random.Generator) -> Network:
        return read_mesh(self.file).network()
