"""The settings that advice compares, played on the same rewards, and the choice among them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.advice.settings import PREFERRED, SHARING, ZETAS, has_lemma
from rumormill.arms import Moments, RewardSource
from rumormill.engine import Contender, Trial, play_trial, prepare
from rumormill.engine.workers import Threads, Tick
from rumormill.experiments.spec.nesting import label_of
from rumormill.graphs import Network
from rumormill.policies import Plan, Policy
from rumormill.seeds import root_seed, stream_seed
from rumormill.stats.bootstrap import Interval, bootstrap_interval, relative_difference

Array = NDArray[np.float64]

# How many times the trials of the other settings the final takes.
FINAL_TIMES = 3
# Fewer messages are worth at most this much regret: where the 95 % interval ends, not where its middle is.
WORSE_ALLOWED = 0.1
# Where the best constant is the last that was tried, the next ones are tried too, so many times.
STEP, MOST_STEPS = math.sqrt(10.0), 4


@dataclass(frozen=True)
class Candidate:
    """One thing to try. Consensus has neither an estimator nor a radius to scale."""

    policy: str
    gamma: int
    estimator: str | None = None
    zeta: float | None = None

    @property
    def robust(self) -> bool:
        """Whether a lemma stands behind its mean when variances are infinite."""
        return self.estimator is not None and has_lemma(self.estimator)

    def __str__(self) -> str:
        name = label_of(catalogue.find("policy", self.policy))
        if self.estimator is None:
            return name
        reach = f" γ={self.gamma}" if "gamma" in self._taken else ""
        return f"{name}{reach}, {self.estimator}, ζ={self.zeta:g}"

    def settings(self, moments: Moments) -> dict[str, Any]:
        """What the policy is given, of all that its class takes."""
        given: dict[str, Any] = {"gamma": self.gamma}
        if self.estimator is not None:
            given |= {"estimator": catalogue.make("estimator", self.estimator), "zeta": self.zeta}
        given |= {**PREFERRED, "moments": moments}
        return {name: value for name, value in given.items() if name in self._taken}

    def build(self, moments: Moments) -> Policy:
        """The policy itself."""
        policy: Policy = catalogue.find("policy", self.policy)(**self.settings(moments))
        return policy

    @cached_property
    def _taken(self) -> set[str]:
        return {one.name for one in catalogue.settings(catalogue.find("policy", self.policy))}


@dataclass(frozen=True)
class CandidateOutcome:
    """What a setting came to: group regret of every trial, and what was sent per round."""

    candidate: Candidate
    regret: Array
    messages: float
    wire_bytes: float

    @property
    def mean(self) -> float:
        return float(self.regret.mean())


@dataclass(frozen=True)
class Choice:
    """The setting recommended, and how all compare with the one of the lowest regret."""

    best: CandidateOutcome
    chosen: CandidateOutcome
    worse: dict[Candidate, Interval]
    """By which share the regret of a setting exceeds the best, with a 95 % interval."""
    front: tuple[Candidate, ...]
    """Settings that no other beats in both regret and messages, the fewest messages first."""

    def scale(self, outcome: CandidateOutcome) -> float:
        """What makes the regret of a setting with fewer trials comparable: were they easy for the best?"""
        shared = float(self.best.regret[: len(outcome.regret)].mean())
        return self.best.mean / shared if shared else 1.0


class Arena:
    """Plays settings on one network; trial i has the same rewards for all of them, whenever they play."""

    def __init__(
        self,
        network: Network,
        source: Callable[[int, int, int], RewardSource],
        moments: Moments,
        *,
        horizon: int,
        trials: int,
        seed: int,
        jobs: int | None = None,
    ) -> None:
        self.network, self.moments = network, moments
        self.horizon, self.trials = horizon, trials
        self._source = source
        self._root = root_seed(seed)
        self._jobs = jobs
        self._plans: dict[Hashable, Plan] = {}
        self.outcomes: dict[Candidate, CandidateOutcome] = {}

    def play(self, candidates: Sequence[Candidate], times: int = 1) -> list[CandidateOutcome]:
        """The outcomes of these candidates over `times` as many trials; none is played twice."""
        wanted = self.trials * times
        by_done: dict[int, list[Candidate]] = {}
        for candidate in dict.fromkeys(candidates):
            done = len(self.outcomes[candidate].regret) if candidate in self.outcomes else 0
            if done < wanted:
                by_done.setdefault(done, []).append(candidate)
        for done, waiting in by_done.items():
            self._play(waiting, range(done, wanted))
        return [self.outcomes[candidate] for candidate in candidates]

    def _play(self, candidates: Sequence[Candidate], trials: range) -> None:
        n_agents = self.network.n_agents
        n_arms = self._source(0, n_agents, self.horizon).n_arms
        contenders = [self._prepare(candidate.build(self.moments), n_arms) for candidate in candidates]
        last = np.array([self.horizon], dtype=np.int64)
        played: dict[int, list[Trial]] = {}

        def work(trial: int, tick: Tick) -> list[Trial]:
            source = self._source(trial, n_agents, self.horizon)
            seed = stream_seed(self._root, trial)
            return play_trial(contenders, source, self.horizon, seed, last, on_rounds=tick)

        Threads(self._jobs).run(trials, work, played.__setitem__)
        for number, candidate in enumerate(candidates):
            ends = [played[trial][number] for trial in trials]
            before = self.outcomes[candidate].regret if candidate in self.outcomes else np.empty(0)
            self.outcomes[candidate] = CandidateOutcome(
                candidate,
                np.concatenate([before, [end.agent_regret[-1].sum() for end in ends]]),
                float(ends[0].messages[-1]) / self.horizon,  # what is sent does not depend on the rewards
                float(ends[0].wire_bytes[-1]) / self.horizon,
            )

    def _prepare(self, policy: Policy, n_arms: int) -> Contender:
        """Leaders and the like are worked out once for all candidates that share them."""
        key = policy.plan_key()
        contender = prepare(policy, self.network, n_arms, plan=self._plans.get(key))
        self._plans[key] = contender.plan
        return contender


def explore(arena: Arena, estimators: Sequence[str], light: bool) -> list[CandidateOutcome]:
    """Estimator and ζ; policy and γ with the two best of these; ζ again; and a longer final.

    Means without a lemma stay beside for comparison unless all tails are light. The final is there
    because one unlucky trial can decide between settings: those in front get more trials.
    """
    diameter = arena.network.diameter
    half = math.ceil(diameter / 2)
    probe = ("centralized", half) if diameter else ("robust", 0)
    first = [Candidate(*probe, estimator, zeta) for estimator in estimators for zeta in ZETAS]
    pairs = _best_pairs(arena.play(first), light)
    second = [Candidate("robust", 0, *pair) for pair in pairs]
    for gamma in sorted({1, half, diameter} if diameter else ()):
        second += [Candidate(policy, gamma, *pair) for pair in pairs for policy in SHARING]
    if diameter and arena.network.connected:
        second.append(Candidate("consensus", 1))
    arena.play(second)
    for leading in _ranked(arena, light)[:2]:
        if leading.candidate.estimator is not None:
            arena.play([replace(leading.candidate, zeta=zeta) for zeta in ZETAS])
    _beyond_the_grid(arena, light)
    arena.play(_finalists(_ranked(arena, light)), FINAL_TIMES)
    return list(arena.outcomes.values())


def _beyond_the_grid(arena: Arena, light: bool) -> None:
    """Further constants, as long as the last one tried is the best."""
    for _ in range(MOST_STEPS):
        best = _ranked(arena, light)[0].candidate
        if best.zeta is None:
            return
        tried = [each.zeta for each in arena.outcomes if replace(each, zeta=best.zeta) == best and each.zeta]
        if best.zeta == min(tried):
            further = best.zeta / STEP
        elif best.zeta == max(tried):
            further = best.zeta * STEP
        else:
            return
        arena.play([replace(best, zeta=float(f"{further:.1g}"))])


def _ranked(arena: Arena, light: bool) -> list[CandidateOutcome]:
    """What may be recommended, least regret first."""
    allowed = [outcome for outcome in arena.outcomes.values() if light or outcome.candidate.robust]
    return sorted(allowed, key=lambda outcome: outcome.mean)


def _finalists(ranked: Sequence[CandidateOutcome]) -> list[Candidate]:
    """The three best at every number of messages, if they are in sight of the best."""
    seen: Counter[float] = Counter()
    finalists = []
    for outcome in ranked:
        seen[outcome.messages] += 1
        if seen[outcome.messages] <= 3 and outcome.mean <= 2 * ranked[0].mean:
            finalists.append(outcome.candidate)
    return finalists


def _best_pairs(outcomes: Sequence[CandidateOutcome], light: bool) -> list[tuple[str | None, float | None]]:
    """The best ζ of the two best estimators that may be recommended."""
    best: dict[str | None, CandidateOutcome] = {}
    for outcome in outcomes:
        name = outcome.candidate.estimator
        if (light or outcome.candidate.robust) and (name not in best or outcome.mean < best[name].mean):
            best[name] = outcome
    order = sorted(best.values(), key=lambda outcome: outcome.mean)
    return [(outcome.candidate.estimator, outcome.candidate.zeta) for outcome in order[:2]]


def choose(outcomes: Sequence[CandidateOutcome], light: bool) -> Choice:
    """The fewest messages among the settings that are not worse than the best within the margin.

    Only those that played the most trials can be chosen. Every trial is a pair: same means, same rewards.
    Ties in messages go to fewer bytes, then less regret.
    """
    allowed = [outcome for outcome in outcomes if light or outcome.candidate.robust]
    most = max(len(outcome.regret) for outcome in allowed)
    final = [outcome for outcome in allowed if len(outcome.regret) == most]
    best = min(final, key=lambda outcome: outcome.mean)
    worse = {outcome.candidate: _excess(outcome, best) for outcome in outcomes}
    near = [outcome for outcome in final if worse[outcome.candidate].high <= WORSE_ALLOWED]
    chosen = min(near, key=lambda outcome: (outcome.messages, outcome.wire_bytes, outcome.mean))
    # Where nobody at a number of messages was in the final, its best stands for it.
    reached = {outcome.messages for outcome in final}
    rest = [outcome for outcome in allowed if outcome.messages not in reached]
    return Choice(best, chosen, worse, _front([*final, *rest], worse))


def _front(outcomes: Sequence[CandidateOutcome], worse: dict[Candidate, Interval]) -> tuple[Candidate, ...]:
    """Every step to more messages must pay in regret."""
    front: list[Candidate] = []
    for outcome in sorted(outcomes, key=lambda o: (o.messages, worse[o.candidate].estimate, o.wire_bytes)):
        if not front or worse[outcome.candidate].estimate < worse[front[-1]].estimate:
            front.append(outcome.candidate)
    return tuple(front)


def _excess(outcome: CandidateOutcome, best: CandidateOutcome) -> Interval:
    """By which share regret exceeds the best, over the trials both have played."""
    if outcome is best:
        return Interval(0.0, 0.0, 0.0)
    pairs = np.column_stack([outcome.regret, best.regret[: len(outcome.regret)]])
    if not pairs[:, 1].any():  # the best never erred: there is no share to speak of
        size = math.inf if pairs.any() else 0.0
        return Interval(size, size, size)
    return bootstrap_interval([pairs], relative_difference)
