"""The choices of the other families, by policy: an arm, or values of which the largest counts."""

from collections.abc import Callable
from typing import Any

from helpers.oracle.rules import INF, THOMPSON, Found

Choice = Callable[[Any, Any, int, list[Found]], int | list[float]]
"""rule(game, agent, t, estimates): what an agent chooses after the first K rounds."""

WITH_ROWS = ("kmp",)


def first_best(values: list[float]) -> int:
    return max(range(len(values)), key=lambda k: (values[k], -k))


def epsilon_greedy(game: Any, me: Any, t: int, found: list[Found]) -> int | list[float]:
    K, rate = game.K, game.r.extra["rate"]
    if game.r.extra["decay"]:
        rate = min(1.0, rate * K / t)
    if game.world.u(THOMPSON, me.v, t, 0) < rate:
        return int(K * game.world.u(THOMPSON, me.v, t, 1))
    return [sum(x) / len(x) if x else INF for x in me.samples]


CHOICES: dict[str, Choice] = {"epsilon-greedy": epsilon_greedy}
