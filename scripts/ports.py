"""Free ports for the processes of demos, benchmarks and tests."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket

_LOOKED_AT = itertools.count()


def free_ports(n: int) -> list[int]:
    """Ports that nobody uses now.

    They lie below those that the system hands out for connections, or one of these might take them before
    the process that they are for; every process looks from another place on, and never twice at a port.
    """
    found: list[int] = []
    while len(found) < n:
        port = 12_000 + (os.getpid() * 997 + next(_LOOKED_AT)) % 18_000
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.bind(("127.0.0.1", port))
            found.append(port)
    return found
