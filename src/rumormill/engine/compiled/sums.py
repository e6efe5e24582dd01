"""What averaging adds up in a round, laid out for the kernel: sums that several agents hear are made once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rumormill.formulas import IDS_PER_BLOCK
from rumormill.graphs import Network
from rumormill.kernels.rows import LANES, MOST_VECTORS, Sums

SETS = 1 << IDS_PER_BLOCK
SIZE = np.array([bits.bit_count() for bits in range(SETS)])
LARGEST = np.array([bits.bit_length() - 1 for bits in range(SETS)])


def heard_by_blocks(network: Network) -> Sums:
    """Rows 0..M-1 of the table are what agents say, the last M what they hear; between are sums of blocks.

    A set of agents of one block is a number, block * SETS + a bit per agent. Its sum is that of the set
    without its largest id, plus that one; so these sets are needed too.
    """
    n_agents = network.n_agents
    hearer = np.repeat(np.arange(n_agents), network.degrees)
    origin = network.indices.astype(np.int64)
    block = origin // IDS_PER_BLOCK
    begins = np.flatnonzero(np.r_[True, (np.diff(hearer) != 0) | (np.diff(block) != 0)][: len(origin)])
    bits = np.left_shift(1, origin % IDS_PER_BLOCK)
    heard = block[begins] * SETS + (np.add.reduceat(bits, begins) if len(begins) else bits)
    n_heard = np.bincount(hearer[begins], minlength=n_agents)

    made = heard[:0]
    sets = np.unique(heard)
    while len(sets := sets[SIZE[sets % SETS] > 1]):
        made = np.union1d(made, sets)
        sets = np.unique(_without_last(sets))
    made = made[np.argsort(SIZE[made % SETS], kind="stable")]  # what a sum is made of stands above it
    by_number = np.argsort(made)

    def row_of(sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of an agent alone its own, of more the row of their sum."""
        rows = _last(sets)
        several = np.flatnonzero(SIZE[sets % SETS] > 1)
        rows[several] = n_agents + by_number[np.searchsorted(made, sets[several], sorter=by_number)]
        return rows

    pairs = np.column_stack([row_of(_without_last(made)), _last(made)])
    sizes = np.concatenate([np.full(len(made), 2), n_heard])
    return Sums(
        first=n_agents,
        ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        ids=np.concatenate([pairs.ravel(), row_of(heard)]).astype(np.int32),
    )


def empty_table(columns: int, n_agents: int, sums: Sums) -> NDArray[np.float64]:
    """[slice of columns, row, column], in as few slices as the kernel can take."""
    slices = -(-columns // (LANES * MOST_VECTORS))
    width = -(-columns // (slices * LANES)) * LANES
    return np.zeros((slices, n_agents + len(sums.ptr) - 1, width))


def _last(sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest id of every set."""
    ids: NDArray[np.int64] = sets // SETS * IDS_PER_BLOCK + LARGEST[sets % SETS]
    return ids


def _without_last(sets: NDArray[np.int64]) -> NDArray[np.int64]:
    rest: NDArray[np.int64] = sets - np.left_shift(1, LARGEST[sets % SETS])
    return rest
