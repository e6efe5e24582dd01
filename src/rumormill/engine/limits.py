"""What cannot be done is refused in words before it starts."""

from __future__ import annotations

from rumormill.errors import InputError
from rumormill.machine import available_bytes
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


# What the compiled engine keeps, in bytes: per agent and arm (counts, sums, means, powers, pulls), the same
# for the rows of KMP-UCB and for each round they are told in, per agent and round on the way, and per pair
# that hear each other (neighbourhoods, and lists in two orders).
PER_ARM, PER_ARM_OF_ROWS, PER_ROW, PER_SAMPLE, PER_PAIR = 64, 36, 20, 36, 32


def trial_bytes(
    n_agents: int, n_arms: int, *, pairs: int, slots: int, shares_rows: bool, marks: int, columns: int
) -> float:
    """About what one trial takes: its state, its draws (two chunks of 64 rounds), regret at the marks."""
    per_arm = PER_ARM + (PER_ARM_OF_ROWS + PER_ROW * slots if shares_rows else 0)
    draws = 64.0 * 8 * columns * (2 if columns == 1 else 3)
    return n_agents * (float(per_arm) * n_arms + PER_SAMPLE * slots + draws + 8.0 * marks) + PER_PAIR * pairs


def refuse_without_memory(needed: float, what: str) -> None:
    """Refuse what this machine has no room for now."""
    there = available_bytes()
    if needed > there:
        raise InputError(
            f"{what} takes about {memory(needed)} of memory, {memory(there)} are there; take fewer agents, "
            "arms, checkpoints or trials at a time (workers=1, jobs=1), or a smaller gamma"
        )
