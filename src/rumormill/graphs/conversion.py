"""Graphs of other libraries as labels, pairs of agents, and what is left out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.text import shown

DIRECTED = "links are directed: each is taken in both directions"
WEIGHTED = "link weights play no part: distance is the number of hops"
PARALLEL = "parallel links are merged"

Parts = tuple[Sequence[Hashable], NDArray[np.int64], list[str]]


def parts_of(graph: Any) -> Parts | None:
    """Labels, pairs of places in them, and notes; None where it is no graph that is known here."""
    kind = type(graph).__module__.partition(".")[0]
    if hasattr(graph, "adj") and hasattr(graph, "is_multigraph"):
        return _networkx(graph)
    if kind == "rustworkx":
        return _rustworkx(graph)
    if kind == "scipy" and hasattr(graph, "tocoo"):
        entries = graph.tocoo()
        return _matrix(graph.shape, entries.row, entries.col, entries.data)
    if isinstance(graph, np.ndarray) and graph.ndim == 2:
        pairs = graph.shape[1] == 2 and not (np.issubdtype(graph.dtype, np.floating) or graph.dtype == bool)
        return None if pairs else _dense(graph)
    return None


def _networkx(graph: Any) -> Parts:
    labels = tuple(graph.nodes)
    ids = {label: i for i, label in enumerate(labels)}
    edges = _pairs((ids[u], ids[v]) for u, v in graph.edges())
    weights = [data["weight"] for _, _, data in graph.edges(data=True) if "weight" in data]
    return labels, edges, _notes(graph.is_directed(), weights, graph.is_multigraph(), edges)


def _rustworkx(graph: Any) -> Parts:
    nodes = list(graph.node_indices())  # with gaps where nodes were removed
    ids = {node: i for i, node in enumerate(nodes)}
    edges = _pairs((ids[u], ids[v]) for u, v in graph.edge_list())
    weights = [each for each in graph.edges() if isinstance(each, int | float)]
    labels = [graph[node] for node in nodes]
    try:
        named = len(set(labels)) == len(labels) and None not in labels
    except TypeError:
        named = False
    directed = "Di" in type(graph).__name__
    return (labels if named else nodes), edges, _notes(directed, weights, graph.multigraph, edges)


def _dense(graph: NDArray[Any]) -> Parts:
    if not (np.issubdtype(graph.dtype, np.number) or graph.dtype == np.bool_):
        raise InputError(f"an adjacency matrix of {graph.dtype} is not allowed: numbers or truth values")
    rows, columns = np.nonzero(graph)
    return _matrix(graph.shape, rows, columns, graph[rows, columns])


def _matrix(shape: tuple[int, ...], rows: Any, columns: Any, values: NDArray[Any]) -> Parts:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"an adjacency matrix of shape {shown(shape)} is not allowed: as many rows as columns"
        )
    if not np.isfinite(values).all():
        raise InputError("the adjacency matrix has entries that are not finite: 0 where there is no link")
    kept = np.asarray(values) != 0
    edges = np.column_stack([rows, columns]).astype(np.int64)[kept]
    there = {(u, v) for u, v in edges.tolist()}
    directed = any((v, u) not in there for u, v in there)
    once = edges[edges[:, 0] <= edges[:, 1]] if not directed else edges
    return range(shape[0]), once, _notes(directed, values[kept].tolist(), False, once)


def _pairs(found: Any) -> NDArray[np.int64]:
    return np.array(list(found), np.int64).reshape(-1, 2)


def _notes(directed: bool, weights: Sequence[Any], multi: bool, edges: NDArray[np.int64]) -> list[str]:
    notes = [DIRECTED] if directed else []
    if any(weight != 1 for weight in weights):
        notes.append(WEIGHTED)
    sides = np.sort(edges, axis=1) if not directed else edges
    if multi and len(np.unique(sides, axis=0)) < len(edges):
        notes.append(PARALLEL)
    return notes
