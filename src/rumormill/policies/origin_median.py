"""OriginMedian MP-UCB: a median of means whose groups are origins, so that few liars cannot move it.

For an arm with samples of more than 2f origins these are dealt into G groups, G = 2f + 1 + 2 spare or, if
there are fewer origins, the largest odd number of them: those with most samples first, in snake order. With
m_g the mean and c_g the samples of group g, all samples clipped once on arrival (`policies/origins.py`):

    min( own mean + zeta u^(1/p) (L_t/n_own)^(eps/p) ,  median m_g + zeta u^(1/p) (L_t/Σ c_g)^(eps/p) )

Both are upper bounds, so the smaller one is; the own one sees to it that liars can never make an arm look
better than it does to somebody alone. With no more than 2f origins the own index counts.

With G >= max(16 f, 15 L) groups an honest majority holds with probability 1 - e^-L: f liars cost like extra
confidence. The default is far below that, a heuristic like zeta = 1. A liar that reports one arm every round
shrinks the radius, and everybody may then leave the best arm for good. count="trimmed", G/(G-f) times the
G - f smallest c_g, forgives that where groups are of about one size, as the theorem has them.
count="cautious" needs no such thing: beside f liars h = ⌊G/2⌋ + 1 - f honest groups must err before the
median does, so it counts G times the h-th smallest c_g (no more than all). Identities must be authentic; on
sparse graphs take gamma >= 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from rumormill.estimators import Estimator, TrimmedMean
from rumormill.policies.message_passing import MessagePassingPolicy, RobustPolicy
from rumormill.policies.origins import COUNTS, Count, OriginSamples
from rumormill.policies.passer import Passer
from rumormill.policies.seat import Seat
from rumormill.validate import one_of, whole


@dataclass(frozen=True, kw_only=True)
class OriginMedianUCB(MessagePassingPolicy):
    """Withstands f liars among those in reach; `spare` pairs of groups more than they could fill."""

    label: ClassVar[str] = "Origin median"
    f: int = 1
    """How many of those in reach may lie."""
    spare: int = 1
    """Pairs of groups of origins more than f liars could fill."""
    count: Count = "all"
    """What the radius counts: "all" samples, or fewer where groups differ: "trimmed", "cautious"."""
    estimator: Estimator = field(default_factory=TrimmedMean, init=False, repr=False)
    """Not a choice: it only says that the radius, and `c="theory"`, are those of the raw moment u."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("f", self.f, 0)
        whole("spare", self.spare)
        one_of("count", self.count, COUNTS)

    def agent(self, seat: Seat) -> OriginMedianAgent:
        samples = OriginSamples(self, seat, f=self.f, spare=self.spare, count=self.count)
        return OriginMedianAgent(self, seat, self.hops(seat), samples)


class OriginMedianAgent(Passer):
    """One agent; its samples are kept apart by origin."""

    def __init__(self, policy: RobustPolicy, seat: Seat, gamma: int, samples: OriginSamples) -> None:
        super().__init__(policy, seat, gamma, samples)
        self.by_origin = samples

    def decide(self, t: int) -> int:
        return self.by_origin.best(self.by_origin.indices(t))

    def take_own(self, arm: int, reward: float) -> None:
        self.by_origin.add(self.agent, arm, reward, self.now)

    def take(self, origin: int, arm: int, reward: float) -> None:
        self.by_origin.add(origin, arm, reward, self.now)
