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
snake_step = part(formulas.snake_step)
upper_index = part(formulas.upper_index)

# Its scale, the fewest samples, and powers of counts: in one round.
Radius = tuple[float, float, Floats, float]
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
    if abs(x) > (1.0 - 1e-9) * root:  # smaller ones are clipped at no rank
        most = origin_clip(n, L, root, p)
        x = min(max(x, -most), most)
    origins.total[arm, v, origin] += x
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
    state, general, upper = memory.state, memory.general, memory.general.sketches.upper
    radius = rules.scale[t], rules.least_n[t], rules.powers, rules.exponent
    for v in range(upper.shape[1]):
        for arm in range(rules.n_arms if general.needs_mean[v] else 0):
            if general.known[arm, v] < 0.0:  # there are new samples
                state.mean[arm, v], state.n[arm, v] = _of_groups(arm, v, origins)
                general.known[arm, v] = 0.0
            mean, n = _own(arm, v, origins)
            upper[arm, v] = min(_index(mean, n, radius), _index(state.mean[arm, v], state.n[arm, v], radius))
        lowers = general.needs_mean[v] and origins.newest.shape[0] > 0
        while lowers:  # until the largest index stays: no other can become the largest
            best = 0
            for arm in range(1, rules.n_arms):
                best = arm if upper[arm, v] > upper[best, v] else best
            middle = _middle_of_rows(best, v, upper[best, v], radius, origins)
            lowers = middle < upper[best, v]
            upper[best, v] = middle


@step
def _middle_of_rows(arm: int, v: int, most: float, radius: Radius, origins: Origins) -> float:
    """The median of the UCB indices of the rows received, if there are more than 2f, and at most `most`."""
    count, below, indices = 0, 0, origins.indices
    for origin in range(indices.shape[0]):
        n = origins.row_n[arm, v, origin]
        if n > 0.0:
            indices[count] = _index(origins.row_mean[arm, v, origin], n, radius)
            below += indices[count] < most
            count += 1
    return select(indices, count, count // 2) if count > 2 * origins.f and below > count // 2 else most


@part
def _index(mean: float, n: float, radius: Radius) -> float:
    scale, least, powers, exponent = radius
    if n < least:
        return math.inf
    at = int(n) if n < powers.shape[0] else 0  # counts of trimmed groups need not be whole
    return upper_index(mean, scale, powers[at] if at == n else shrinkage(n, exponent))


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
    counts, means, group, turn = origins.group_n, origins.group_mean, 0, 1
    n_of, total_of, order = origins.n[arm, v], origins.total[arm, v], origins.order[arm, v]
    for g in range(groups):
        counts[g], means[g] = 0.0, 0.0
    for place in range(n_origins):
        counts[group] += n_of[order[place]]
        means[group] += total_of[order[place]]
        group, turn = snake_step(group, turn, groups)
    for g in range(groups):
        means[g] /= counts[g]
    if origins.counting == TRIMMED:
        select(counts, groups, groups - f - 1)  # the smaller ones in front
    total = 0.0
    for g in range(groups - f if origins.counting == TRIMMED else groups):
        total += counts[g]
    if origins.counting == TRIMMED:
        total = groups / (groups - f) * total
    elif origins.counting == CAUTIOUS:
        total = min(total, groups * select(counts, groups, groups // 2 - f))
    return select(means, groups, groups // 2), total
