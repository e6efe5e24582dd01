"""Networks of agents: neighbourhoods, clique covers, leaders, spectra."""

from rumormill.graphs.adjacency import Neighbourhoods
from rumormill.graphs.cover import Cover, clique_cover, verify_cover
from rumormill.graphs.leaders import Assignment, LeaderSet, assign_followers, dominating_set, independent_set
from rumormill.graphs.network import Network
from rumormill.graphs.spectrum import (
    consensus_epsilon,
    consensus_matrix,
    consensus_weights,
    epsilon_is_exact,
    second_size,
)
from rumormill.graphs.topologies import Topology

__all__ = [
    "Assignment",
    "Cover",
    "LeaderSet",
    "Neighbourhoods",
    "Network",
    "Topology",
    "assign_followers",
    "clique_cover",
    "consensus_epsilon",
    "consensus_matrix",
    "consensus_weights",
    "dominating_set",
    "epsilon_is_exact",
    "independent_set",
    "second_size",
    "verify_cover",
]
