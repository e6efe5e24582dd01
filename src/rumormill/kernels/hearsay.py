"""KMP-UCB where messages may be lost or late: the best informed row that an agent ever heard of an arm."""

from __future__ import annotations

from rumormill.kernels.jit import step
from rumormill.kernels.world import Hearsay


@step
def believe(when: int, v: int, arm: int, origin: int, mean: float, n: float, hearsay: Hearsay) -> None:
    """Agent v hears of an arm what the origin knew in round `when`.

    Most samples win, then the smallest origin, and of one origin its newest word. What an origin counts never
    shrinks, so what was heard of it before cannot beat its newest word, and need not be kept.
    """
    best, known = hearsay.n[arm, v], hearsay.origin[arm, v]
    newer = origin == known and when > hearsay.when[arm, v]
    if n > best or (n == best and (origin < known or newer)):
        hearsay.n[arm, v] = n
        hearsay.mean[arm, v] = mean
        hearsay.origin[arm, v] = origin
        hearsay.when[arm, v] = when
