"""Thompson draws of all learners: value + spread Z, arm by arm; the arm of the largest draw.

Loops over learners write one array each: so LLVM vectorises them. Draws in the tails of the normal law need a
logarithm; they are made afterwards, for the few learners whose choice they can change.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.formulas import LARGE_DRAW, LARGE_U, LARGEST_DRAW, NEAR_EDGE, NEAREST_TAIL
from rumormill.kernels.counter_rng import key_with, uniform_at
from rumormill.kernels.jit import linked, part
from rumormill.kernels.state import DrawState, Floats, Ids, SketchState, State, Words

central_normal = part(formulas.central_normal)
inverse_normal = linked(formulas.inverse_normal, central_normal=central_normal)
draw_spread = part(formulas.draw_spread)


@part
def extend_keys(word: np.uint64, keys: Words, now: Words) -> None:
    """The keys of all learners, with one more number: the round."""
    for j in range(now.shape[0]):
        now[j] = key_with(keys[j], word)


@part
def fill_uniforms(number: int, keys: Words, u: Floats) -> None:
    """The uniform of that number of every learner."""
    word = np.uint64(number)
    for j in range(u.shape[0]):
        u[j] = uniform_at(key_with(keys[j], word))


@part
def choose_largest_draws(value: Floats, spread: Floats, draws: DrawState, action: Ids) -> None:
    """The arm of the largest value + spread Z for every learner, the lowest on ties; [arm, learner]."""
    u, best, tails = draws.u, draws.best, draws.tails
    for j in range(best.shape[0]):
        best[j] = -np.inf
        tails[j] = -np.inf
        action[j] = 0
    for arm in range(value.shape[0]):
        fill_uniforms(arm, draws.now, u)
        raise_tails(u, value[arm], spread[arm], tails)
        take_central_draws(arm, u, value[arm], spread[arm], best, action)
    for j in range(best.shape[0]):
        if tails[j] >= best[j]:
            best_with_tails(j, draws.now[j], value, spread, best, action)


@part
def largest_in_tail(u: float, value: float, spread: float) -> float:
    """No draw of an arm is larger, of a uniform in the tails."""
    most = LARGEST_DRAW if u > LARGE_U else LARGE_DRAW if u > 0.5 else NEAREST_TAIL
    return value + most * spread


@part
def raise_tails(u: Floats, value: Floats, spread: Floats, tails: Floats) -> None:
    """The most that draws in the tails may be, one arm more."""
    for j in range(u.shape[0]):
        most = largest_in_tail(u[j], value[j], spread[j])
        in_tail = abs(u[j] - (0.5 - 2.0**-54)) > NEAR_EDGE
        tails[j] = most if in_tail and most > tails[j] else tails[j]


@part
def take_central_draws(arm: int, u: Floats, value: Floats, spread: Floats, best: Floats, action: Ids) -> None:
    """Where the draw of an arm is larger than those before, it counts; tails aside."""
    for j in range(best.shape[0]):
        q = u[j] - (0.5 - 2.0**-54)
        drawn = value[j] + spread[j] * central_normal(q)
        u[j] = drawn if abs(q) <= NEAR_EDGE else -np.inf
    for j in range(best.shape[0]):
        action[j] = arm if u[j] > best[j] else action[j]
    for j in range(best.shape[0]):
        best[j] = u[j] if u[j] > best[j] else best[j]


@part
def best_with_tails(j: int, key: np.uint64, value: Floats, spread: Floats, best: Floats, action: Ids) -> None:
    """The draws of one learner that are in the tails, where they can be the largest."""
    for arm in range(value.shape[0]):
        u = uniform_at(key_with(key, np.uint64(arm)))
        in_tail = abs(u - (0.5 - 2.0**-54)) > NEAR_EDGE
        if in_tail and largest_in_tail(u, value[arm, j], spread[arm, j]) >= best[j]:
            drawn = value[arm, j] + spread[arm, j] * inverse_normal(u)
            if drawn > best[j] or (drawn == best[j] and arm < action[j]):
                best[j] = drawn
                action[j] = arm


@part
def draw_by_rows(
    t: int, width: float, least: float, sketches: SketchState, state: State, value: Floats, spread: Floats
) -> None:
    """The arm of the largest draw about the row with most samples; with too few own samples +inf."""
    draws = sketches.draws
    for arm in range(spread.shape[0]):
        spread_rows(width, least, state.n[arm], state.best_n[arm], sketches.clip[arm], spread[arm])
        value_rows(least, state.n[arm], state.best_mean[arm], value[arm])
    extend_keys(np.uint64(t), draws.keys, draws.now)
    choose_largest_draws(value, spread, draws, state.action)


@part
def spread_rows(width: float, least: float, own: Floats, n: Floats, scale: Floats, spread: Floats) -> None:
    """The standard deviations of the draws of an arm."""
    for j in range(spread.shape[0]):
        spread[j] = draw_spread(n[j], width * scale[j]) if own[j] >= least else 0.0


@part
def value_rows(least: float, own: Floats, mean: Floats, value: Floats) -> None:
    """The means of an arm, +inf with too few own samples."""
    for j in range(value.shape[0]):
        value[j] = mean[j] if own[j] >= least else np.inf
