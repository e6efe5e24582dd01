"""Whether larger or smaller values are better: rewards are maximised, costs (latency, loss, error) minimised.

Agents always maximise. Costs are negated on their way to the agents and nowhere else: means, gaps and regret
stay in the unit of the caller.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.validate import one_of

Objective = Literal["maximise", "minimise"]
OBJECTIVES: tuple[Objective, ...] = ("maximise", "minimise")
_ALSO = {"maximize": "maximise", "minimize": "minimise"}


def checked_objective(value: Any) -> Objective:
    """The objective; the American spelling is understood too."""
    known = _ALSO.get(value, value) if isinstance(value, str) else value
    found: Objective = one_of("objective", known, OBJECTIVES)
    return found


def sign_of(objective: Objective) -> float:
    """What a value is multiplied by on its way to an agent."""
    return 1.0 if objective == "maximise" else -1.0


def best_of(means: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """The best mean along the last axis."""
    best: NDArray[np.float64] = means.max(axis=-1) if objective == "maximise" else means.min(axis=-1)
    return best


def gaps_of(means: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """By how much each mean is worse than the best along the last axis: never negative."""
    gaps: NDArray[np.float64] = np.abs(best_of(means, objective)[..., None] - means)
    return gaps
