"""Pseudo-regret at the checkpoints, from how often each arm was pulled."""

from __future__ import annotations

from rumormill.kernels.jit import part
from rumormill.kernels.state import Floats, Ints, Output


@part
def record(t: int, mark: Ints, pulls: Ints, gaps: Floats, output: Output) -> None:
    """If round t is the next checkpoint, note every agent's regret so far."""
    if t != output.marks[mark[0]]:
        return
    for v in range(pulls.shape[0]):
        regret = 0.0
        for arm in range(gaps.shape[0]):
            regret += pulls[v, arm] * gaps[arm]
        output.agent_regret[mark[0], v] = regret
    mark[0] = min(mark[0] + 1, output.marks.shape[0] - 1)
