"""What a trial on the compiled engine begins with; importing this compiles nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource
from rumormill.engine.crew import Crew


@dataclass(frozen=True, eq=False)
class Opening:
    """What a trial begins with."""

    source: RewardSource
    horizon: int
    marks: NDArray[np.int64]
    keep_actions: bool
    seed: np.random.SeedSequence
    """The trial's own."""
    crew: Crew | None = None
    """Threads that may play it together; that changes no result."""
