"""What of drawing takes longest, compiled: the same bits as on whole arrays, without going through memory."""

from __future__ import annotations

from rumormill import formulas
from rumormill.kernels.jit import kernel, linked, step
from rumormill.kernels.state import Floats

quarter_sine = step(formulas.quarter_sine)
centred = step(formulas.centred)
stable_parts = linked(formulas.stable_parts, centred=centred, quarter_sine=quarter_sine)


@kernel
def shape_stable(u: Floats, wait: Floats, alpha: float) -> None:
    """Put `formulas.stable_parts` of u and wait in their places."""
    for i in range(u.shape[0]):
        u[i], wait[i] = stable_parts(u[i], wait[i], alpha)
