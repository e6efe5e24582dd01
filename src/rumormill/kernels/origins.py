"""Samples by origin, and medians over groups of origins (as in `policies/origin_median.py`).

Per arm and learner the origins are sorted: most samples first, then by id. A sample moves its origin up a few
places at most, so the order is maintained instead of sorted anew.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rumormill import formulas
from rumormill.kernels.jit import part, step
from rumormill.kernels.means_stored import select
from rumormill.kernels.state import Floats, Ids, Memory, Rules, shrinkage

origin_clip = part(formulas.origin_clip)
snake_group = part(formulas.snake_group)
upper_index = part(formulas.upper_index)

# Which samples the confidence radius counts.
ALL, TRIMMED, CAUTIOUS = 0, 1, 2


class Origins(NamedTuple):
    """[arm, learner, origin] unless said otherwise; empty where samples are not kept by origin."""

    f: int
    most: int
    """Groups, at most."""
    counting: int
    root: float
    """u^(1/p)."""
    n: Floats
    total: Floats
    order: Ids
    """[arm, learner, place]: the origins with samples, `n_origins` of them."""
    place: Ids
    n_origins: Ids
    """[arm, learner]."""
    group_n: Floats
    """[group], and in `group_mean` their means: for one arm of one learner at a time."""
    group_mean: Floats
    newest: Ids
    """[learner, origin]: the round of its newest row (KMP with a guard; empty without)."""
    row_mean: Floats
    """The newest row of an origin."""
    row_n: Floats
    indices: Floats
    """[origin]: the UCB indices of the rows, for one arm of one learner at a time."""


@part
def add_from_origin(
    arm: int, v: int, origin: int, x: float, L: float, root: float, p: float, origins: Origins
) -> None:
    """Add a sample of an origin, clipped once by its rank among the samples of that origin."""
    n_of, order, place = origins.n[arm, v], origins.order[arm, v], origins.place[arm, v]
    n_of[origin] += 1.0
    n = n_of[origin]
    most = origin_clip(n, L, root, p)
    origins.total[arm, v, origin] += min(max(x, -most), most)
    at = place[origin]
    if n == 1.0:
        at = origins.n_origins[arm, v]
        origins.n_origins[arm, v] += 1
    while at > 0:
        before = order[at - 1]
        if n_of[before] > n or (n_of[before] == n and before < origin):
            break
        order[at] = before
        place[before] = at
        at -= 1
    order[at] = origin
    place[origin] = at


@step
def estimate_by_origins(t: int, rules: Rules, memory: Memory, origins: Origins) -> None:
    """The estimate, its count and the index of every arm, for learners whose means are used."""
    state, upper, needs_mean = memory.state, memory.general.sketches.upper, memory.general.needs_mean
    scale, least = rules.scale[t], rules.least_n[t]
    for arm in range(rules.n_arms):
        for v in range(upper.shape[1]):
            if not needs_mean[v]:
                continue
            mean, n = _of_groups(arm, v, origins)
            own_mean, own_n = _own(arm, v, origins)
            state.mean[arm, v], state.n[arm, v] = mean, n
            upper[arm, v] = min(
                _index(own_mean, own_n, scale, least, rules.exponent),
                _index(mean, n, scale, least, rules.exponent),
            )
            if origins.newest.shape[0] > 0:
                middle = _middle_of_rows(arm, v, scale, least, rules.exponent, origins)
                upper[arm, v] = min(upper[arm, v], middle)


@part
def _middle_of_rows(arm: int, v: int, scale: float, least: float, exponent: float, origins: Origins) -> float:
    """The median of the UCB indices of the rows received, if there are more than 2f."""
    count, indices = 0, origins.indices
    for origin in range(indices.shape[0]):
        n = origins.row_n[arm, v, origin]
        if n > 0.0:
            indices[count] = _index(origins.row_mean[arm, v, origin], n, scale, least, exponent)
            count += 1
    return select(indices, count, count // 2) if count > 2 * origins.f else math.inf


@part
def store_row(when: int, v: int, arm: int, origin: int, mean: float, n: float, origins: Origins) -> None:
    """Store the newest row of an origin."""
    origins.row_mean[arm, v, origin] = mean
    origins.row_n[arm, v, origin] = n
    origins.newest[v, origin] = when


@part
def _index(mean: float, n: float, scale: float, least: float, exponent: float) -> float:
    return math.inf if n < least else upper_index(mean, scale, shrinkage(n, exponent))


@part
def _own(arm: int, v: int, origins: Origins) -> tuple[float, float]:
    n = origins.n[arm, v, v]
    return (origins.total[arm, v, v] / n if n > 0.0 else math.inf), n


@part
def _of_groups(arm: int, v: int, origins: Origins) -> tuple[float, float]:
    """The median over groups and its sample count; the own mean where there are few origins."""
    n_origins, f = origins.n_origins[arm, v], origins.f
    if n_origins <= 2 * f:
        return _own(arm, v, origins)
    groups = min(origins.most, n_origins - 1 + n_origins % 2)
    counts, means = origins.group_n, origins.group_mean
    for g in range(groups):
        counts[g], means[g] = 0.0, 0.0
    for place in range(n_origins):
        origin = origins.order[arm, v, place]
        g = snake_group(place, groups)
        counts[g] += origins.n[arm, v, origin]
        means[g] += origins.total[arm, v, origin]
    for g in range(groups):
        means[g] /= counts[g]
    _sort(means, groups)
    _sort(counts, groups)
    total = 0.0
    for g in range(groups - f if origins.counting == TRIMMED else groups):
        total += counts[g]
    if origins.counting == TRIMMED:
        total = groups / (groups - f) * total
    elif origins.counting == CAUTIOUS:
        total = min(total, groups * counts[groups // 2 - f])
    return means[groups // 2], total


@part
def _sort(values: Floats, n: int) -> None:
    for i in range(1, n):
        x, at = values[i], i
        while at > 0 and values[at - 1] > x:
            values[at] = values[at - 1]
            at -= 1
        values[at] = x
