"""Edits of a mesh file: init, add, adopt, move, remove, rotate, plan. Each writes a new revision."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rumormill import catalogue
from rumormill.errors import InputError
from rumormill.mesh.file import (
    KEYS,
    GamePart,
    Mesh,
    MeshFile,
    NodePart,
    PlanPart,
    read_file,
    read_mesh,
    split_address,
    write_mesh,
)
from rumormill.mesh.keys import make_authority, make_keys, move_keys, serial_of
from rumormill.text import nearest

FILE = "mesh.toml"
FIRST_PORT = 7400
# Names whose key files would be others'.
RESERVED = {"ca", "removed"}


def init(folder: Path, name: str, game: GamePart, *, signed: bool = False) -> Path:
    """Make a mesh without nodes: its file and its certificate authority."""
    path = folder / FILE
    if path.exists():
        raise InputError(f"{path} is there already")
    folder.mkdir(parents=True, exist_ok=True)
    file = MeshFile(name=name, games=[game], signed=signed)
    Mesh(file, path).live_policy(game)
    make_authority(folder / KEYS, name)
    write_mesh(path, file)
    return path


def add(path: Path, name: str, address: str, links: Sequence[str]) -> Mesh:
    """Add a node and make its keys."""
    mesh = read_mesh(path, empty=True)
    _require_name(name)
    if name in mesh.ids:
        raise InputError(f"{path} has a node {name!r} already")
    for other in links:
        if other not in mesh.ids:
            raise InputError(f"{path} has no node {other!r}{nearest(other, mesh.ids)}")
    split_address(address, "address")
    file = mesh.file
    number = _next_id(file)
    key = make_keys(path.parent / KEYS, name)
    file.nodes.append(NodePart(name=name, id=number, address=address, neighbours=list(links), key=key))
    return _changed(path, file)


def adopt(path: Path, address: str | None = None, learn: Callable[[Mesh], object] | None = None) -> Mesh:
    """Complete a mesh file that `rumormill advise --write` made: ids, addresses, an authority, keys.

    `address` is HOST:PORT with {name} for the node's name and {port} for 7400, 7401, ...; if it is not given,
    addresses in the file stay, and a node that has none gets its name and port 7400. `learn` may set the
    priors of the games; it is called with links and plans, before anything is written.
    """
    file = read_file(path)
    ports = itertools.count(FIRST_PORT)
    for node in file.nodes:
        _require_name(node.name)
        if node.id < 0:
            node.id = _next_id(file)
        if address is not None or not node.address:
            given = address or f"{{name}}:{FIRST_PORT}"
            node.address = given.replace("{name}", node.name).replace("{port}", str(next(ports)))
            split_address(node.address, "--address")
    checked = Mesh(msgspec.structs.replace(file, signed=False), path)  # all but the keys must be right
    if learn is not None:
        learn(_planned(checked, 0))
    if not (path.parent / KEYS / "ca.key").exists():
        make_authority(path.parent / KEYS, file.name)
    for node in file.nodes:
        if not (path.parent / KEYS / f"{node.name}.key").exists():
            node.key = make_keys(path.parent / KEYS, node.name)
    return _changed(path, file)


def move(path: Path, name: str, address: str) -> Mesh:
    """Change the address of a node."""
    mesh = _with_node(path, name)
    split_address(address, "address")
    mesh.nodes[name].address = address
    mesh.file.revision += 1
    write_mesh(path, mesh.file)
    return read_mesh(path)


def _next_id(file: MeshFile) -> int:
    """An id that no node has or had."""
    return max([file.next_id, *(node.id + 1 for node in file.nodes)])


def _require_name(name: str) -> None:
    """Refuse a name that cannot be the name of a key file of its own."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name) is None:
        raise InputError(
            f"{name!r} is not allowed as the name of a node: at most 63 letters, digits, '-', '.' and '_', "
            "a letter or digit first"
        )
    if name.lower() in RESERVED:
        raise InputError(f"{name!r} is not allowed as the name of a node: ca.key is the authority's")


def remove(path: Path, name: str) -> Mesh:
    """Remove a node: its id is never given again, its certificate is revoked, its keys go to keys/removed."""
    mesh = _with_node(path, name)
    file = mesh.file
    serial = serial_of(path.parent / KEYS, name)
    if serial is not None:
        file.revoked.append(serial)
    file.next_id = _next_id(file)
    number = mesh.ids[name]
    file.nodes = [node for node in file.nodes if node.name != name]
    for node in file.nodes:
        node.neighbours = [other for other in node.neighbours if other != name]
    for game in file.games:
        if game.prior is not None:
            game.prior.nodes.pop(name, None)
        game.offsets.pop(name, None)
        game.scales.pop(name, None)
    made = _changed(path, file)
    move_keys(path.parent / KEYS, name, str(number))
    return made


def rotate(path: Path, name: str) -> Mesh:
    """Give a node a new key and certificate; the old certificate is revoked and moved to keys/removed."""
    mesh, keys = _with_node(path, name), path.parent / KEYS
    serial, node = serial_of(keys, name), mesh.nodes[name]
    if serial is None:
        raise InputError(f"{keys / name}.crt is missing: its serial number is to be revoked; copy it back")
    if not (keys / "ca.key").exists():
        raise InputError(f"{keys / 'ca.key'} is missing: rotate keys where the mesh was made")
    if mesh.file.signed:
        node.former_keys.append(node.key)
    mesh.file.revoked.append(serial)
    mesh.file.revision += 1
    write_mesh(path, mesh.file)  # first: if this is interrupted, the old certificate is revoked already
    move_keys(keys, name, serial)
    node.key = make_keys(keys, name)
    write_mesh(path, mesh.file)
    return read_mesh(path)


def _with_node(path: Path, name: str) -> Mesh:
    """The mesh of a file that has this node."""
    mesh = read_mesh(path)
    if name not in mesh.ids:
        raise InputError(f"{path} has no node {name!r}{nearest(name, mesh.ids)}")
    return mesh


def _changed(path: Path, file: MeshFile) -> Mesh:
    """Check and write a new revision, without the plans of the old one."""
    file.plans = {}
    file.revision += 1
    mesh = Mesh(file, path)
    write_mesh(path, file)
    return mesh


def plan(path: Path, seed: int = 0) -> Mesh:
    """Compute links (from `[network]`, if given), hop budgets, cliques and leaders, and write them."""
    file = _planned(read_mesh(path), seed).file
    file.revision += 1
    write_mesh(path, file)
    return read_mesh(path)


def _planned(mesh: Mesh, seed: int) -> Mesh:
    """The mesh with links and plans, which are put into its file; nothing is written."""
    from rumormill.graphs import Network

    file, path = mesh.file, mesh.path
    order = [node.name for node in file.nodes]
    if len(order) < 1:
        raise InputError(f"{path} has no nodes yet: rumormill mesh add NAME HOST:PORT")
    if file.network is not None:
        table = {"n": len(order), **file.network}
        made = catalogue.make("network", table, where=f"{path}: network").build(np.random.default_rng(seed))
        for v, node in enumerate(file.nodes):
            node.neighbours = [order[int(w)] for w in made.neighbours(v) if int(w) > v]
        mesh = Mesh(file, path)
    place = {name: v for v, name in enumerate(order)}
    edges = [(place[a], place[b]) for a in order for b in mesh.links[a] if place[a] < place[b]]
    network = Network.labelled(order, np.array(edges, np.int64).reshape(-1, 2), ())
    for game in file.games:
        made = mesh.live_policy(game).plan(network)
        file.plans[game.name] = part = _plan(made, order, f"{path}: game {game.name!r}")
        if not edges and len(order) > 1 and (part.gamma > 0 or part.cliques or part.leader):
            raise InputError(f"{path}: no node has neighbours; give --link, or a [network]")
    return Mesh(file, path)


def _plan(made: Any, order: Sequence[str], where: str) -> PlanPart:
    """The plan of a policy as the mesh file holds it."""
    gamma = getattr(made, "gamma", None)
    if gamma is None:
        raise InputError(
            f"{where}: this policy needs rounds and cannot be played live; take one whose messages travel "
            "hops: decentralized, centralized, kmp"
        )
    part = PlanPart(gamma=int(gamma))
    groups = getattr(made, "groups", None)
    if groups is not None:
        part.cliques = [[order[v] for v in group] for group in groups]
    if hasattr(made, "leader_of"):
        part.leader = {name: order[int(made.leader_of[v])] for v, name in enumerate(order)}
        part.distance = {name: int(made.distance[v]) for v, name in enumerate(order)}
    return part


def show(mesh: Mesh) -> list[dict[str, Any]]:
    """A row per node."""
    return [
        {
            "node": node.name,
            "id": node.id,
            "address": node.address,
            "neighbours": ", ".join(mesh.links[node.name]),
        }
        for node in mesh.file.nodes
    ]
