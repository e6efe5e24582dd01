"""Sizes of covers and sets that enter the bounds.

Bounds are asked for at many horizons: what depends on the network alone is worked out once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rumormill.graphs import Network, clique_cover, dominating_set, independent_set
from rumormill.theory.bound import Assumption


@lru_cache(maxsize=32)
def cover_size(network: Network, gamma: int) -> int:
    """The number of cliques in a cover of the power graph."""
    return len(clique_cover(network, gamma).groups)


@lru_cache(maxsize=32)
def dominating_size(network: Network, gamma: int) -> int:
    """The number of agents found that reach everyone."""
    return len(dominating_set(network, gamma).leaders)


@lru_cache(maxsize=32)
def independent_size(network: Network, gamma: int) -> tuple[int, Assumption]:
    """The size of a large independent set, and how sure it is to be the largest."""
    found = independent_set(network, gamma, weights=np.ones(network.n_agents))
    known = "proven" if found.optimal else f"the largest found; at most {found.bound:g}"
    return len(found.leaders), Assumption(f"Independence number {len(found.leaders)} ({known}).")
