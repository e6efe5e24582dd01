"""Every compiled formula beside the plain one: the tests hold them together, the benchmark times them.

Powers and logarithms come from the same library in both, so the bits are the same; but numpy, which the
plain form uses on arrays, has a logarithm of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rumormill import counter_rng as plain_keyed
from rumormill import formulas
from rumormill.kernels import (
    beliefs,
    consensus,
    counter_rng,
    decide,
    lossy_delivery,
    means_sketch,
    means_stored,
    means_sums,
    origins,
    state,
    thompson,
)
from rumormill.kernels.jit import alone
from rumormill.kernels.simd import argmax_index

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


def _units(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(np.append(rng.uniform(-1, 1, n - 3), [0.0, 1.0, -1.0]))


def _stable(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.random(n), rng.standard_exponential(n), rng.uniform(0.05, 2.0, n))


def _p(rng: np.random.Generator, n: int) -> Any:
    return np.where(rng.random(n) < 0.2, 2.0, 1.001 + 0.999 * rng.random(n))


def _trimming(rng: np.random.Generator, n: int) -> list[Case]:
    ranks = rng.integers(1, 10**6, n).astype(float)
    return _columns(10.0 ** rng.uniform(-120, 200, n), ranks, 10.0 ** rng.uniform(-60, 200, n))


def _powers(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_sizes(rng, n), _p(rng, n))


def _origins(rng: np.random.Generator, n: int) -> list[Case]:
    ranks, L = rng.integers(1, 10**6, n).astype(float), rng.exponential(10.0, n) + 0.5
    return _columns(ranks, L, 10.0 ** rng.uniform(-60, 200, n), _p(rng, n))


def _snakes(rng: np.random.Generator, n: int) -> list[Case]:
    groups = 2 * rng.integers(0, 20, n) + 1
    return _columns(rng.integers(0, groups), rng.choice([-1, 1], n), groups)


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


def _counts(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(
        rng.uniform(0.01, 1e4, n), rng.integers(1, 500, n).astype(float), rng.exponential(50.0, n)
    )


def _series(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.uniform(-formulas.SERIES_RANGE, formulas.SERIES_RANGE, n), rng.uniform(1e-3, 0.5, n))


def _near(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.uniform(0.0, formulas.NEAR, n), *(rng.uniform(1e-3, 0.5, n) for _ in range(3)))


def _exponents(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.uniform(1e-3, 0.5, n))


def _averages(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(
        _sizes(rng, n), _sizes(rng, n), rng.integers(0, 50, n).astype(float), rng.uniform(0, 0.02, n)
    )


def _clip_levels(rng: np.random.Generator, n: int) -> list[Case]:
    L = np.where(rng.random(n) < 0.1, 0.0, rng.exponential(8.0, n))
    return _columns(rng.integers(1, 10**6, n).astype(float), L, 10.0 ** rng.uniform(-60, 200, n), _p(rng, n))


def _clips(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_sizes(rng, n), rng.exponential(5.0, n), rng.exponential(5.0, n))


def _sketch(rng: np.random.Generator) -> tuple[Any, int, float, float]:
    """A list of largest samples, as it may be at any time: top, filled, rest, squares."""
    room, n = int(rng.integers(1, 9)), int(rng.integers(0, 30))
    top, filled, rest, squares = np.zeros(room), 0, 0.0, 0.0
    ties = rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], n)
    for y in np.where(rng.random(n) < 0.5, ties, rng.standard_cauchy(n)).tolist():
        filled, rest, squares = formulas.sketch_add(top, filled, y, rest, squares)
    return top, filled, rest, squares


def _additions(rng: np.random.Generator, n: int) -> list[Case]:
    found = []
    for y in _sizes(rng, n // 10).tolist():
        top, filled, rest, squares = _sketch(rng)
        found.append((top, filled, y, rest, squares))
    return found


def _clipsums(rng: np.random.Generator, n: int) -> list[Case]:
    found = []
    for _ in range(n // 10):
        top, filled, rest, _squares = _sketch(rng)
        found.append((top, filled, rest, float(rng.exponential(2.0)), float(rng.exponential(2.0))))
    return found


def _roots(rng: np.random.Generator, n: int) -> list[Case]:
    found = []
    for _ in range(n // 10):
        top, filled, _rest, squares = _sketch(rng)
        found.append((top, filled, squares, float(rng.exponential(2.0))))
    return found


def _on_a_copy(add: Callable[..., Any]) -> Callable[..., Any]:
    """What an addition returns and what it leaves behind, without changing the case."""

    def added(top: Any, *rest: Any) -> list[float]:
        copy = top.copy()
        return [*add(copy, *rest), *copy]

    return added


def _discounts(rng: np.random.Generator, n: int) -> list[Case]:
    counts, weights, L = rng.exponential(50.0, n), rng.random(n), rng.exponential(8.0, n)
    return _columns(counts, _sizes(rng, n), weights, _sizes(rng, n), L, rng.exponential(5.0, n), _p(rng, n))


def _distances(rng: np.random.Generator, n: int) -> list[Case]:
    centres = rng.integers(-2, 3, n).astype(float)
    return _columns(rng.integers(-9, 10, n) / 2.0, centres, rng.integers(0, 4, n) / 2.0)


def _references(rng: np.random.Generator, n: int) -> list[Case]:
    """64 first samples, with ties."""
    size = formulas.CUSUM_BEGIN + formulas.CUSUM_REFERENCE
    return [
        (np.round(rng.standard_cauchy(size), 1), float(rng.normal()), bool(i % 2)) for i in range(n // 40)
    ]


def _cusums(rng: np.random.Generator, n: int) -> list[Case]:
    """Samples before, at and beyond the 64th, near the alarm too."""
    found = []
    for i in range(n // 20):
        cusum = np.round(rng.standard_cauchy(formulas.CUSUM_BEGIN + formulas.CUSUM_REFERENCE), 1)
        cusum[1], cusum[3], cusum[4] = rng.exponential(), *rng.uniform(30.0, 42.0, 2)
        found.append((float(rng.standard_cauchy()), (3, 64, 65, 900)[i % 4], cusum))
    return found


def _with_its_cusum(alarms: Callable[..., Any]) -> Callable[..., Any]:
    """Whether an alarm is raised and what is left behind, without changing the case."""

    def alarmed(x: float, n: int, cusum: Any) -> list[float]:
        copy = cusum.copy()
        return [alarms(x, n, copy), *copy]

    return alarmed


def _four(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(*(rng.exponential(3.0, n) for _ in range(4)))


def _three(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(*(rng.exponential(3.0, n) for _ in range(3)))


def _two(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_sizes(rng, n), _sizes(rng, n))


def _positive(rng: np.random.Generator, n: int) -> list[Case]:
    return [case[:2] for case in _four(rng, n)]


def _uniforms(rng: np.random.Generator, n: int) -> list[Case]:
    """Also the ends of the unit interval, where the quantile is largest."""
    return [(u,) for u in (0.0, 2.0**-53, 0.5, 1.0 - 2.0**-53, *rng.random(n).tolist())]


def _probes(rng: np.random.Generator, n: int) -> list[Case]:
    counts = rng.integers(0, 10, n).astype(float), rng.integers(0, 1_000, n).astype(float)
    return _columns(*counts, rng.integers(1, 200, n).astype(float))


def _bins(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(_sizes(rng, n), 10.0 ** rng.uniform(-3, 3, n))


def _ranks(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.integers(1, 10**5, n).astype(float), rng.exponential(9.0, n))


def _phis(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.uniform(1.0, 1e5, n), 10.0 ** rng.uniform(-3, 8, n))


def _moss_clips(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.uniform(1e-6, 2.0, n), rng.exponential(3.0, n), _p(rng, n))


def _moss_reaches(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.uniform(1e-6, 2.0, n), rng.exponential(3.0, n), rng.uniform(1e-3, 0.5, n))


def _walks(rng: np.random.Generator, n: int) -> list[Case]:
    ranks = rng.integers(1, 10**5, n).astype(float)
    return _columns(rng.standard_normal(n), _sizes(rng, n), ranks, rng.exponential(3.0, n))


def _spreads(rng: np.random.Generator, n: int) -> list[Case]:
    middles = np.where(rng.random(n) < 0.5, 0.0, rng.exponential(2.0, n))
    return _columns(middles, rng.exponential(9.0, n), rng.integers(1, 99, n).astype(float))


def _huber(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.exponential(9.0, n), rng.integers(1, 10**5, n).astype(float), rng.exponential(2.0, n))


def _beginnings(rng: np.random.Generator, n: int) -> list[Case]:
    found = []
    for _ in range(n):
        n_arms = int(rng.integers(1, 7))
        counts = rng.integers(0, 3, n_arms).astype(float)
        found.append((int(rng.integers(1, n_arms + 1)), int(rng.integers(0, 50)), counts))
    return found


def _sendings(rng: np.random.Generator, n: int) -> list[Case]:
    found = []
    for _ in range(n):
        n_arms = int(rng.integers(2, 7))
        means = rng.choice([0.0, 1.0, 2.0, np.inf, np.nan], n_arms)
        counts = rng.integers(1, 20, n_arms).astype(float)
        theta = float(rng.choice([0.0, 0.25, 1.0, 3.0]))
        found.append((int(rng.integers(0, n_arms)), means, counts, theta))
    return found


def _source_clips(rng: np.random.Generator, n: int) -> list[Case]:
    agents = rng.integers(1, 500, n).astype(float)
    return _columns(rng.exponential(50.0, n), agents, 10.0 ** rng.uniform(-60, 200, n), _p(rng, n))


def _delayed(rng: np.random.Generator, n: int) -> list[Case]:
    counts = 10.0 ** rng.uniform(-9, 4, n)
    return _columns(
        rng.standard_cauchy(n), counts, rng.integers(1, 500, n).astype(float), rng.exponential(5.0, n)
    )


def _delays(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(
        rng.integers(1, 10**6, n).astype(float), rng.exponential(2.0, n), rng.uniform(1.0, 3.0, n)
    )


def _keys(rng: np.random.Generator, n: int) -> list[Case]:
    """Words of 64 bits: compiled code takes them for unsigned only if they are."""
    return [(key,) for key in rng.integers(0, 1 << 64, n, dtype=np.uint64)]


def _keys_and_numbers(rng: np.random.Generator, n: int) -> list[Case]:
    return [(key, np.uint64(x)) for (key,), x in zip(_keys(rng, n), rng.integers(0, 2**31, n), strict=True)]


def _late(rng: np.random.Generator, n: int) -> list[Case]:
    return _columns(rng.random(n), rng.integers(0, 50, n))


def _geometric(rng: np.random.Generator, n: int) -> list[Case]:
    q = np.where(rng.random(n) < 0.1, 1.0, 1e-6 + (1 - 1e-6) * rng.random(n))
    return _columns(rng.random(n), q, rng.integers(0, 50, n))


COMPARISONS = (
    Comparison("mix", counter_rng.mix, lambda key: plain_keyed.mix(int(key)), _keys),
    Comparison(
        "key_with",
        counter_rng.key_with,
        lambda key, x: plain_keyed.key_with(int(key), int(x)),
        _keys_and_numbers,
    ),
    Comparison("uniform_at", counter_rng.uniform_at, lambda key: plain_keyed.uniform_at(int(key)), _keys),
    Comparison("even_delay", counter_rng.even_delay, plain_keyed.even_delay, _late),
    Comparison("geometric_delay", counter_rng.geometric_delay, plain_keyed.geometric_delay, _geometric),
    Comparison("quarter_sine", counter_rng.quarter_sine, formulas.quarter_sine, _units),
    Comparison("centred", counter_rng.centred, formulas.centred, lambda rng, n: _columns(rng.random(n))),
    Comparison("stable_parts", counter_rng.stable_parts, formulas.stable_parts, _stable),
    Comparison("power_of_size", means_sums.power_of_size, formulas.power_of_size, _powers),
    Comparison("leaving_level", means_sums.leaving_level, formulas.leaving_level, _trimming),
    Comparison("shrinkage", state.shrinkage, formulas.shrinkage, _shrinking),
    Comparison("upper_index", decide.upper_index, formulas.upper_index, _indices),
    Comparison("group_count", means_stored.group_count, formulas.group_count, _groups),
    Comparison("add_to_prefix", means_stored.add_to_prefix, formulas.add_to_prefix, _prefixes),
    Comparison("catoni_curvature", means_stored.catoni_curvature, formulas.catoni_curvature, _eps),
    Comparison("catoni_width", means_stored.catoni_width, formulas.catoni_width, _widths),
    Comparison("catoni_psi", means_stored.catoni_psi, formulas.catoni_psi, _psi, ulps=2),
    Comparison("catoni_step", means_stored.catoni_step, formulas.catoni_step, _steps),
    Comparison("consensus_index", consensus.consensus_index, formulas.consensus_index, _consensus),
    Comparison("effective_count", consensus.effective_count, formulas.effective_count, _counts),
    Comparison("shrinkage_near", argmax_index.shrinkage_near, formulas.shrinkage_near, _near),
    Comparison("shrinkage_series", decide.shrinkage_series, formulas.shrinkage_series, _exponents),
    Comparison("power_series", consensus.power_series, formulas.power_series, _series),
    Comparison("consensus_average", consensus.consensus_average, formulas.consensus_average, _averages),
    Comparison("source_clip", consensus.source_clip, formulas.source_clip, _source_clips),
    Comparison("delayed_index", consensus.delayed_index, formulas.delayed_index, _delayed),
    Comparison("delayed_scale", consensus.delayed_scale, formulas.delayed_scale, _delays),
    Comparison("chebyshev_step", consensus.chebyshev_step, formulas.chebyshev_step, _four),
    Comparison("shared_arm", decide.shared_arm, formulas.shared_arm, _beginnings),
    Comparison("worth_sending", decide.worth_sending, formulas.worth_sending, _sendings),
    Comparison("clip_level", means_sketch.clip_level, formulas.clip_level, _clip_levels),
    Comparison("clipped", means_sketch.clipped, formulas.clipped, _clips),
    Comparison(
        "sketch_add", _on_a_copy(alone(means_sketch.sketch_add)), _on_a_copy(formulas.sketch_add), _additions
    ),
    Comparison("sketch_clipsum", means_sketch.sketch_clipsum, formulas.sketch_clipsum, _clipsums),
    Comparison("sketch_root", means_sketch.sketch_root, formulas.sketch_root, _roots),
    Comparison("tuned_reach", means_sketch.tuned_reach, formulas.tuned_reach, _four),
    Comparison("histogram_bin", means_sketch.histogram_bin, formulas.histogram_bin, _bins),
    Comparison("origin_clip", origins.origin_clip, formulas.origin_clip, _origins),
    Comparison("snake_step", origins.snake_step, formulas.snake_step, _snakes),
    Comparison("upper_rank", means_sketch.upper_rank, formulas.upper_rank, _ranks),
    Comparison("moss_phi", means_sketch.moss_phi, formulas.moss_phi, _phis),
    Comparison("moss_clip", means_sketch.moss_clip, formulas.moss_clip, _moss_clips),
    Comparison("moss_reach", means_sketch.moss_reach, formulas.moss_reach, _moss_reaches),
    Comparison("huber_scale", means_sketch.huber_scale, formulas.huber_scale, _spreads),
    Comparison("huber_step", means_sketch.huber_step, formulas.huber_step, _walks),
    Comparison("huber_reach", means_sketch.huber_reach, formulas.huber_reach, _huber),
    Comparison("inverse_normal", thompson.inverse_normal, formulas.inverse_normal, _uniforms),
    Comparison("central_normal", thompson.central_normal, formulas.central_normal, _uniforms),
    Comparison("draw_spread", thompson.draw_spread, formulas.draw_spread, _positive),
    Comparison("sketch_clipsquares", beliefs.sketch_clipsquares, formulas.sketch_clipsquares, _clipsums),
    Comparison("prior_reach", decide.prior_reach, formulas.prior_reach, _three),
    Comparison("prior_contradicted", decide.prior_contradicted, formulas.prior_contradicted, _four),
    Comparison("prior_mean", decide.prior_mean, formulas.prior_mean, _four),
    Comparison("pooled_index", decide.pooled_index, formulas.pooled_index, _four),
    Comparison("prior_floor", decide.prior_floor, formulas.prior_floor, _two),
    Comparison("discounted_sum", lossy_delivery.discounted_sum, formulas.discounted_sum, _discounts),
    Comparison("cusum_step", lossy_delivery.cusum_step, formulas.cusum_step, _distances),
    Comparison("cusum_middle", lossy_delivery.cusum_middle, formulas.cusum_middle, _references),
    Comparison(
        "cusum_alarms",
        _with_its_cusum(alone(lossy_delivery.cusum_alarms)),
        _with_its_cusum(formulas.cusum_alarms),
        _cusums,
    ),
    Comparison("needs_probe", decide.needs_probe, formulas.needs_probe, _probes),
)
