"""The choices of the other families, by policy: an arm, or values of which the largest counts."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import norm

from helpers.oracle.default import default
from helpers.oracle.estimators import threshold, trimmed
from helpers.oracle.rules import INF, THOMPSON, Floats, Found, Samples, World, uniform

Choice = Callable[[Any, Any, int, list[Found]], int | list[float]]
"""rule(game, agent, t, estimates): what an agent chooses after the first K rounds."""

WITH_ROWS = ("kmp", "thompson-kmp", "ht-hmucb", "dpe2")


def first_best(values: list[float]) -> int:
    return max(range(len(values)), key=lambda k: (values[k], -k))


def epsilon_greedy(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    K, rate = game.K, game.r.extra["rate"]
    if game.r.extra["decay"]:
        rate = min(1.0, rate * K / t)
    if game.world.u(THOMPSON, me.v, t, 0) < rate:
        explored: int = game.may[int(len(game.may) * game.world.u(THOMPSON, me.v, t, 1))]
        return explored
    return [sum(x) / len(x) if x else INF for x in me.samples]


def coop_se(game: Any, me: Any, t: int, found: list[Found]) -> int:
    K: int = game.K
    radii = [index - mean if index < INF else INF for mean, index, _ in found]
    least = max((found[k][0] - radii[k] for k in game.may if radii[k] < INF), default=-INF)
    active = [k for k in game.may if radii[k] == INF or found[k][0] + radii[k] >= least]
    pulled = [int(arm) for arm in game.choices.actions[: t - 1, me.v] if arm >= 0]
    last = pulled[-1] if pulled else -1
    return int(min(active, key=lambda k: (k - last - 1) % K))


def hub(game: Any, v: int) -> int:
    reach = [w for w, d in game.dist[v].items() if d <= game.post.gamma]
    found: int = min(reach, key=lambda w: (-game.near[w], w))
    return found


def adar(x: list[float], L: float, zeta: float) -> float:
    """The index of one arm; L is 3 ln t."""
    X, Y = x[0::2], x[1::2]
    M = threshold(Y, L)
    if M is None:
        return INF
    trim = max(M, sorted(map(abs, X))[-128]) if len(X) >= 128 else M
    kept = [v if abs(v) <= trim else 0.0 for v in X]
    mean = math.fsum(kept) / len(X)
    V = max(0.0, math.fsum(v * v for v in kept) / len(X) - mean**2)
    return mean + zeta * (math.sqrt(2 * V * L / len(Y)) + 10 * M * L / len(Y))


def adar_ucb(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    values = []
    for k, x in enumerate(me.samples):
        L, n = 3 * math.log(t), len(x) // 2
        last = me.worked_out[k]
        if n and (last is None or n > 1.02 * last[0] or last[1] * 1.02 < L):
            last = me.worked_out[k] = (n, L, adar(x, L, game.r.extra["zeta"]))
        values.append(INF if last is None else last[2])
    return values


def normal(world: World, v: int, t: int, k: int) -> float:
    """The standard normal draw of an agent, a round and an arm."""
    return float(norm.ppf(world.u(THOMPSON, v, t, k) + 2.0**-54))


def alpha_ts(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    r, zeta, L = game.r, game.r.factor, 2 * math.log(t)
    spread = [zeta * r.u ** (1 / r.p) * len(x) ** (-r.eps / r.p) if x else 0.0 for x in me.samples]
    draws = [normal(game.world, me.v, t, k) for k in range(game.K)]
    means = [trimmed(x, L, r) if x else INF for x in me.samples]
    return [mean + s * z for mean, s, z in zip(means, spread, draws, strict=True)]


def favourite(row: Any) -> int:
    known = [k for k, (mean, n) in enumerate(row) if n > 0 and mean < INF]
    return max(known, key=lambda k: (row[k][0], -k)) if known else -1


def dpe2(game: Any, me: Any, t: int, found: list[Found]) -> int:
    """What a leader does."""
    for k in game.may:
        if found[k][1] == INF:
            return int(k)
    best = max(game.may, key=lambda k: (found[k][0], -k))
    others = [k for k in game.may if k != best and found[k][1] >= found[best][0]]
    if others and game.world.u(THOMPSON, me.v, t, 0) < 0.5:
        return int(others[int(len(others) * game.world.u(THOMPSON, me.v, t, 1))])
    return int(best)


def robust_dirichlet(game: Any, me: Any, t: int, found: list[Found]) -> int:
    n = [len(x) for x in me.samples]
    unknown = [k for k in game.may if not n[k]]
    if unknown:
        return int(unknown[0])
    means = [sum(x) / len(x) if x else INF for x in me.samples]
    leader: int = max(game.may, key=lambda k: (n[k], means[k], -k))
    best, winners = means[leader], []
    for k in game.may:
        x = me.samples[k]
        E = [-math.log(1 - game.world.u(THOMPSON, me.v, t, k, i)) for i in range(n[k] + 1)]
        bonus = best + math.sqrt(math.log(1 + n[k])) * sum(max(best - v, 0.0) for v in x) / n[k]
        value = sum(e * v for e, v in zip(E, [*x, bonus], strict=True)) / sum(E)
        if k != leader and (means[k] >= best or value >= best):
            winners.append(k)
    return min(winners, key=lambda k: (n[k], k)) if winners else leader


@lru_cache
def all_signs(B: int) -> Floats:
    drawn = [[-1.0 if uniform(0, THOMPSON, j, c) < 0.5 else 1.0 for c in range(64)] for j in range(1, B + 1)]
    return np.array([[1.0] * 64, *drawn])


def rmm(x: Samples, B: int) -> float:
    """The upper bound over all that is in a complete chunk."""
    size, sums, rest = 1, [], list(x)
    while len(rest) >= size:
        sums.append(sum(rest[:size]))
        rest = rest[size:]
        if len(sums) == 64:
            sums, size = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)], 2 * size
    means, C = [s / size for s in sums], len(sums)
    if C < 7:
        return INF
    signs = all_signs(B)[:, :C]
    if any(sum((signs[j, b::7] == 1).all() for b in range(7)) >= 4 for j in range(1, B + 1)):
        return INF

    def S(theta: float) -> Any:
        values = signs * (np.array(means) - theta)
        return np.median([values[:, b::7].mean(axis=1) for b in range(7)], axis=0)

    low, high = min(means), max(means)
    for _ in range(40):
        theta = low + (high - low) / 2
        if not low < theta < high:
            break
        found = S(theta)
        low, high = (theta, high) if found[0] >= found[1:].min() else (low, theta)
    return max(high, float(np.median([np.mean(means[b::7]) for b in range(7)])))


def rmm_ucb(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    values = []
    for k, x in enumerate(me.samples):
        if me.worked_out[k] is None or me.worked_out[k][0] != len(x):
            me.worked_out[k] = (len(x), rmm(x, game.r.extra["resamples"]))
        values.append(me.worked_out[k][1])
    return values


def klinf(x: Samples, t: int, p: float, u: float) -> float:
    """The largest mean that samples and moment leave possible, up to the grid of β."""
    atoms: list[tuple[float, float]] = []
    for value in x:
        atoms.append((value, 1.0))
        if len(atoms) == 512:
            atoms.sort()
            pairs = zip(atoms[::2], atoms[1::2], strict=True)
            atoms = [((a * v + b * w) / (v + w), v + w) for (a, v), (b, w) in pairs]
    X, w = np.array(atoms).T
    w, unit, best = w / len(x), u ** (1 / p), INF
    kappa = (math.log(t) + 2 * math.log(1 + math.log(t))) / len(x)
    for place in range(24):
        y = unit * 10 ** (-0.5 + 4 * place / 23)
        beta, most = y ** (1 - p) / p, (1 - 1 / p) * y
        Z = X - beta * np.abs(X) ** p

        def f(log: float, Z: Any = Z, most: float = most) -> float:
            away = most + unit * math.exp(log) - Z
            return float((w * np.log(away)).sum() + math.log((w / away).sum()))

        low, high = math.log(1e-12), math.log(1e12)
        share = min(1.0, math.exp(f(low) - kappa))
        if f(low) <= kappa:
            high = low
        for _ in range(32):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) > kappa else (low, middle)
        q = w / (most + unit * math.exp(high) - Z)
        best = min(best, float(beta * u + share * (q * Z).sum() / q.sum() + (1 - share) * most))
    return max(best, sum(x) / len(x))


def klinf_ucb(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    values = []
    for k, x in enumerate(me.samples):
        L, n, last = 2 * math.log(t), len(x), me.worked_out[k]
        if n and (last is None or n > 1.1 * last[0] or last[1] * 1.1 < L):
            last = me.worked_out[k] = (n, L, klinf(x, t, game.r.p, game.r.u))
        values.append(INF if last is None else last[2])
    return values


def thompson_kmp(game: Any, me: Any, t: int, found: list[Found]) -> list[float]:
    values = []
    for k, (mean, _, n) in enumerate(found):
        for w in sorted(me.newest):
            if me.newest[w].row[k][1] > n:
                mean, n = me.newest[w].row[k]
        x = np.array(me.samples[k])
        if len(x) < 15:
            values.append(INF)
            continue
        sizes = np.abs(x - np.median(x[:15]))
        scale = 1.4826 * float(np.median(sizes[:15]))
        if scale == 0:
            seen = next((i for i in range(15, len(x) + 1) if sizes[:i].any()), len(x))
            scale = math.sqrt(math.pi / 2) * float(sizes[:seen].mean())
        z = normal(game.world, me.v, t, k)
        values.append(mean + game.r.extra["width"] * scale / math.sqrt(n) * z)
    return values


CHOICES: dict[str, Choice] = {
    "thompson-kmp": thompson_kmp,
    "default": default,
    "epsilon-greedy": epsilon_greedy,
    "coop-se": coop_se,
    "adar-ucb": adar_ucb,
    "alpha-ts": alpha_ts,
    "dpe2": dpe2,
    "robust-dirichlet": robust_dirichlet,
    "rmm-ucb": rmm_ucb,
    "klinf-ucb": klinf_ucb,
}
