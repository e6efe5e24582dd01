"""The rule of `rm.Default()` for one agent: docs/semantics.md, "The default".

Plain functions over a `Beliefs`, whose fields are lists (agents) or arrays (kernels, which compile these very
functions): both get the same bits.
"""

from __future__ import annotations

import math
from bisect import insort
from typing import Any, NamedTuple

from rumormill.formulas import huber_scale, sketch_add, sketch_clipsquares, sketch_clipsum, sketch_root

ROOM, LEAST_ROOM, ROOM_OF_ALL = 400, 100, 8000
TOP = 64
GROWTH = 1.15
LAMBDAS = (0.7, 1.0, 1.5, 2.0, 3.0, 4.5)
FIRST_LAMBDA, LAMBDA_FROM = 2.0, 100.0
HUBER_STEPS, HUBER_CLOSE = 20, 1e-7
PRIOR, LEAST_SLOPE = 10.0, 0.2
SHARE, SHARE_OF_SHAPES = 8.0, 16.0
LARGE, WEIGHT, LEAST_WEIGHT = 4, 1.5, 0.1
SHAPE_FROM = 8
SHAPE_ENTER, SHAPE_LEAVE = 3.5, 2.5
SKEWED, SCALE_ERROR, SCALE_LEVEL, DOUBT_LEAVE, ROUNDING = 6.0, 1.2, 2.0, 1.5, 1e-9
ARM_SKEWED, ARM_SKEWED_ERROR = 0.2, 1.5
LARGEST_INDEX, TAIL_PART = 0.8, 0.25
OMEGA, MEAN_GROWTH = 16.0, 1.02

# Places in Beliefs.now; 6 is free, saved states have it.
FITTED, CLIP, NEXT_FIT, MEANS, POOLED_SQUARE, POOLED_INSIDE, BOUNDED = 0, 1, 2, 3, 4, 5, 7
NOW = 8


class Beliefs(NamedTuple):
    """What one agent knows of the arms; [arm] unless said otherwise."""

    n: Any
    """Samples in the estimates."""
    store: Any
    """[arm][.]: the first samples, sorted."""
    centre: Any
    """Location at the last fit; the sums of ψ, of ψ² and the number of samples inside are about it."""
    psi: Any
    square: Any
    inside: Any
    origin: Any
    """Median at the first fit; the sketch is about it."""
    top: Any
    """[arm][.]: the largest |y|, y = x - origin, and the sums of y and y² over the rest."""
    filled: Any
    rest: Any
    squares: Any
    fitted_n: Any
    """n at the last fit."""
    known: Any
    """n for which `value` and `spread` hold; -1: none."""
    value: Any
    spread: Any
    share: Any
    """f: at least f ln(1 + N) samples."""
    now: Any
    """[NOW]: numbers of the agent."""


def store_room(n_arms: int) -> int:
    """How many samples of an arm are stored."""
    return max(LEAST_ROOM, min(ROOM, ROOM_OF_ALL // n_arms))


def pilot_size(n_arms: int) -> int:
    """Samples of every arm before the first fit."""
    return max(2, min(5, (29 + n_arms) // n_arms))


def insert_sorted(store: Any, filled: int, x: float) -> None:
    """Put x into its place among the first `filled` sorted numbers, behind those that are not larger."""
    insort(store, x, 0, filled)
    store.pop()


def add_sample(beliefs: Beliefs, arm: int, x: float) -> None:
    """One more sample; before the first fit only as many of an arm as are stored."""
    n, room, fitted = beliefs.n[arm], len(beliefs.store[arm]), beliefs.now[FITTED] > 0.0
    if n < room:
        insert_sorted(beliefs.store[arm], int(n), x)
    elif not fitted:
        return
    beliefs.n[arm] = n + 1.0
    if fitted:
        y, c = x - beliefs.centre[arm], beliefs.now[CLIP]
        clipped = min(max(y, -c), c)
        beliefs.psi[arm] += clipped
        beliefs.square[arm] += clipped * clipped
        if clipped == y:
            beliefs.inside[arm] += 1.0
        add_to_sketch(beliefs, arm, x - beliefs.origin[arm])


def add_to_sketch(beliefs: Beliefs, arm: int, y: float) -> None:
    """One more y of an arm."""
    filled, rest, squares = sketch_add(
        beliefs.top[arm], beliefs.filled[arm], y, beliefs.rest[arm], beliefs.squares[arm]
    )
    beliefs.filled[arm] = filled
    beliefs.rest[arm] = rest
    beliefs.squares[arm] = squares


def median_of(store: Any, n: int) -> float:
    """The median of n sorted numbers; of two in the middle their mean."""
    half = n // 2
    middle: float = store[half] if n % 2 == 1 else 0.5 * (store[half - 1] + store[half])
    return middle


def middle_distance(store: Any, n: int, centre: float) -> float:
    """The (n + 1) // 2-th smallest distance of n sorted numbers from their median."""
    half, rank = n // 2, (n + 1) // 2
    low, high = max(0, rank - (n - half)), min(rank, half)
    while low < high:  # so many of them are below the median
        below = (low + high) // 2
        if centre - store[half - 1 - below] < store[half + rank - below - 1] - centre:
            low = below + 1
        else:
            high = below
    found = 0.0
    if low > 0:
        found = centre - store[half - low]
    if rank > low:
        found = max(found, store[half + rank - low - 1] - centre)
    return found


def numbers_within(store: Any, n: int, centre: float, c: float) -> tuple[int, int]:
    """Which of n sorted numbers are within c of their median: from the first place on, up to the second."""
    half = n // 2
    low, high = 0, half
    while low < high:
        middle = (low + high) // 2
        if centre - store[middle] <= c:
            high = middle
        else:
            low = middle + 1
    first, high = low, n
    low = half
    while low < high:
        middle = (low + high) // 2
        if store[middle] - centre <= c:
            low = middle + 1
        else:
            high = middle
    return first, low


def pooled_scale(beliefs: Beliefs, count: float) -> float:
    """The scale s of all stored samples about the medians of their arms."""
    sizes, middles = 0.0, 0.0
    for arm in range(len(beliefs.n)):
        n, store = int(beliefs.n[arm]), beliefs.store[arm]
        middles += n * middle_distance(store, n, median_of(store, n))
    if middles == 0.0:
        for arm in range(len(beliefs.n)):
            n, store = int(beliefs.n[arm]), beliefs.store[arm]
            centre = median_of(store, n)
            for i in range(n):
                sizes += abs(store[i] - centre)
    return huber_scale(middles / count, sizes, count)


def pooled_clip(beliefs: Beliefs, count: float) -> float:
    """The clipping point c = λ s of all stored samples, `count` of them, about the medians of their arms."""
    s = pooled_scale(beliefs, count)
    if s == 0.0 or count < LAMBDA_FROM:
        return FIRST_LAMBDA * s
    best, least, before, squares = 0.0, math.inf, -1.0, 0.0
    for lam in LAMBDAS:
        c, inside = lam * s, 0.0
        for arm in range(len(beliefs.n)):
            n, store = int(beliefs.n[arm]), beliefs.store[arm]
            centre = median_of(store, n)
            old_first, old_end = numbers_within(store, n, centre, before)
            first, end = numbers_within(store, n, centre, c)
            for i in range(first, old_first):
                squares += (store[i] - centre) * (store[i] - centre)
            for i in range(old_end, end):
                squares += (store[i] - centre) * (store[i] - centre)
            inside += end - first
        score = (squares + (count - inside) * (c * c)) * count / (inside * inside)
        if score < least:
            best, least = c, score
        before = c
    return best


def fit_location(beliefs: Beliefs, arm: int) -> None:
    """Huber's location of the stored samples of an arm, and the sums about it.

    Those within c are neighbours in sorted order: from step to step only the ends move.
    """
    n, store, c = int(beliefs.n[arm]), beliefs.store[arm], beliefs.now[CLIP]
    middle = median_of(store, n)
    theta, first, end, about, total, inside = middle, n // 2, n // 2, 0.0, 0.0, 0.0
    for step in range(HUBER_STEPS + 1):
        while first > 0 and store[first - 1] - theta >= -c:
            first -= 1
            about += store[first] - middle
        while end < n and store[end] - theta <= c:
            about += store[end] - middle
            end += 1
        while first < end and store[first] - theta < -c:
            about -= store[first] - middle
            first += 1
        while first < end and store[end - 1] - theta > c:
            end -= 1
            about -= store[end] - middle
        inside = float(end - first)
        total = about - inside * (theta - middle) + c * float(n - end - first)
        move = total / max(inside, LEAST_SLOPE * n)
        if step == HUBER_STEPS or abs(move) <= HUBER_CLOSE * c:
            break
        theta += move
    square = 0.0
    for i in range(first, end):
        square += (store[i] - theta) * (store[i] - theta)
    beliefs.centre[arm] = theta
    beliefs.psi[arm] = total
    beliefs.square[arm] = square + c * c * (n - inside)
    beliefs.inside[arm] = inside


def fit(beliefs: Beliefs) -> None:
    """Clipping point, locations and shape test, from all that was stored."""
    now, n_arms = beliefs.now, len(beliefs.n)
    total, most, room = 0.0, 0.0, len(beliefs.store[0])
    for arm in range(n_arms):
        total += beliefs.n[arm]
        most = max(most, beliefs.n[arm])
    first = now[FITTED] == 0.0
    if first or most <= room:
        now[CLIP] = pooled_clip(beliefs, total)
    for arm in range(n_arms):
        n = beliefs.n[arm]
        if n <= room and (most <= room or n > beliefs.fitted_n[arm]):
            fit_location(beliefs, arm)
        if first:
            beliefs.origin[arm] = median_of(beliefs.store[arm], int(n))
            for i in range(int(n)):
                add_to_sketch(beliefs, arm, beliefs.store[arm][i] - beliefs.origin[arm])
        beliefs.fitted_n[arm] = n
        beliefs.known[arm] = -1.0
    squares, inside = 0.0, 0.0
    for arm in range(n_arms):
        squares += beliefs.square[arm]
        inside += beliefs.inside[arm]
    now[POOLED_SQUARE] = squares / total
    now[POOLED_INSIDE] = inside / total
    now[FITTED] = 1.0
    now[NEXT_FIT] = GROWTH * total
    now[BOUNDED] = 1.0 if bounded(beliefs) else 0.0
    test_shapes(beliefs)


def bounded(beliefs: Beliefs) -> bool:
    """Whether some arm mostly pays the largest of all stored samples: such rewards have no upper tail.

    Where all samples are equal nothing is known of the largest.
    """
    room, least, largest, found = len(beliefs.store[0]), math.inf, -math.inf, False
    for arm in range(len(beliefs.n)):
        least = min(least, beliefs.store[arm][0])
        largest = max(largest, beliefs.store[arm][min(int(beliefs.n[arm]), room) - 1])
    for arm in range(len(beliefs.n)):
        n = min(int(beliefs.n[arm]), room)
        found = found or (n >= SHAPE_FROM and beliefs.store[arm][(n - 1) // 2] == largest)
    return found and largest > least


def join(beliefs: Beliefs, arm: int) -> None:
    """An arm that had no part in the first fit: a sketch of its stored samples, and a fit is due."""
    n = min(int(beliefs.n[arm]), len(beliefs.store[arm]))
    beliefs.n[arm] = float(n)
    beliefs.origin[arm] = median_of(beliefs.store[arm], n)
    beliefs.filled[arm], beliefs.rest[arm], beliefs.squares[arm] = 0, 0.0, 0.0
    for i in range(n):
        add_to_sketch(beliefs, arm, beliefs.store[arm][i] - beliefs.origin[arm])
    beliefs.now[NEXT_FIT] = 0.0


def test_shapes(beliefs: Beliefs) -> None:
    """Whether locations rank the arms as means do: sets MEANS.

    The arm with most samples (the lowest on ties) is compared with every other. If its law is skewed, mean
    and location differ by b, more than by rounding; if scales differ by a factor e^d, so do differences of
    locations, by b d. Tails that stored samples cannot tell apart show where means rank another arm first.
    """
    n_arms, room, now, most = len(beliefs.n), len(beliefs.store[0]), beliefs.now, 0
    for arm in range(n_arms):
        if beliefs.n[arm] > beliefs.n[most]:
            most = arm
    locate(beliefs)
    location, m = beliefs.value[most], min(int(beliefs.n[most]), room)
    bias, mean, pooled = 0.0, 0.0, skewed(beliefs)
    if pooled:
        update_mean(beliefs, most)
        mean = beliefs.value[most]
        bias = abs(mean - location)
    largest, doubt = 0.0, 0.0
    for arm in range(n_arms):
        n = min(int(beliefs.n[arm]), room)
        if arm != most and n >= SHAPE_FROM and m >= SHAPE_FROM:
            score = 0.0  # locations of symmetric laws are means, whatever their shapes
            if pooled or arm_skewed(beliefs.store[most], m) or arm_skewed(beliefs.store[arm], n):
                score = aligned_score(beliefs.store[arm], n, beliefs.store[most], m)
            largest = max(largest, score)
            reach = bias * SCALE_ERROR * (score + SCALE_LEVEL) * math.sqrt(1.0 / n + 1.0 / m)
            gap = location - beliefs.value[arm]
            if bias > ROUNDING * now[CLIP]:
                update_mean(beliefs, arm)
                if gap < reach or beliefs.value[arm] > mean:
                    doubt = 2.0
                elif gap < DOUBT_LEAVE * reach:
                    doubt = max(doubt, 1.0)
    for arm in range(n_arms):
        beliefs.known[arm] = -1.0
    if largest > SHAPE_ENTER or doubt == 2.0:
        now[MEANS] = 1.0
    elif largest < SHAPE_LEAVE and doubt == 0.0:
        now[MEANS] = 0.0


def skewed(beliefs: Beliefs) -> bool:
    """Whether the stored samples are skewed: the mean of the arms' octile skewness, weighted by samples."""
    room, count, total = len(beliefs.store[0]), 0.0, 0.0
    for arm in range(len(beliefs.n)):
        n, store = min(int(beliefs.n[arm]), room), beliefs.store[arm]
        count += n
        total += n * octile_skewness(store, n, 0.0)
    return abs(total) > SKEWED * math.sqrt(count)


def arm_skewed(store: Any, n: int) -> bool:
    """Whether the samples of an arm may be skewed: less evidence is asked for than of all together."""
    return abs(octile_skewness(store, n, 1.0)) > max(ARM_SKEWED, ARM_SKEWED_ERROR / math.sqrt(n))


def octile_skewness(store: Any, n: int, flat: float) -> float:
    """(Q(7/8) + Q(1/8) - 2 median) / (Q(7/8) - Q(1/8)); `flat` where these are equal.

    Its standard deviation is about 1/√n for Gaussian and 2/√n for Cauchy samples.
    """
    low, high = store[(n - 1) // 8], store[n - 1 - (n - 1) // 8]
    return (high + low - 2.0 * median_of(store, n)) / (high - low) if high > low else flat


def aligned_score(a: Any, n: int, b: Any, m: int) -> float:
    """The least score of two sorted samples over five shifts: their medians, quartiles, least, largest agree.

    Two laws that differ by a shift alone agree under one of them: the medians where the density is largest in
    the middle, the ends where there is an edge.
    """
    least = smooth_score(a, n, b, m, median_of(a, n) - median_of(b, m))
    for quarter in range(0, 5, 1):
        if least < SHAPE_LEAVE:
            break
        if quarter != 2:
            shift = a[(n - 1) * quarter // 4] - b[(m - 1) * quarter // 4]
            least = min(least, smooth_score(a, n, b, m, shift))
    return least


def smooth_score(a: Any, n: int, b: Any, m: int, shift: float) -> float:
    """Neyman's smooth test of two sorted samples, the second shifted: the largest of four scores.

    The mean over the first sample of the orthonormal Legendre polynomials of order 1 to 4 of its ranks among
    all, in standard deviations; equal numbers have their middle rank.
    """
    i, j = 0, 0
    count = float(n + m)
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    while i < n:
        x = a[i] - shift
        ties_a, ties_b = 0, 0
        while j < m and b[j] < x:
            j += 1
        while i + ties_a < n and a[i + ties_a] - shift == x:
            ties_a += 1
        while j + ties_b < m and b[j + ties_b] == x:
            ties_b += 1
        u = (i + j + 0.5 * (ties_a + ties_b)) / count
        first += ties_a * (2.0 * u - 1.0)
        second += ties_a * (1.0 + u * (6.0 * u - 6.0))
        third += ties_a * (u * (12.0 + u * (20.0 * u - 30.0)) - 1.0)
        fourth += ties_a * (1.0 + u * (u * (90.0 + u * (70.0 * u - 140.0)) - 20.0))
        i += ties_a
        j += ties_b
    largest = max(3.0 * first * first, 5.0 * second * second, 7.0 * third * third, 9.0 * fourth * fourth)
    return math.sqrt(largest * (count / (m * float(n))))


def update_values(beliefs: Beliefs) -> None:
    """Means or locations of all arms, their standard deviations and their shares, where n has changed."""
    if beliefs.now[MEANS] == 0.0:
        locate(beliefs)
        return
    for arm in range(len(beliefs.n)):
        if beliefs.known[arm] < 0.0 or beliefs.n[arm] > MEAN_GROWTH * beliefs.known[arm]:
            update_mean(beliefs, arm)


def locate(beliefs: Beliefs) -> None:
    """The locations of arms, their standard deviations and their shares, where n has changed."""
    pooled, square = beliefs.now[POOLED_INSIDE], beliefs.now[POOLED_SQUARE]
    share = SHARE_OF_SHAPES * LEAST_WEIGHT if beliefs.now[BOUNDED] > 0.0 else SHARE
    for arm in range(len(beliefs.n)):
        n, inside = beliefs.n[arm], beliefs.inside[arm]
        if beliefs.known[arm] != n:
            beliefs.value[arm] = location_value(beliefs.centre[arm], beliefs.psi[arm], n, inside, pooled)
            beliefs.spread[arm] = location_spread(beliefs.square[arm], n, inside, square, pooled)
            beliefs.share[arm] = share
            beliefs.known[arm] = n


def location_value(centre: float, psi: float, n: float, inside: float, pooled: float) -> float:
    """One more step of Huber's iteration from the centre."""
    slope = (inside + 5.0 * pooled) / (n + 5.0)
    return centre + psi / (n * max(slope, LEAST_SLOPE))


def location_spread(square: float, n: float, inside: float, pooled_square: float, pooled: float) -> float:
    """The standard deviation of a location."""
    slope = (inside + PRIOR * pooled) / (n + PRIOR)
    variance = (square + PRIOR * pooled_square) / (n + PRIOR) / n
    return math.sqrt(variance) / max(slope, 0.5 * LEAST_SLOPE)


def update_mean(beliefs: Beliefs, arm: int) -> None:
    """The mean of an arm, clipped below and hardly above, its standard deviation and its share."""
    n, top, filled = beliefs.n[arm], beliefs.top[arm], beliefs.filled[arm]
    low, unseen = math.inf, 0.0
    if filled <= LARGE or top[LARGE] == 0.0:
        # Hardly a sample differs from the median: as if one more were as large as any.
        for other in range(len(beliefs.n)):
            unseen = max(unseen, abs(beliefs.top[other][0]))
    else:
        low = sketch_root(top, filled, beliefs.squares[arm], float(LARGE))
        unseen = tail_error(top, min(filled, int(2.0 * math.sqrt(n))))
    total = sketch_clipsum(top, filled, beliefs.rest[arm], low, OMEGA * low)
    square = sketch_clipsquares(top, filled, beliefs.squares[arm], low, OMEGA * low)
    beliefs.value[arm] = beliefs.origin[arm] + total / n
    beliefs.spread[arm] = math.sqrt(square + unseen * unseen) / n
    largest = 0.0
    for i in range(min(filled, LARGE)):
        y = max(top[i], -low)
        largest += y * y
    weight = largest / square if square > 0.0 else 1.0
    weight = 0.0 if beliefs.now[BOUNDED] > 0.0 else weight
    beliefs.share[arm] = SHARE_OF_SHAPES * min(1.0, max(LEAST_WEIGHT, WEIGHT * weight))
    beliefs.known[arm] = n


def tail_error(top: Any, k: int) -> float:
    """A quarter of n times the error of the mean if beyond the k-th |y| there is a Pareto tail (Hill).

    Until the rare large rewards of an arm have come its mean is too low, and so is its spread.
    """
    edge: float = abs(top[k - 1])
    count, logs = 0.0, 0.0
    if edge == 0.0:
        return 0.0
    for i in range(k):
        if top[i] > 0.0:
            count += 1.0
            logs += math.log(top[i] / edge)
    index = min(logs / max(count, 1.0), LARGEST_INDEX)
    return TAIL_PART * math.sqrt(count) * edge * index / ((1.0 - index) * (1.0 - index))


def pilot_arm(t: int, agent: int, counts: Any, pilot: int) -> int:
    """The first arm with fewer than `pilot` samples from (t - 1 + agent) mod K on, in a circle; -1: none."""
    n_arms = len(counts)
    for i in range(n_arms):
        arm = (t - 1 + agent + i) % n_arms
        if counts[arm] < pilot:
            return arm
    return -1


def scarce_arm(beliefs: Beliefs, counts: Any, group: float, u: float) -> int:
    """The arm that misses most of its share of samples, if the coin u says so; else -1."""
    total = 0.0
    for arm in range(len(counts)):
        total += counts[arm]
    level, scarce, missing = math.log(1.0 + total), -1, 0.0
    for arm in range(len(counts)):
        short = beliefs.share[arm] * level - counts[arm]
        if short > missing:
            scarce, missing = arm, short
    return scarce if u * group < missing else -1
