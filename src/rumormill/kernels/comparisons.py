"""Every compiled formula beside the plain one: the tests hold them together, the benchmark times them.

Powers and logarithms come from the same library in both, so the bits are the same; but numpy, which the
plain form uses on arrays, has a logarithm of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rumormill import formulas
from rumormill.kernels import block, consensus, running, state, stored

Case = tuple[Any, ...]


@dataclass(frozen=True)
class Comparison:
    """One formula in both forms, and cases to try it on."""

    name: str
    compiled: Callable[..., Any]
    plain: Callable[..., Any]
    cases: Callable[[np.random.Generator, int], list[Case]]
    ulps: int = 0
    """By how many units in the last place they may differ."""


def _columns(*columns: Any) -> list[Case]:
    return list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))


def _sizes(rng: np.random.Generator, n: int) -> Any:
    """Rewards of every size: nothing, ordinary, heavy, as large as is allowed."""
    wild = rng.standard_cauchy(n) * 10.0 ** rng.integers(-30, 31, n)
    wild[:4] = 0.0, 1e100, -1e100, 1e-300
    return wild


def _p(rng: np.random.Generator, n: int) -> Any:
    return np.where(rng.random(n) < 0.2, 2.0, 1.001 + 0.999 * rng.random(n))


def _trimming(rng: np.random.Generator, n: int) -> list[Case]:
    ranks = rng.integers(1, 10**6, n).astype(float)
    return _columns(_sizes(rng, n), ranks, 10.0 ** rng.uniform(-60, 200, n), _p(rng, n))


def _shrinking(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.integers(1, 10**8, n).astype(float), rng.uniform(1e-3, 0.5, n))


def _radii(rng: np.random.Generator, n: int) -> list[Case]:
    c, root = 10.0 ** rng.uniform(-100, 100, n), 10.0 ** rng.uniform(-60, 200, n)
    shift = rng.choice([0.0, 0.125], n)
    return _columns(rng.exponential(10.0, n), root, c, shift, rng.uniform(1e-3, 0.5, n))


def _factors(rng: np.random.Generator, n: int) -> list[Case]:
    zeta, root = 10.0 ** rng.uniform(-100, 100, n), 10.0 ** rng.uniform(-60, 200, n)
    return _columns(rng.exponential(10.0, n), root, zeta, rng.uniform(1e-3, 0.5, n))


def _indices(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_sizes(rng, n), rng.exponential(3.0, n), rng.random(n))


def _groups(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.integers(1, 10**5, n).astype(float), rng.exponential(10.0, n))


def _prefixes(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_sizes(rng, n), 1e-17 * _sizes(rng, n), _sizes(rng, n))


def _eps(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_p(rng, n) - 1.0)


def _widths(rng: np.random.Generator, n: int) -> list[Case]:
    eps = _p(rng, n) - 1.0
    curvature = [formulas.catoni_curvature(each) for each in eps.tolist()]
    L = rng.exponential(5.0, n)
    return _columns(
        np.floor(2 * L) + rng.integers(1, 10**5, n), L, eps, 10.0 ** rng.uniform(-60, 200, n), curvature
    )


def _psi(rng: np.random.Generator, n: int) -> list[Case]:
    eps = _p(rng, n) - 1.0
    curvature = [formulas.catoni_curvature(each) for each in eps.tolist()]
    return _columns(np.abs(_sizes(rng, n)), eps, curvature)


def _steps(rng: np.random.Generator, n: int) -> list[Case]:
    low = rng.standard_cauchy(n)
    high = low + rng.exponential(1.0, n)
    theta = low + (high - low) * rng.random(n)
    f = np.where(rng.random(n) < 0.1, 0.0, rng.standard_normal(n))
    return _columns(
        theta,
        low,
        high,
        rng.exponential(1.0, n),
        f,
        np.abs(f) + 1.0,
        rng.uniform(0.1, 9.0, n),
        rng.integers(0, 60, n),
    )


def _consensus(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(
        rng.standard_cauchy(n),
        rng.uniform(0.01, 1e4, n),
        rng.integers(1, 500, n).astype(float),
        rng.exponential(50.0, n),
        rng.exponential(9.0, n),
        rng.uniform(1e-3, 0.5, n),
    )


def _averages(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(
        _sizes(rng, n), _sizes(rng, n), rng.integers(0, 50, n).astype(float), rng.uniform(0, 0.02, n)
    )


COMPARISONS = (
    Comparison("leaving_level", running.leaving_level, formulas.leaving_level, _trimming),
    Comparison("shrinkage", state.shrinkage, formulas.shrinkage, _shrinking),
    Comparison("radius_scale", state.radius_scale, formulas.radius_scale, _radii),
    Comparison("factor_scale", state.factor_scale, formulas.factor_scale, _factors),
    Comparison("upper_index", block.upper_index, formulas.upper_index, _indices),
    Comparison("group_count", stored.group_count, formulas.group_count, _groups),
    Comparison("add_to_prefix", stored.add_to_prefix, formulas.add_to_prefix, _prefixes),
    Comparison("catoni_curvature", stored.catoni_curvature, formulas.catoni_curvature, _eps),
    Comparison("catoni_width", stored.catoni_width, formulas.catoni_width, _widths),
    Comparison("catoni_psi", stored.catoni_psi, formulas.catoni_psi, _psi, ulps=2),
    Comparison("catoni_step", stored.catoni_step, formulas.catoni_step, _steps),
    Comparison("consensus_index", consensus.consensus_index, formulas.consensus_index, _consensus),
    Comparison("consensus_average", consensus.consensus_average, formulas.consensus_average, _averages),
)
