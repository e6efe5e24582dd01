"""A network in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from rumormill.graphs.network import Network

# How many parts, and how many labels of each, are worth reading.
SHOWN = 5


def describe(network: Network) -> str:
    """Size, degrees, diameter and, if it falls apart, which parts cannot hear each other."""
    low, high = int(network.degrees.min()), int(network.degrees.max())
    lines = [
        f"{_count(network.n_agents, 'agent')}, {_count(network.n_edges, 'link')}, degrees {low} to {high}, "
        f"diameter {network.diameter}"
    ]
    parts = network.components
    if len(parts) == 1:
        lines.append("connected: everyone can hear everyone over enough hops")
    else:
        lines.append(f"not connected: {len(parts)} parts cannot hear each other")
        lines += [f"  {_count(len(part), 'agent')}: {_labels(network, part)}" for part in parts[:SHOWN]]
        if len(parts) > SHOWN:
            lines.append(f"  and {_count(len(parts) - SHOWN, 'more part')}, none larger")
    loops, repeats = network.dropped_self_loops, network.dropped_repeats
    if loops or repeats:
        lines.append(f"dropped {_count(loops, 'self-loop')} and {_count(repeats, 'repeated link')}")
    return "\n".join(lines)


def _labels(network: Network, agents: NDArray[Any]) -> str:
    shown = ", ".join(repr(network.labels[v]) for v in agents[:SHOWN])
    return shown + (", ..." if len(agents) > SHOWN else "")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
