"""What of drawing takes longest, compiled: the same bits as on whole arrays, without going through memory."""

from __future__ import annotations

from rumormill import formulas
from rumormill.kernels.jit import kernel, linked, step
from rumormill.kernels.state import Floats

quarter_sine = step(formulas.quarter_sine)
stable_parts = linked(formulas.stable_parts, quarter_sine=quarter_sine)


@kernel
def shape_stable(t: Floats, wait: Floats, alpha: float) -> None:
    """Put `formulas.stable_parts` of t and wait in their places."""
    for i in range(t.shape[0]):
        t[i], wait[i] = stable_parts(t[i], wait[i], alpha)
