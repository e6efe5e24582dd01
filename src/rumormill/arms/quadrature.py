"""Integrals that either settle or say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rumormill.errors import SolverError

# Asked of the integrator, and the worst estimate of its error that is accepted, both relative.
WANTED = 1e-11
ACCEPTED = 1e-8


def integrate(
    f: Callable[[float], float], low: float, high: float, *, size: float = 0.0, **options: Any
) -> float:
    """∫ f from low to high, exact enough for a sum of magnitude `size` (by default: for itself)."""
    from scipy.integrate import quad

    # With full output the integrator reports trouble in its answer, not as a warning.
    value, error, *_ = quad(
        f, low, high, epsabs=WANTED * size, epsrel=WANTED, limit=1000, full_output=1, **options
    )
    if not error <= ACCEPTED * (size or abs(value)):
        raise SolverError(f"a moment could not be integrated: {value:.6g} with an error of up to {error:.2g}")
    return float(value)
