"""ε-greedy (Sutton and Barto 1998; Auer, Cesa-Bianchi and Fischer 2002) over all that was heard.

In round t > K an agent pulls, with rate_t = rate, or min(1, rate K / t) with `decay`,

    arm ⌊K U(THOMPSON; v, t, 1)⌋            if U(THOMPSON; v, t, 0) < rate_t
    the arm of the largest (1/n) Σ x        else, over own and heard samples

With a fixed rate regret is linear in the end. With `decay` exploring costs O(ln T), and regret is
O(K ln T / Δ²) for bounded rewards if the rate is large enough for the least gap (Auer, Cesa-Bianchi and
Fischer, theorem 3, from memory: rate_t = min(1, c K / (d² t)) with c > 5 and 0 < d <= Δ_min). Nothing is
known for heavy tails, where plain means do not concentrate exponentially.

What differs from the printed text: samples of other agents count like own ones; every agent draws by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from rumormill.estimators.empirical import OnlineEmpirical
from rumormill.policies.base import Seat, mixed
from rumormill.policies.message_passing_agent import MessagePassingAgent, OwnDraws, Samples, ranked
from rumormill.policies.message_passing_policy import FloodingPolicy
from rumormill.validate import LARGEST_CONSTANT, between, probability, truth


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(FloodingPolicy):
    """A random arm with probability `rate`, else the arm of the largest mean.

    Parameters
    ----------
    rate : float, default 0.05
        Probability of exploring in a round; with `decay` the constant of min(1, rate K / t).
    decay : bool, default False
        Explore less and less, with probability min(1, rate K / t).
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.EpsilonGreedy(rate=0.1).chance(100, 5), rm.EpsilonGreedy(rate=2.0, decay=True).chance(100, 5)
    (0.1, 0.1)

    References
    ----------
    Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".
    """

    label: ClassVar[str] = "ε-greedy"
    rate: float = 0.05
    decay: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if truth("decay", self.decay):
            between("rate", self.rate, 0, LARGEST_CONSTANT)
        else:
            probability("rate", self.rate)

    def chance(self, t: int, n_arms: int) -> float:
        """rate_t, the probability of exploring in round t."""
        return min(1.0, self.rate * n_arms / t) if self.decay else self.rate

    def agent(self, seat: Seat) -> EpsilonGreedyAgent:
        return EpsilonGreedyAgent(self, seat)


class EpsilonGreedyAgent(MessagePassingAgent):
    """One agent."""

    def __init__(self, policy: EpsilonGreedy, seat: Seat) -> None:
        super().__init__(
            policy, seat, policy.hops(seat), Samples.of([OnlineEmpirical() for _ in range(seat.n_arms)])
        )
        self.chance, self.draws = policy.chance, OwnDraws(seat)

    def worth(self, t: int) -> Sequence[Any]:
        explored, rate, arms = -1, self.chance(t, self.n_arms), self.allowed
        if self.draws.uniform(t, 0) < rate:
            explored = arms[int(self.draws.uniform(t, 1) * len(arms))]
        means = [mean for mean, _ in self.samples.estimates(t)]
        uniform = dict.fromkeys(arms, 1.0 / len(arms))
        self.drawn = partial(mixed, uniform, ranked(means, arms)[0], 1.0 - rate)
        return [(arm == explored, mean) for arm, mean in enumerate(means)]
