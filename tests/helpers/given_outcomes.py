"""Outcomes of candidates known beforehand, to look at the choice between them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import rumormill as rm
from rumormill.advice.problem import ALONE, TOGETHER, Candidate, Outcome, Problem, paired_excess
from rumormill.advice.search import Recommendation, choose
from rumormill.stats import Interval


class Given(Problem):
    """Outcomes known beforehand; the hold-out repeats them, or has others."""

    def __init__(
        self,
        outcomes: Sequence[Outcome],
        light: bool = False,
        fresh: Sequence[Outcome] | None = None,
        against: bool = False,
        after: Sequence[Outcome] | None = None,
    ) -> None:
        moments = rm.Moments(eps=1.0, u=1.0, rho=1.0)
        super().__init__({TOGETHER: rm.Network.complete(3)}, moments, 2, light=light)
        self._played = {each.candidate: each for each in outcomes}
        self._fresh = outcomes if fresh is None else fresh
        self._against = against
        self._after = None if after is None else Given(after, light)

    @property
    def played(self) -> dict[Candidate, Outcome]:
        return self._played

    @property
    def hold_out(self) -> Given:
        return Given(self._fresh, self.light)

    @property
    def later(self) -> Given | None:
        return self._after

    def play(self, candidates: Sequence[Candidate], *, look: bool = False) -> list[Outcome]:
        return [self._played[each] for each in candidates]

    def excess(self, one: Outcome, other: Outcome, *, paid: bool = False) -> Interval:
        return paired_excess(
            *((replace(each, loss=each.paid) for each in (one, other)) if paid else (one, other))
        )

    def worse_in_order(self, chosen: Candidate, alone: Candidate) -> bool:
        return self._against


def outcome(
    policy: str, gamma: int, regret: NDArray[np.float64], messages: float, estimator: str = "trimmed"
) -> Outcome:
    candidate = Candidate(policy, gamma, estimator, 1.0)
    return Outcome(candidate, regret, regret, messages, 20 * messages, float(regret.mean()))


NOISE = np.random.default_rng(4).normal(0, 3, 20)
FULL = np.full(20, 100.0)
AGENTS_ALONE = outcome("robust", 0, np.full(20, 200.0), 0)


def chosen_of(
    *sharing: Outcome,
    light: bool = False,
    fresh: Sequence[Outcome] | None = None,
    alone: Sequence[Outcome] = (AGENTS_ALONE,),
    against: bool = False,
) -> Recommendation:
    """The choice between agents alone and these; `against`: the recorded order contradicts cooperation."""
    finals = {ALONE: list(alone), TOGETHER: list(sharing)}
    return choose(Given([*alone, *sharing], light, fresh, against), finals)
