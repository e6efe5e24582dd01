"""How DDUCB divides the rounds: the length of a stage, and the steps of its gossip."""

from __future__ import annotations

import math
from dataclasses import dataclass

ERROR = 1 / 22
# Where gossip is exact in one step there is nothing to accelerate.
EXACT = 1e-9


@dataclass(frozen=True)
class DelayedPlan:
    """The weight of a link, the length C of a stage, and the two factors of its every step."""

    weight: float
    forward: tuple[float, ...]
    back: tuple[float, ...]

    @property
    def stage(self) -> int:
        """C."""
        return len(self.forward)

    def part(self, agent: int) -> DelayedPlan:
        return self


def stage_steps(second: float, n_agents: int, accelerated: bool) -> tuple[list[float], list[float]]:
    """forward and back: step r is forward P y_r - back y_(r-1)."""
    if second < EXACT:
        return [1.0], [0.0]
    if not accelerated:
        length = max(1, math.ceil(math.log(n_agents / ERROR) / math.log(1.0 / second)))
        return [1.0] * length, [0.0] * length
    length = max(1, math.ceil(math.log(2.0 * n_agents / ERROR) / math.sqrt(2.0 * math.log(1.0 / second))))
    forward, back, before, now = [1.0], [0.0], 1.0, 1.0 / second
    for _ in range(1, length):
        after = 2.0 * now / second - before
        forward.append(2.0 * now / (second * after))
        back.append(before / after)
        before, now = now, after
    return forward, back
