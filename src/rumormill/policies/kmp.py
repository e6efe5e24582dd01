"""KMP-UCB (appendix): messages of O(K) carry what the sender knows of every arm.

A message carries (mean, N) of all arms as of the decision of its round. For each arm an agent takes,
among its own current (mean, n) and the newest row of every origin in reach, the one with the largest N
(its own on ties, then the smallest origin), and the radius uses that N:

    mean* + m^(1/p) (c L_t / N*)^(eps/p)

Regret O(α(G_γ) K Δ^(-1/eps) ln T) without knowing the graph.

What differs from the printed text:
- δ = t⁻², not 2 ln t; the table of rows starts empty, not with ones; rows carry the round they are from.
- in rounds t <= K nothing is known, so messages carry N = 0, which never wins.

With an estimator that brings its own index a row is (index, N), and the index of the best informed counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Literal

from rumormill.errors import InputError
from rumormill.policies.base import Seat
from rumormill.policies.forgetting import Forget
from rumormill.policies.message_passing_agent import MessagePassingAgent, by_fewest_out
from rumormill.policies.message_passing_policy import (
    FloodingPolicy,
    HopPart,
    MessagePassingPolicy,
    RobustPolicy,
)
from rumormill.policies.origin_median import Count, OriginSamples
from rumormill.policies.prior import Prior
from rumormill.protocol import Message
from rumormill.protocol.message import Heard, Rows, checked_rows, columns, plain_rows, rows_from_plain
from rumormill.validate import is_whole, refused

# How the guard keeps samples apart by origin.
GUARD_SPARE = 1
GUARD_COUNT: Count = "cautious"


@dataclass(frozen=True, kw_only=True)
class KMPUCB(MessagePassingPolicy):
    """Every agent uses, arm by arm, the best informed estimate in reach.

    Parameters
    ----------
    guard : int | "auto", default "auto"
        Number of adversaries to withstand; "auto": the number declared in the plan (default 0). With
        a guard the estimator is that of `OriginMedianUCB`.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.StudentT(df=3.0, loc=loc) for loc in (0.0, 1.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(5), rm.KMPUCB(gamma=1), horizon=50, rng=1)
    >>> result.actions is None, result.regret.shape[0]
    (True, 1)

    References
    ----------
    Dubey and Pentland (2020), "Cooperative multi-agent bandits with heavy tails", appendix. With a guard:
    docs/decisions/012-guard.md.
    """

    label: ClassVar[str] = "KMP"
    shares_rows: ClassVar[bool] = True
    guard: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        auto = isinstance(self.guard, str) and self.guard == "auto"
        if not (auto or (is_whole(self.guard) and int(self.guard) >= 0)):
            raise refused("guard", self.guard, 'a whole number >= 0, or "auto"')

    def require_prior(self, prior: Prior, n_arms: int, n_agents: int | None = None) -> None:
        super().require_prior(prior, n_arms, n_agents)
        if self.liars(0):
            raise InputError(f"guard = {self.guard} takes no prior: leave prior or guard out")

    def liars(self, known: int) -> int:
        """Number of adversaries to withstand if so many are declared."""
        return known if self.guard == "auto" else int(self.guard)

    def agent(self, seat: Seat) -> KMPAgent | GuardedAgent:
        f = self.liars(seat.part.liars if isinstance(seat.part, HopPart) else 0)
        return GuardedAgent(self, seat, self.hops(seat), f) if f else KMPAgent(self, seat, self.hops(seat))


class KMPAgent(MessagePassingAgent):
    """The appendix's algorithm for one agent."""

    def __init__(
        self, policy: FloodingPolicy | RobustPolicy, seat: Seat, gamma: int, samples: Any = None
    ) -> None:
        super().__init__(policy, seat, gamma, samples)
        self.heard: dict[int, Message] = {}  # per origin, its newest message
        self.heard_at: dict[int, int] = {}
        """How many samples were taken in then, where some are forgotten."""
        self._origins: list[int] = []  # of `heard`, sorted
        self.nothing: Rows = ((0.0, 0.0),) * seat.n_arms
        self.rows = self.nothing

    def choose(self, t: int) -> int:
        self.rows = self.nothing
        return super().choose(t)

    def rank(self, t: int, allowed: Sequence[int] | None = None, k: int = 1) -> list[int]:
        self.rows = self.nothing
        return super().rank(t, allowed, k)

    def worth(self, t: int) -> Sequence[Any]:
        self.rows = self.samples.rows(t)
        return self.samples.worth(t, self.best_informed())

    def best_informed(self) -> list[tuple[float, float]]:
        """For every arm the row with the largest count: the own on ties, then that of the smallest origin."""
        if len(self._origins) != len(self.heard):
            self._origins = sorted(self.heard)
        origins = self._origins
        if self.samples.clock is not None:
            origins = [origin for origin in origins if not self.forgotten(origin)]
        heard = [self.heard[origin].rows for origin in origins]
        return [max(rows, key=itemgetter(1)) for rows in zip(self.rows, *heard, strict=True)]

    def forgotten(self, origin: int) -> bool:
        """Whether the newest row of an origin is older than all samples that are not forgotten."""
        clock, forget = self.samples.clock, self.samples.forget
        if clock is None or not isinstance(forget, Forget) or forget.span is None:
            return False
        return clock.taken - self.heard_at[origin] >= forget.span

    def message(self, t: int, arm: int, reward: float) -> Message:
        return Message(self.agent, t, arm, reward, checked_rows(self.rows))

    def use(self, message: Message) -> None:
        self.take(message.origin, message.arm, message.reward)
        if self.validator.overclaims(message):
            self.relay.refused += 1
        else:
            self.hear(message)

    def use_all(self, news: Sequence[Message]) -> None:
        if self.samples.clock is not None:  # rows are stored with the number of samples so far
            super().use_all(news)
            return
        self.samples.add_all(*columns(news))
        if type(news) is Heard and type(self).hear is KMPAgent.hear and self.validator.claims_hold(news):
            self.heard.update(zip(news.line.origins, news, strict=True))
            return
        for message in news:
            if self.validator.overclaims(message):
                self.relay.refused += 1
            else:
                self.hear(message)

    def hear(self, message: Message) -> None:
        """Store the rows of another agent, if they are its newest."""
        newest = self.heard.get(message.origin)
        if (newest is None or message.round > newest.round) and len(message.rows) == self.n_arms:
            self.heard[message.origin] = message
            if self.samples.clock is not None:
                self.heard_at[message.origin] = self.samples.clock.taken

    def state(self) -> dict[str, Any]:
        heard = [message.plain() for message in self.heard.values()]
        at = {"heard_at": [list(each) for each in self.heard_at.items()]} if self.heard_at else {}
        return {**super().state(), "heard": heard, "rows": plain_rows(self.rows), **at}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        heard = [Message.from_plain(each) for each in state["heard"]]
        self.heard, self._origins = {message.origin: message for message in heard}, []
        self.heard_at = {int(origin): int(taken) for origin, taken in state.get("heard_at", ())}
        self.rows = rows_from_plain(state["rows"])


class GuardedAgent(KMPAgent):
    """KMP with at most f adversaries in reach: every index stays an upper bound, whatever they send.

    Samples are stored by origin, as in OriginMedianUCB with one spare pair of groups and cautious counts, and
    rows carry its (median of groups, count). The index of an arm is the minimum of: the own index; that of
    the median of groups; the median of the indices of all received rows, if these are more than 2f. So false
    messages can raise an index neither above the own one, nor lower it below that of some honest agent.
    """

    def __init__(self, policy: RobustPolicy, seat: Seat, gamma: int, f: int) -> None:
        self.by_origin = OriginSamples(policy, seat, f=f, spare=GUARD_SPARE, count=GUARD_COUNT)
        super().__init__(policy, seat, gamma, self.by_origin)
        self.f = f

    def worth(self, t: int) -> Sequence[Any]:
        values = self.by_origin.indices(t)
        self.rows = self.by_origin.latest
        radius, L = self.by_origin.radius, self.by_origin.L(t)
        for arm in range(self.n_arms):
            rows = [message.rows[arm] for message in self.heard.values()]
            claimed = sorted(radius.index(mean, n, L) for mean, n in rows if n > 0)
            if len(claimed) > 2 * self.f:
                values[arm] = min(values[arm], claimed[len(claimed) // 2])
        return by_fewest_out(values, self.by_origin.pending)

    def add_own(self, arm: int, reward: float) -> None:
        self.by_origin.add(self.agent, arm, reward, self.now)

    def take(self, origin: int, arm: int, reward: float) -> None:
        self.by_origin.add(origin, arm, reward, self.now)
