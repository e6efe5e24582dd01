"""The choices of the other families, by policy: an arm, or values of which the largest counts."""

import math
from collections.abc import Callable
from typing import Any

from helpers.oracle.estimators import threshold
from helpers.oracle.rules import INF, THOMPSON, Found

Choice = Callable[[Any, Any, int, list[Found]], int | list[float]]
"""rule(game, agent, t, estimates): what an agent chooses after the first K rounds."""

WITH_ROWS = ("kmp", "ht-hmucb")


def first_best(values: list[float]) -> int:
    return max(range(len(values)), key=lambda k: (values[k], -k))


def epsilon_greedy(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    K, rate = game.K, game.r.extra["rate"]
    if game.r.extra["decay"]:
        rate = min(1.0, rate * K / t)
    if game.world.u(THOMPSON, me.v, t, 0) < rate:
        return int(K * game.world.u(THOMPSON, me.v, t, 1))
    return [sum(x) / len(x) if x else INF for x in me.samples]


def coop_se(game: Any, me: Any, t: int, found: list[Found]) -> int:
    K: int = game.K
    radii = [index - mean if index < INF else INF for mean, index, _ in found]
    least = max((mean - r for (mean, *_), r in zip(found, radii, strict=True) if r < INF), default=-INF)
    active = [k for k in range(K) if radii[k] == INF or found[k][0] + radii[k] >= least]
    pulled = [int(arm) for arm in game.choices.actions[: t - 1, me.v] if arm >= 0]
    last = pulled[-1] if pulled else -1
    return min(active, key=lambda k: (k - last - 1) % K)


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


CHOICES: dict[str, Choice] = {
    "epsilon-greedy": epsilon_greedy,
    "coop-se": coop_se,
    "adar-ucb": adar_ucb,
}
