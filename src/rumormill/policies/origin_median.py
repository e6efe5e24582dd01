"""OriginMedian MP-UCB: a median of means whose groups are origins, so that f adversaries cannot move it.

For an arm with samples of more than 2f origins these are dealt into G groups, G = 2f + 1 + 2 spare or, if
there are fewer origins, the largest odd number of them: those with most samples first, in snake order. With
m_g the mean and c_g the samples of group g, all samples clipped once on arrival (OriginSamples):

    min( own mean + zeta u^(1/p) (L_t/n_own)^(eps/p) ,  median m_g + zeta u^(1/p) (L_t/Σ c_g)^(eps/p) )

Both are upper bounds, so the minimum is one; and no index exceeds that of an agent without messages. With at
most 2f origins the own index is used.

With G >= max(16 f, 15 L) groups an honest majority holds with probability 1 - e^-L: f adversaries cost like
extra confidence. The default is far below that, a heuristic like zeta = 1. An adversary that reports one arm
every round shrinks the radius, and all agents may then abandon the best arm. count="trimmed", G/(G-f) times
the G - f smallest c_g, corrects that where groups are of about one size, as the theorem has them.
count="cautious" does not need equal sizes: beside f adversaries h = ⌊G/2⌋ + 1 - f honest groups must err
before the median does, so it counts G times the h-th smallest c_g (no more than all). Identities must be
authentic; on sparse graphs take gamma >= 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rumormill.errors import InputError
from rumormill.estimators import Estimator, Radius, TrimmedMean
from rumormill.formulas import log_confidence, origin_clip, snake_step
from rumormill.policies.base import Seat
from rumormill.policies.message_passing_agent import MessagePassingAgent, by_fewest_out
from rumormill.policies.message_passing_policy import MessagePassingPolicy, RobustPolicy
from rumormill.validate import one_of, whole

Estimate = tuple[float, float]
Count = Literal["all", "cautious", "trimmed"]
COUNTS = ("all", "cautious", "trimmed")


class OriginSamples:
    """Per arm and origin (n, S): the number of samples, and the sum of the clipped samples.

    The i-th sample x of (origin, arm), received at the end of round t, counts as clip(x, ±B),
    B = u^(1/p) max(1, i / L_max(t,2))^(1/p).
    """

    def __init__(self, policy: RobustPolicy, seat: Seat, *, f: int, spare: int, count: Count) -> None:
        if policy.forget is not None:
            raise InputError("a median over origins does not forget: leave forget out")
        if seat.prior is not None:
            raise InputError(
                "a median over origins takes no prior: leave prior out, or take KMPUCB without a guard"
            )
        moments = seat.require_moments(policy.moments)
        self._schedule = policy.confidence
        self._n_agents = seat.require_agents() if policy.confidence == "anytime" else 1
        self._agent, self._f, self._most, self._count = seat.agent, f, 2 * f + 1 + 2 * spare, count
        self._root, self._p = math.pow(moments.u, 1.0 / moments.p), moments.p
        zeta = 1.0 if policy.c is None and policy.zeta is None else policy.zeta
        self.radius = Radius.build(TrimmedMean(), moments, c=policy.c, zeta=zeta)
        """That of the raw moment u, whatever the policy's own mean is."""
        self.pending: Sequence[int] = [0] * seat.n_arms
        """Pulls of every arm whose rewards are still out; in rounds there are none."""
        self.latest: tuple[Estimate, ...] = ()
        """The estimates of the last decision."""
        self.prior, self.informed, self.clock, self.forget = None, False, None, None
        self._arms: list[dict[int, list[float]]] = [{} for _ in range(seat.n_arms)]

    def L(self, t: int) -> float:
        """ln(1/δ_t)."""
        return log_confidence(self._schedule, t, self._n_agents)

    def add(self, origin: int, arm: int, reward: float, t: int) -> None:
        """Add a sample of an origin, received at the end of round t."""
        entry = self._arms[arm].setdefault(origin, [0.0, 0.0])
        entry[0] += 1.0
        most = origin_clip(entry[0], self.L(max(t, 2)), self._root, self._p)
        entry[1] += min(max(reward, -most), most)

    def own(self, arm: int) -> Estimate:
        """(mean, n) of the own samples."""
        n, total = self._arms[arm].get(self._agent, (0.0, 0.0))
        return (total / n, n) if n else (math.inf, 0.0)

    def estimates(self, t: int) -> tuple[Estimate, ...]:
        """(mean, count) of every arm: the median over groups of origins, or the own where they are few."""
        self.latest = tuple(self._estimate(arm) for arm in range(len(self._arms)))
        return self.latest

    def _estimate(self, arm: int) -> Estimate:
        table = self._arms[arm]
        if len(table) <= 2 * self._f:
            return self.own(arm)
        G = min(self._most, len(table) - 1 + len(table) % 2)
        sums, counts = [0.0] * G, [0.0] * G
        order = sorted(table, key=lambda origin: (-table[origin][0], origin))
        group, step = 0, 1
        for origin in order:
            counts[group] += table[origin][0]
            sums[group] += table[origin][1]
            group, step = snake_step(group, step, G)
        middle = sorted(s / n for s, n in zip(sums, counts, strict=True))[G // 2]
        if self._count == "trimmed":
            return middle, G / (G - self._f) * sum(sorted(counts)[: G - self._f])
        if self._count == "cautious":
            return middle, min(sum(counts), G * sorted(counts)[G // 2 - self._f])
        return middle, sum(counts)

    def indices(self, t: int) -> list[float]:
        """min(own index, index of the estimate) of every arm: never above the own index."""
        L = self.L(t)
        found = []
        for arm, (mean, n) in enumerate(self.estimates(t)):
            out = self.pending[arm]
            own_mean, own_n = self.own(arm)
            found.append(
                min(self.radius.index(own_mean, own_n + out, L), self.radius.index(mean, n + out, L))
            )
        return found

    def state(self) -> list[list[list[float]]]:
        """All sums as plain data."""
        return [[[origin, *entry] for origin, entry in table.items()] for table in self._arms]

    def restore(self, state: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Go on from what `state()` described."""
        self._arms = [{int(v): [float(n), float(s)] for v, n, s in table} for table in state]


@dataclass(frozen=True, kw_only=True)
class OriginMedianUCB(MessagePassingPolicy):
    """Withstands f adversaries among those in reach, by a median over groups of origins.

    Parameters
    ----------
    f : int, default 1
        Number of adversaries in reach to withstand.
    spare : int, default 1
        Pairs of groups of origins beyond the 2f + 1 that are needed.
    count : "all" | "cautious" | "trimmed", default "all"
        What the radius counts: "all" samples, or fewer where groups differ in size: "trimmed",
        "cautious".

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.OriginMedianUCB(f=2, gamma=2).count
    'all'

    References
    ----------
    docs/imperfect.md: the fault model and what it costs.
    """

    label: ClassVar[str] = "Origin median"
    takes_prior: ClassVar[bool] = False
    f: int = 1
    spare: int = 1
    count: Count = "all"
    estimator: Estimator = field(default_factory=TrimmedMean, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("f", self.f, 0)
        whole("spare", self.spare)
        one_of("count", self.count, COUNTS)

    def agent(self, seat: Seat) -> OriginMedianAgent:
        samples = OriginSamples(self, seat, f=self.f, spare=self.spare, count=self.count)
        return OriginMedianAgent(self, seat, self.hops(seat), samples)


class OriginMedianAgent(MessagePassingAgent):
    """One agent; its samples are stored by origin."""

    def __init__(self, policy: RobustPolicy, seat: Seat, gamma: int, samples: OriginSamples) -> None:
        super().__init__(policy, seat, gamma, samples)
        self.by_origin = samples

    def worth(self, t: int) -> Sequence[Any]:
        return by_fewest_out(self.by_origin.indices(t), self.by_origin.pending)

    def add_own(self, arm: int, reward: float) -> None:
        self.by_origin.add(self.agent, arm, reward, self.now)

    def take(self, origin: int, arm: int, reward: float) -> None:
        self.by_origin.add(origin, arm, reward, self.now)
