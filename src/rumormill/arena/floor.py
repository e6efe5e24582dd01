"""What regret is measured in: the floor that no consistent policy can go below, as far as one is known."""

from __future__ import annotations

import math

from rumormill.arms import Bandit, Piecewise, RewardSource
from rumormill.errors import InputError
from rumormill.theory import lower_bound


def floor_of(source: RewardSource, agents: int, horizon: int) -> float:
    """Σ over worse arms of min(max(C ln T, Δ), Δ M T), C the coefficient of `rm.theory.lower_bound`.

    C ln T is an asymptotic slope, no bound at this T: regret below the floor can happen. After a change it
    starts again. At least one pull of every worse arm is counted, which matters where C is 0.
    """
    return sum(_floor(bandit, agents, rounds) for bandit, rounds in _pieces(source, horizon))


def uniform_regret(source: RewardSource, agents: int, horizon: int) -> float:
    """The expected regret of agents that choose among the arms at random."""
    return sum(float(bandit.gaps.mean()) * agents * rounds for bandit, rounds in _pieces(source, horizon))


def _floor(bandit: Bandit, agents: int, rounds: int) -> float:
    pulls, slope = agents * rounds, math.log(rounds)
    return sum(
        min(max(term.coefficient * slope, term.gap), term.gap * pulls) for term in lower_bound(bandit).arms
    )


def _pieces(source: RewardSource, horizon: int) -> list[tuple[Bandit, int]]:
    """The bandits that are played one after the other, and for how many rounds."""
    if isinstance(source, Bandit):
        return [(source, horizon)]
    if isinstance(source, Piecewise):
        ends = [*source.starts[1:], horizon]
        parts = [
            (part, min(end, horizon) - start)
            for part, start, end in zip(source.sources, source.starts, ends, strict=True)
            if start < horizon
        ]
        known = [(part, rounds) for part, rounds in parts if isinstance(part, Bandit)]
        if len(known) == len(parts):
            return known
    raise InputError(
        f"no floor is known for {source!r}: the arena plays one bandit, or one that changes at given rounds"
    )
