"""What cannot be done is refused in words before it starts."""

from __future__ import annotations

from rumormill.errors import InputError
from rumormill.text import memory

# Tables per round (levels, scales, leaving samples), and numbers kept per agent and round if asked for.
BYTES_PER_ROUND, BYTES_PER_ACTION = 64, 8
MOST_BYTES = 8e9


def refuse_impossible(n_agents: int, horizon: int, trials: int = 1, *, keep_actions: bool = False) -> None:
    """Refuse a simulation whose tables would not fit into memory."""
    needed = float(BYTES_PER_ROUND) * horizon
    if keep_actions:
        needed += float(BYTES_PER_ACTION) * horizon * n_agents * trials
    if needed > MOST_BYTES:
        what = f"keeping every action of {n_agents:,} agents takes" if keep_actions else "its tables take"
        raise InputError(
            f"horizon = {horizon:,} is not possible: {what} "
            f"{memory(needed)}, at most {memory(MOST_BYTES)} are allowed; take fewer rounds"
        )
