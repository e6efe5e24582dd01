"""A network in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from rumormill.text import plural

if TYPE_CHECKING:
    from rumormill.graphs.network import Network

# How many parts, and how many labels of each, are worth reading.
SHOWN = 5


def describe(network: Network) -> str:
    """Size, degrees, diameter and, if it falls apart, which parts cannot hear each other."""
    low, high = int(network.degrees.min()), int(network.degrees.max())
    lines = [
        f"{plural(network.n_agents, 'agent')}, {plural(network.n_edges, 'link')}, degrees {low} to {high}, "
        f"diameter {network.diameter}"
    ]
    parts = network.components
    if len(parts) == 1:
        lines.append("connected: everyone can hear everyone over enough hops")
    else:
        lines.append(f"not connected: {len(parts)} parts cannot hear each other")
        lines += [f"  {plural(len(part), 'agent')}: {_labels(network, part)}" for part in parts[:SHOWN]]
        if len(parts) > SHOWN:
            lines.append(f"  and {plural(len(parts) - SHOWN, 'more part')}, none larger")
    loops, repeats = network.dropped_self_loops, network.dropped_repeats
    if loops or repeats:
        lines.append(f"dropped {plural(loops, 'self-loop')} and {plural(repeats, 'repeated link')}")
    lines += network.notes
    return "\n".join(lines)


def _labels(network: Network, agents: NDArray[Any]) -> str:
    shown = ", ".join(repr(network.labels[v]) for v in agents[:SHOWN])
    return shown + (", ..." if len(agents) > SHOWN else "")
