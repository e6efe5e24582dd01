"""Networks of agents: who hears whom, in how many hops, and who leads."""

from rumormill.graphs.neighbourhoods import Neighbourhoods
from rumormill.graphs.network import Network

__all__ = ["Network", "Neighbourhoods"]
