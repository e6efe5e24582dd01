"""Who hears whom, as compressed sparse rows: distances, powers and diameters work on these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer[Any]]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Adjacency:
    """An undirected graph without loops: row v is indices[indptr[v]:indptr[v + 1]], sorted."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @property
    def n_agents(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.indices) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of every agent."""
        return np.diff(self.indptr)

    def row(self, v: int) -> NDArray[np.int32]:
        """The neighbours of v, sorted."""
        return self.indices[self.indptr[v] : self.indptr[v + 1]]

    def edges(self) -> NDArray[np.int64]:
        """Every edge once, as rows (smaller id, larger id)."""
        tails = np.repeat(np.arange(self.n_agents), self.degrees)
        once = tails < self.indices
        return np.column_stack([tails[once], self.indices[once].astype(np.int64)])

    @cached_property
    def masks(self) -> list[int]:
        """The rows as whole numbers: bit w of masks[v] says that v hears w. Only for some thousand agents."""
        packed = np.packbits(self.dense(), axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]

    def matrix(self, dtype: Any = np.int8) -> Any:
        """The 0/1 adjacency matrix as a SciPy sparse array."""
        from scipy.sparse import csr_array

        shape = (self.n_agents, self.n_agents)
        return csr_array((np.ones(len(self.indices), dtype), self.indices, self.indptr), shape=shape)

    def dense(self, dtype: Any = np.bool_) -> NDArray[Any]:
        """The adjacency matrix as a full array; only for small or dense graphs."""
        full = np.zeros((self.n_agents, self.n_agents), dtype)
        full[np.repeat(np.arange(self.n_agents), self.degrees), self.indices] = 1
        return full


def from_edges(n_agents: int, edges: NDArray[np.int64]) -> tuple[Adjacency, int, int]:
    """The graph of these pairs of ids; also how many self-loops and how many repeats were dropped."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    proper = low != high
    keys = np.unique(low[proper] * n_agents + high[proper])
    loops = len(edges) - int(proper.sum())
    repeats = int(proper.sum()) - len(keys)
    low, high = np.divmod(keys, n_agents)
    tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((heads, tails))
    indptr = np.zeros(n_agents + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=n_agents), out=indptr[1:])
    return Adjacency(frozen(indptr), frozen(heads[order].astype(np.int32))), loops, repeats
