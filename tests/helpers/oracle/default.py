"""The default, from docs/semantics.md alone: samples are kept in lists."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from helpers.oracle.estimators import clip
from helpers.oracle.rules import INF, THOMPSON

LAMBDAS = (0.7, 1.0, 1.5, 2.0, 3.0, 4.5)
CENTRE = (
    (
        -39.69683028665376,
        220.9460984245205,
        -275.9285104469687,
        138.357751867269,
        -30.66479806614716,
        2.506628277459239,
    ),
    (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0),
)
TAIL = (
    (
        -0.007784894002430293,
        -0.3223964580411365,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ),
    (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0),
)


def horner(coefficients: tuple[float, ...], x: float) -> float:
    value = coefficients[0]
    for each in coefficients[1:]:
        value = value * x + each
    return value


def normal(u: float) -> float:
    q = u - 0.5 + 2.0**-54
    if abs(q) <= 0.47575:
        return horner(CENTRE[0], q * q) * q / horner(CENTRE[1], q * q)
    r = math.sqrt(-2.0 * math.log(0.5 - abs(q)))
    x = horner(TAIL[0], r) / horner(TAIL[1], r)
    return x if q < 0 else -x


def median(x: list[float]) -> float:
    return x[len(x) // 2] if len(x) % 2 else 0.5 * (x[len(x) // 2 - 1] + x[len(x) // 2])


class Mind:
    """What one agent has fitted; samples are read from the lists that it has heard."""

    def __init__(self, n_arms: int) -> None:
        self.K = n_arms
        self.room = max(100, min(400, 8000 // n_arms))
        self.pilot = max(2, min(5, (29 + n_arms) // n_arms))
        self.fitted, self.by_means, self.next_fit, self.c = False, False, 0.0, 0.0
        self.first: list[list[float]] = [[] for _ in range(n_arms)]  # stored, sorted
        self.read, self.n = [0] * n_arms, [0] * n_arms
        self.a, self.o = [0.0] * n_arms, [0.0] * n_arms
        self.sums: list[tuple[float, float, int]] = [(0.0, 0.0, 0)] * n_arms
        self.ys: list[list[float]] = [[] for _ in range(n_arms)]
        self.fit_n, self.value_n = [0] * n_arms, [-1] * n_arms
        self.found: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * n_arms  # value, spread, f
        self.part = list(range(n_arms))  # the arms that take part, and those that ever did
        self.member: set[int] = set()

    def take_part(self) -> None:
        """Arms beyond their pilot; one that was not among them at the first fit begins as arms do there."""
        self.part = [k for k in range(self.K) if self.n[k] >= self.pilot]
        for k in self.part:
            if self.fitted and k not in self.member:
                self.n[k] = len(self.first[k])
                self.o[k] = median(self.first[k])
                self.ys[k] = [each - self.o[k] for each in self.first[k]]
                self.next_fit = 0.0
        if sum(self.n[k] for k in self.part) >= self.next_fit:
            self.member |= set(self.part)
            self.fit()

    def hear(self, samples: list[list[float]]) -> None:
        for k, x in enumerate(samples):
            for each in x[self.read[k] :]:
                if len(self.first[k]) < self.room:
                    self.first[k] = sorted([*self.first[k], each])
                elif not self.fitted:
                    continue
                self.n[k] += 1
                if self.fitted:
                    self.sums[k] = self.psi([each], k, self.sums[k])
                    self.ys[k].append(each - self.o[k])
            self.read[k] = len(x)

    def psi(
        self,
        x: list[float],
        k: int,
        so_far: tuple[float, float, int] = (0.0, 0.0, 0),
        at: float | None = None,
    ) -> tuple[float, float, int]:
        total, square, inside = so_far
        for each in x:
            y = each - (self.a[k] if at is None else at)
            psi = clip(y, -self.c, self.c)
            total, square, inside = total + psi, square + psi * psi, inside + (psi == y)
        return total, square, inside

    # ---- the fit -----------------------------------------------------------------------------------------

    def fit(self) -> None:
        whole = max(self.n[k] for k in self.part) <= self.room
        if whole or not self.fitted:
            self.c = self.clipping_point()
        for k in self.part:
            x = self.first[k]
            if self.n[k] <= self.room and (whole or self.n[k] > self.fit_n[k]):
                self.a[k], self.sums[k] = self.location(x, k)
            if not self.fitted:
                self.o[k] = median(x)
                self.ys[k] = [each - self.o[k] for each in x]
        self.fit_n, self.value_n, self.fitted = list(self.n), [-1] * self.K, True
        N, sums = sum(self.n[k] for k in self.part), [self.sums[k] for k in self.part]
        self.p2, self.h = sum(s for _, s, _ in sums) / N, sum(h for *_, h in sums) / N
        self.next_fit = 1.15 * N
        stored = [self.first[k] for k in self.part]
        most, least = max(x[-1] for x in stored), min(x[0] for x in stored)
        self.bounded = most > least and any(len(x) >= 8 and x[(len(x) - 1) // 2] == most for x in stored)
        self.compare()

    def clipping_point(self) -> float:
        r = [[abs(each - median(x)) for each in x] for x in [self.first[k] for k in self.part]]
        N = sum(map(len, r))
        middle = sum(len(x) * sorted(x)[(len(x) + 1) // 2 - 1] for x in r) / N
        s = 1.4826 * middle if middle > 0 else math.sqrt(math.pi / 2) * sum(map(sum, r)) / N
        if s == 0 or N < 100:
            return 2.0 * s
        pooled = np.concatenate([np.array(x) for x in r])
        scores = []
        for lam in LAMBDAS:
            within = pooled <= lam * s
            scores.append(float(np.where(within, pooled, lam * s) @ np.where(within, pooled, lam * s)) * N)
            scores[-1] /= float(within.sum()) ** 2
        return LAMBDAS[scores.index(min(scores))] * s

    def location(self, x: list[float], k: int) -> tuple[float, tuple[float, float, int]]:
        theta = median(x)
        for step in range(21):
            sums = self.psi(x, k, at=theta)
            move = sums[0] / max(sums[2], 0.2 * len(x))
            if step == 20 or abs(move) <= 1e-7 * self.c:
                break
            theta += move
        return theta, sums

    # ---- the shape test ----------------------------------------------------------------------------------

    def compare(self) -> None:
        r = max(self.part, key=lambda k: (self.n[k], -k))
        places = {k: self.located(k)[0] for k in self.part}
        sizes = [len(self.first[k]) for k in self.part]
        skews = [octile_skewness(self.first[k]) for k in self.part]
        skew = sum(n * (S or 0.0) for n, S in zip(sizes, skews, strict=True))
        skewed = abs(skew) > 6 * math.sqrt(sum(sizes))
        maybe = {
            k
            for k, n, S in zip(self.part, sizes, skews, strict=True)
            if abs(1.0 if S is None else S) > max(0.2, 1.5 / math.sqrt(n))
        }
        b = abs(self.averaged(r)[0] - places[r]) if skewed else 0.0
        b = b if b > 1e-9 * self.c else 0.0
        scores, doubts = [0.0], [math.inf]
        for k in self.part:
            x = self.first[k]
            if k != r and min(len(x), len(self.first[r])) >= 8:
                scores.append(score(x, self.first[r]) if skewed or maybe & {k, r} else 0.0)
                e = 1.2 * b * (scores[-1] + 2) * math.sqrt(1 / len(x) + 1 / len(self.first[r]))
                if b > 0:
                    doubts.append((places[r] - places[k]) / e)
                    if self.averaged(k)[0] > self.averaged(r)[0]:
                        doubts.append(0.0)
        if max(scores) > 3.5 or min(doubts) < 1:
            self.by_means = True
        elif max(scores) < 2.5 and min(doubts) >= 1.5:
            self.by_means = False

    # ---- values ------------------------------------------------------------------------------------------

    def located(self, k: int) -> tuple[float, float, float]:
        n, (total, square, inside) = self.n[k], self.sums[k]
        value = self.a[k] + total / (n * max(0.2, (inside + 5 * self.h) / (n + 5)))
        size = math.sqrt((square + 10 * self.p2) / (n + 10) / n)
        return value, size / max(0.1, (inside + 10 * self.h) / (n + 10)), 1.6 if self.bounded else 8.0

    def averaged(self, k: int) -> tuple[float, float, float]:
        y, n = self.ys[k], self.n[k]
        by_size = sorted(map(abs, y), reverse=True)
        J, M = 0.0, solve(by_size)
        if M is None:
            J, M = max(abs(each) for other in self.part for each in self.ys[other]), INF
        else:
            J = beyond(sorted(y, key=abs, reverse=True)[: min(64, int(2 * math.sqrt(n)))])
        least = by_size[63] if len(y) >= 64 else 0.0  # the sketch clips nothing below
        low, high = max(M, least), max(16 * M, least)
        clipped = [clip(each, -low, high) for each in y]
        square = sum(each * each for each in clipped)
        largest = sorted(y, key=abs, reverse=True)[:4]
        w = sum(max(each, -M) ** 2 for each in largest) / square if square > 0 else 1.0
        w = 0.0 if self.bounded else w
        return (
            self.o[k] + sum(clipped) / n,
            math.sqrt(square + J * J) / n,
            16 * min(1.0, max(0.1, 1.5 * w)),
        )

    def update(self) -> None:
        for k in self.part:
            if self.by_means and (self.value_n[k] < 0 or self.n[k] > 1.02 * self.value_n[k]):
                self.found[k], self.value_n[k] = self.averaged(k), self.n[k]
            elif not self.by_means and self.value_n[k] != self.n[k]:
                self.found[k], self.value_n[k] = self.located(k), self.n[k]


def solve(sizes: list[float]) -> float | None:
    """M with Σ min(y²/M², 1) = 4, sizes descending; None if no more than 4 of them are above 0."""
    if sum(size > 0 for size in sizes) <= 4:
        return None
    for above, (larger, smaller) in enumerate(pairwise([INF, *sizes, 0.0])):
        if above < 4:
            M = math.sqrt(sum(y * y for y in sizes[above:]) / (4 - above))
            if smaller <= M <= larger:
                return M
    raise AssertionError(sizes)


def beyond(largest: list[float]) -> float:
    """J of the k largest |y|."""
    u, above = abs(largest[-1]), [each for each in largest if each > 0]
    if u == 0 or not above:
        return 0.0
    xi = min(0.8, sum(math.log(each / u) for each in above) / len(above))
    return 0.25 * math.sqrt(len(above)) * u * xi / (1 - xi) ** 2


def octile_skewness(x: list[float]) -> float | None:
    low, high = x[(len(x) - 1) // 8], x[len(x) - 1 - (len(x) - 1) // 8]
    return (high + low - 2 * median(x)) / (high - low) if high > low else None


def score(x: list[float], other: list[float]) -> float:
    shifts = [median(x) - median(other)]
    shifts += [x[(len(x) - 1) * j // 4] - other[(len(other) - 1) * j // 4] for j in (0, 1, 3, 4)]
    best = INF
    for d in shifts:
        best = min(best, smooth([each - d for each in x], other))
        if best < 2.5:
            break
    return best


def smooth(x: list[float], other: list[float]) -> float:
    both, n, m = np.sort(np.concatenate([x, other])), len(x), len(other)
    u = (np.searchsorted(both, x, "left") + np.searchsorted(both, x, "right")) / 2 / (n + m)
    v = 2 * u - 1  # Legendre's polynomials on [-1, 1]
    sums = (v, (3 * v**2 - 1) / 2, (5 * v**3 - 3 * v) / 2, (35 * v**4 - 30 * v**2 + 3) / 8)
    largest = max((2 * j + 3) * float(each.sum()) ** 2 for j, each in enumerate(sums))
    return math.sqrt(largest * (n + m) / (n * m))


def default(game: Any, me: Any, t: int, found: Any) -> int | list[float]:
    """An arm, or values of which the largest counts."""
    K = game.K
    if not hasattr(me, "mind"):
        me.mind = Mind(K)
    mind: Mind = me.mind
    mind.hear(me.samples)
    for i in range(K):
        k = (t - 1 + me.v + i) % K
        if k in game.may and mind.n[k] < mind.pilot:
            return int(k)
    mind.take_part()
    mind.update()
    N = sum(mind.n[k] for k in mind.part)
    missing = {k: mind.found[k][2] * math.log(1 + N) - mind.n[k] for k in game.may}
    scarce: int = max(game.may, key=lambda k: (missing[k], -k))
    if game.world.u(THOMPSON, me.v, t, K) * (game.near[me.v] + 1) < missing[scarce]:
        return scarce
    draws = [normal(game.world.u(THOMPSON, me.v, t, k)) for k in range(K)]
    return [value + spread * z for (value, spread, _), z in zip(mind.found, draws, strict=True)]
