"""Samples kept apart by origin, and medians over groups of origins (as in `policies/origin_median.py`).

Per arm and learner the origins stand in order: most samples first, then by id. A sample moves its origin up a
few places at most, so the order is kept rather than made.
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

# What the radius counts.
ALL, TRIMMED, CAUTIOUS = 0, 1, 2


class Origins(NamedTuple):
    """[arm, learner, origin] unless said otherwise; empty where samples are not kept apart."""

    f: int
    most: int
    """Groups, at most."""
    counting: int
    root: float
    """u^(1/p)."""
    n: Floats
    total: Floats
    order: Ids
    """[arm, learner, place]: the origins heard of, so many as `heard` says."""
    place: Ids
    heard: Ids
    """[arm, learner]."""
    group_n: Floats
    """[group], and in `group_mean` their means: for one arm of one learner at a time."""
    group_mean: Floats
    newest: Ids
    """[learner, origin]: the round of its newest word (KMP with a guard; empty without)."""
    row_mean: Floats
    """What that word said."""
    row_n: Floats
    said: Floats
    """[origin]: the indices that rows amount to, of one arm of one learner at a time."""


@part
def take_of_origin(
    arm: int, v: int, origin: int, x: float, L: float, root: float, p: float, origins: Origins
) -> None:
    """One more sample of an origin, clipped for ever by how many came before."""
    n_of, order, place = origins.n[arm, v], origins.order[arm, v], origins.place[arm, v]
    n_of[origin] += 1.0
    n = n_of[origin]
    most = origin_clip(n, L, root, p)
    origins.total[arm, v, origin] += min(max(x, -most), most)
    at = place[origin]
    if n == 1.0:
        at = origins.heard[arm, v]
        origins.heard[arm, v] += 1
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
def judge_by_origins(t: int, rules: Rules, memory: Memory, origins: Origins) -> None:
    """The estimate, its count and the index of every arm, for those who ask."""
    state, upper = memory.state, memory.streams.upper
    scale, least = rules.scale[t], rules.least_n[t]
    for arm in range(rules.n_arms):
        for v in range(upper.shape[1]):
            if not state.asks[v]:
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
    """The middle one of the indices that the rows heard amount to, if there are more than 2f."""
    count, said = 0, origins.said
    for origin in range(said.shape[0]):
        n = origins.row_n[arm, v, origin]
        if n > 0.0:
            said[count] = _index(origins.row_mean[arm, v, origin], n, scale, least, exponent)
            count += 1
    return select(said, count, count // 2) if count > 2 * origins.f else math.inf


@part
def note_row(when: int, v: int, arm: int, origin: int, mean: float, n: float, origins: Origins) -> None:
    """What an origin knew of an arm, by its newest word."""
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
    """The median over groups and what it counts for; the own where there are few origins."""
    heard, f = origins.heard[arm, v], origins.f
    if heard <= 2 * f:
        return _own(arm, v, origins)
    groups = min(origins.most, heard - 1 + heard % 2)
    counts, means = origins.group_n, origins.group_mean
    for g in range(groups):
        counts[g], means[g] = 0.0, 0.0
    for place in range(heard):
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
