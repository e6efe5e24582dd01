"""The network of a mesh file: nodes by name, with their neighbours."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rumormill.errors import DataError, InputError
from rumormill.graphs.network import Network
from rumormill.graphs.topologies import Topology
from rumormill.validate import refused


@dataclass(frozen=True, kw_only=True)
class MeshFile(Topology):
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
