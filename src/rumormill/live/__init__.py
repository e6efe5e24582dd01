"""Live: the simulator's agents as processes on a real network.

`core` is a state machine without socket, clock, file or randomness; drivers surround it: the process that
`rumormill node` starts (`io`), a node inside an application (`EmbeddedNode`), and in the tests a
deterministic simulation and a lock-step game.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rumormill.live.io.client import AsyncClient as AsyncClient
    from rumormill.live.io.client import NodeError as NodeError
    from rumormill.live.io.embedded import EmbeddedNode as EmbeddedNode

_PLACES = {"AsyncClient": "client", "NodeError": "client", "EmbeddedNode": "embedded"}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'rumormill.live' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rumormill.live.io.{_PLACES[name]}"), name)
