"""The search over candidates, the same for logs and specs, and the checks that stop bad cooperation.

1. A grid of estimators and ζ for agents alone, all together and in groups; ζ is extended along `LADDER`
   while the best one has a neighbour that was not tried.
   Where outcomes of agents differ with every arm alike, settings that share are tried less offsets, or
   scaled, too.
2. Every sharing policy and hop budget with the two best estimators, and the default; ζ is extended again.
3. A final between the best of each kind, each with larger constants too.
4. Recommended is the cheapest candidate, then the one with the largest ζ, whose paired interval against the
   best ends within a margin. Cooperation needs more: its interval against agents alone must end below zero,
   it must not lose more in the recorded order, and the hold-out may reject it. Then agents stay alone.
5. Games that begin after the first part: the setting and agents alone, each cold and warm (born with what the
   first part knows), and the arms that were best in it, kept. The cheapest not worse than the best is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rumormill.advice.problem import (
    ALONE,
    DEFAULT,
    FIXED,
    IN_GROUPS,
    OWN,
    SHARING,
    TOGETHER,
    ZETAS,
    Candidate,
    Outcome,
    Problem,
    has_lemma,
)
from rumormill.stats import Interval

# ζ beyond the grid.
LADDER = (0.001, 0.003, 0.01, *ZETAS, 3.0, 10.0)
# A cheaper candidate, or one with a larger ζ, may lose more by this share of what agents alone lose.
MARGIN = 0.05
# The final: this many (policy, γ, estimator) of a kind, each with this many larger constants.
WAYS, CAREFUL = 2, 2
RESTARTS = (2, 4, 8)
LEAST_RESTART = 20


@dataclass(frozen=True)
class Start:
    """How agents start, measured in games that begin after a part of the data that is known by then."""

    chosen: Outcome
    learner: Outcome
    """The chosen one, or the best that learns where fixed arms are chosen."""
    cold: Outcome
    """Agents alone, without a prior."""
    ways: tuple[Outcome, ...]
    """Best score first."""
    above: dict[Candidate, Interval]
    """Loss above that of the chosen."""
    dropped: Interval | None = None
    """Loss of a warm start above that of the learner, which is cold; None: it is warm, or takes no prior."""

    @property
    def best_fixed(self) -> Outcome:
        """The best of those that keep an arm."""
        return next(each for each in self.ways if each.candidate.fixed)


@dataclass(frozen=True)
class Recommendation:
    """The candidate chosen on the first part, and its outcome on the hold-out."""

    best: Outcome
    chosen: Outcome
    alone: Outcome
    finals: tuple[Outcome, ...]
    excess: dict[Candidate, Interval]
    """Loss above the best's."""
    held_out: dict[Candidate, Outcome]
    against_alone: Interval
    """Loss of the chosen above that of agents alone, on the hold-out."""
    paid_against_alone: Interval
    """The same of measured outcomes: positive is worse."""
    sharing: tuple[Candidate, Interval] | None
    """The best candidate that cooperates, and its loss above that of agents alone on the first part."""
    rejected: Candidate | None
    """The candidate that the hold-out rejected."""
    restart: tuple[int, Interval] | None
    """In a log that drifts: the restart length that loses less, and the difference."""
    start: Start | None
    """None for a spec, which has no past."""


def explore(problem: Problem, estimators: Sequence[str]) -> dict[str, Sequence[Outcome]]:
    """Play the grid, then policies and γ, then the final; returns the finalists by kind."""
    allowed = [name for name in estimators if problem.light or has_lemma(name)]
    kinds = {ALONE: ("robust", 0, TOGETHER)}
    for name in (TOGETHER, IN_GROUPS):
        network = problem.networks.get(name)
        if network is not None and network.n_edges:
            kinds[name] = ("decentralized", max(1, math.ceil(network.diameter / 2)), name)
    first = [
        Candidate(policy, gamma, name, zeta, where, levels=less)
        for policy, gamma, where in kinds.values()
        for name in allowed
        for zeta in ZETAS
        for less in dict.fromkeys([(), () if policy == "robust" else problem.tried_levels])
    ]
    problem.play(first, look=True)
    for kind in kinds:
        _extend(problem, kind)
    more = [candidate for kind in kinds if kind != ALONE for candidate in _others(problem, kind)]
    problem.play([*more, *problem.extras(estimators)], look=True)
    for kind in kinds:
        _extend(problem, kind)
    return {kind: problem.play(_finalists(_ranked(problem, kind))) for kind in kinds}


def _ranked(problem: Problem, kind: str) -> list[Outcome]:
    """All outcomes of a kind that may be recommended, best score first."""
    found = (
        each
        for each in problem.played.values()
        if each.candidate.kind == kind and problem.allows(each.candidate)
    )
    return sorted(found, key=lambda each: each.score)


def _finalists(ranked: Sequence[Outcome]) -> list[Candidate]:
    """The best (policy, γ, estimator), and the best that send less, each with several constants."""
    ways: dict[Candidate, Outcome] = {}
    for each in ranked:
        # Policies can have equal actions, for example all of them on a complete network.
        same = [
            one for one in ways.values() if (one.loss == each.loss).all() and one.messages <= each.messages
        ]
        if not same:
            ways.setdefault(replace(each.candidate, zeta=0.0), each)
    leaders = list(ways.values())
    found, least = leaders[:WAYS], min(each.messages for each in leaders[:WAYS])
    for each in leaders[WAYS:]:
        if each.messages < least and each.score <= 2 * ranked[0].score:
            found.append(each)
            least = each.messages
    return [candidate for each in found for candidate in _scaled(each.candidate, 0, CAREFUL)]


def _scaled(candidate: Candidate, less: int, more: int) -> list[Candidate]:
    """The candidate with its constant, and with as many smaller and larger ones."""
    if candidate.zeta is None:
        return [candidate]
    place = LADDER.index(candidate.zeta)
    return [replace(candidate, zeta=zeta) for zeta in LADDER[max(0, place - less) : place + more + 1]]


def _others(problem: Problem, kind: str) -> list[Candidate]:
    """Every sharing policy and hop budget, with the two best estimators of the kind; and the default."""
    diameter = problem.networks[kind].diameter
    means: dict[tuple[str | None, tuple[str, ...]], Candidate] = {}
    for each in _ranked(problem, kind):
        means.setdefault((each.candidate.estimator, each.candidate.levels), each.candidate)
    leaders = list(means.values())
    found = [
        replace(leader, policy=policy, gamma=gamma)
        for leader in leaders[:2]
        for gamma in sorted({1, max(1, math.ceil(diameter / 2)), max(1, diameter)})
        for policy in SHARING
    ]
    return [*found, Candidate(DEFAULT, max(1, diameter), network=kind, levels=leaders[0].levels)]


def _extend(problem: Problem, kind: str) -> None:
    """While the best ζ of a kind has a neighbour on the ladder that was not tried with it, try that."""
    for _ in LADDER:
        leader = next(each.candidate for each in _ranked(problem, kind) if each.candidate.zeta is not None)
        beside = _scaled(leader, 1, 1)
        if all(candidate in problem.played for candidate in beside):
            return
        problem.play(beside, look=True)


def choose(problem: Problem, finals: Mapping[str, Sequence[Outcome]]) -> Recommendation:
    """The cheapest finalist not worse than the best; if it cooperates, it must beat agents alone."""
    every = sorted((each for kind in finals.values() for each in kind), key=lambda each: each.score)
    lone = min(finals[ALONE], key=lambda each: each.score)
    margin = MARGIN * lone.mean
    alone = _simplest(problem, finals[ALONE], lone, margin)
    against = {each.candidate: problem.excess(each, alone) for each in every if each.candidate.cooperates}
    allowed = [
        each
        for each in every
        if each.candidate not in against
        or (against[each.candidate].high <= 0 and each.recorded <= alone.recorded + margin)
    ]
    best = allowed[0]
    liked = _simplest(problem, allowed, best, margin)
    rest = problem.hold_out
    chosen, lone = rest.play([liked.candidate, alone.candidate])
    rejected = None
    if liked.candidate.cooperates and (
        _worse(rest, chosen, lone) or problem.worse_in_order(liked.candidate, alone.candidate)
    ):
        rejected, liked, chosen = liked.candidate, alone, lone
    return Recommendation(
        best,
        liked,
        alone,
        tuple(every),
        {each.candidate: problem.excess(each, best) for each in every},
        dict(rest.played),
        rest.excess(chosen, lone),
        rest.excess(chosen, lone, paid=True),
        next(iter(against.items()), None),
        rejected,
        _restart(problem, liked) if problem.drifts else None,
        start_of(problem, liked.candidate, alone.candidate),
    )


def _simplest(problem: Problem, several: Iterable[Outcome], best: Outcome, margin: float) -> Outcome:
    """The cheapest that is not worse than the best within the margin; then without levels, the largest ζ.

    Exploration cost is visible in each replay, rare lock-in only over many: hence the largest ζ.
    """
    near = [
        each
        for each in several
        if each is best
        or (
            problem.excess(each, best).high <= margin
            and (each.candidate.cooperates or each.recorded <= best.score + margin)
        )
    ]
    return min(
        near,
        key=lambda each: (
            each.messages,
            each.wire_bytes,
            len(each.candidate.levels),
            -(each.candidate.zeta or 0.0),
            each.score,
        ),
    )


def _worse(rest: Problem, chosen: Outcome, alone: Outcome) -> bool:
    """Whether the hold-out contradicts a candidate: worse than agents alone."""
    loss, paid = rest.excess(chosen, alone), rest.excess(chosen, alone, paid=True)
    return loss.low > 0 or paid.low > 0 or (loss.estimate > 0 and paid.estimate > 0)


def start_of(problem: Problem, liked: Candidate, alone: Candidate) -> Start | None:
    """Warm or cold, with messages or without, or fixed arms.

    A warm start is the rule. Messages, which have proved themselves in cold starts, stay unless these games
    contradict them. Fixed arms follow no change: they are chosen only where what learns surely pays more, by
    5 % at least.
    """
    later = problem.later
    if later is None:
        return None
    warm_ones = {
        each: [] if each.estimator is None else [replace(one, warm=True) for one in _scaled(each, 0, CAREFUL)]
        for each in (liked, alone)
    }
    settings = [*warm_ones, *(one for several in warm_ones.values() for one in several)]
    kept = [Candidate(FIXED, 0, network=name) for name in (OWN, *problem.networks)]
    ways = sorted(later.play([*settings, *kept]), key=lambda each: each.score)
    cold = later.play([alone])[0]
    margin = MARGIN * cold.mean

    def started(setting: Candidate) -> tuple[Outcome, Interval | None]:
        """Warm, unless that is surely worse, or worse by more than the margin; with a constant of its own."""
        several, (from_nothing,) = later.play(warm_ones[setting]), later.play([setting])
        if not several:  # the default takes no prior
            return from_nothing, None
        best = min(several, key=lambda each: each.score)
        warm = _simplest(later, several, best, MARGIN * best.mean)
        more = later.excess(warm, from_nothing)
        return (from_nothing, more) if more.low > 0 or more.estimate > margin else (warm, None)

    learner, dropped = started(alone)
    if liked != alone and not _worse(later, (sharing := started(liked))[0], learner):
        learner, dropped = sharing
    best = next(each for each in ways if each.candidate.fixed)
    more = later.excess(learner, best, paid=True)
    costly = more.low > 0 and more.estimate > MARGIN * abs(float(best.paid.mean()))
    chosen = best if costly else learner
    above = {each.candidate: later.excess(each, chosen) for each in ways}
    return Start(chosen, learner, cold, tuple(ways), above, dropped)


def _restart(problem: Problem, chosen: Outcome) -> tuple[int, Interval] | None:
    """The best restart length in rounds, if its interval against no restart ends below zero."""
    lengths = [problem.rounds // part for part in RESTARTS if problem.rounds // part >= LEAST_RESTART]
    tried = problem.play([replace(chosen.candidate, restart=length) for length in lengths])
    gains = [(problem.excess(each, chosen), length) for each, length in zip(tried, lengths, strict=True)]
    sure = [(gain.estimate, length, gain) for gain, length in gains if gain.high < 0]
    return min(sure)[1:] if sure else None
