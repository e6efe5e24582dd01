"""Pseudo-regret at the checkpoints, from how often each arm was pulled."""

from __future__ import annotations

from rumormill.kernels.jit import part
from rumormill.kernels.state import Floats, Ints


@part
def record(t: int, marks: Ints, mark: Ints, pulls: Ints, gaps: Floats, agent_regret: Floats) -> None:
    """If round t is the next checkpoint, note every agent's regret so far."""
    if t != marks[mark[0]]:
        return
    for v in range(pulls.shape[0]):
        regret = 0.0
        for arm in range(gaps.shape[0]):
            regret += pulls[v, arm] * gaps[arm]
        agent_regret[mark[0], v] = regret
    mark[0] = min(mark[0] + 1, marks.shape[0] - 1)
