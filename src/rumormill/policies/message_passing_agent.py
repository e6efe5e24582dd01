"""Base class of message-passing agents: samples with indices, initial rounds, outgoing messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rumormill.counter_rng import THOMPSON, key_of, key_with, uniform_at
from rumormill.errors import ContractError
from rumormill.estimators import Estimator, OnlineMean, Radius, Terms
from rumormill.formulas import log_confidence, shared_arm, worth_sending
from rumormill.policies.base import Seat
from rumormill.policies.forgetting import (
    DiscountedMean,
    Forget,
    ForgetfulMean,
    RestartedMean,
    SampleClock,
    WindowMean,
)
from rumormill.policies.message_passing_policy import FloodingPolicy, HopPart, RobustPolicy
from rumormill.policies.prior import PriorState
from rumormill.protocol import Message, MessageValidator, Relay
from rumormill.protocol.message import plain_rows, rows_from_plain


def first_best(values: Sequence[Any]) -> int:
    """argmax; the lowest index on ties."""
    return values.index(max(values))


def by_fewest_out(values: Sequence[float], out: Sequence[int]) -> Sequence[Any]:
    """Sort keys: the value; of arms that must be pulled (+inf), the fewest pulls without a reward."""
    if not any(out):
        return values
    return [(value, -n if value == math.inf else 0) for value, n in zip(values, out, strict=True)]


def ranked(worth: Sequence[Any], allowed: Iterable[int]) -> list[int]:
    """The allowed arms, in ascending order when given, by decreasing worth; the lowest first on ties."""
    return sorted(allowed, key=worth.__getitem__, reverse=True)


def circle(start: int, n_arms: int, allowed: Iterable[int]) -> list[int]:
    """The allowed arms from `start` on, in a circle."""
    return sorted(allowed, key=lambda arm: (arm - start) % n_arms)


class OwnDraws:
    """The counter-based uniforms of one agent: U(THOMPSON; agent, t, i)."""

    def __init__(self, seat: Seat) -> None:
        key: int | None = getattr(seat.part, "draws", None)
        self.key: int = key_with(key_of(0, THOMPSON), seat.agent) if key is None else key

    def uniform(self, t: int, i: int) -> float:
        """Draw i of round t."""
        return float(uniform_at(key_with(key_with(self.key, t), i)))


class Samples:
    """The samples of every arm that one agent has, in arrival order, and their indices."""

    _level: tuple[int, float] = 0, math.nan
    """A round and its L, which a decision asks for more than once."""

    def __init__(self, policy: RobustPolicy, seat: Seat) -> None:
        estimator = policy.estimator
        self.forget = policy.forget
        self.clock: SampleClock | None = None
        """Counts samples, where some are forgotten."""
        self._schedule = policy.confidence
        self._n_agents = seat.require_agents() if policy.confidence == "anytime" else 1
        moments = policy.moments or seat.moments
        if estimator.needs_moments:
            moments = seat.require_moments(policy.moments)
        self.radius: Radius | None = None
        """None where the estimator brings its own index."""
        if moments is not None and not estimator.brings_index:
            self.radius = policy.radius(moments)
        self.pending: Sequence[int] = [0] * seat.n_arms
        """Pulls of every arm whose rewards are still out; in rounds there are none."""
        self.latest: tuple[tuple[float, float], ...] = ()
        """The estimates of the last decision."""
        terms = Terms(
            moments=moments,
            last_L=math.inf if seat.horizon is None else self.L(seat.horizon),
            horizon=seat.horizon,
            n_arms=seat.n_arms,
            group=seat.part.group if isinstance(seat.part, HopPart) else 1,
        )
        self._arms: list[Any] = [estimator.stream_for(terms) for _ in range(seat.n_arms)]
        if isinstance(self.forget, Forget):
            self.clock = SampleClock()
            self._arms = [self._forgetful(estimator, terms) for _ in range(seat.n_arms)]
        self.prior = prior_state(policy, seat)
        """None where the agent was born without one."""

    @classmethod
    def of(cls, arms: Sequence[OnlineMean]) -> Samples:
        """The samples of streams that compute their own index, one per arm, at L_t = 2 ln t."""
        made = cls.__new__(cls)
        made._schedule, made._n_agents, made.radius = "paper", 1, None
        made.pending, made.latest, made._arms = [0] * len(arms), (), list(arms)
        made.prior = made.forget = made.clock = None
        return made

    def _forgetful(self, estimator: Estimator, terms: Terms) -> ForgetfulMean:
        """The samples of an arm that are not forgotten."""
        forget, clock = self.forget, self.clock
        assert isinstance(forget, Forget)
        assert clock is not None
        fresh = partial(estimator.stream_for, terms)
        if forget.window is not None:
            return WindowMean(clock, fresh, forget.window)
        if forget.discount is not None:
            moments = terms.moments if estimator.clips else None
            return DiscountedMean(clock, fresh, forget.discount, self.L(forget.span or 1), moments)
        return RestartedMean(clock, fresh)

    def L(self, t: int) -> float:
        """ln(1/δ_t)."""
        if t != self._level[0]:
            span = self.forget.span if isinstance(self.forget, Forget) else None
            at = t if span is None else min(t, span)
            self._level = t, log_confidence(self._schedule, at, self._n_agents)
        return self._level[1]

    def add(self, arm: int, reward: float) -> None:
        """One more sample of an arm."""
        if self.clock is not None:
            self.clock.taken += 1
        self._arms[arm].update(reward)
        if self.prior is not None:
            self.prior.taken += 1

    def add_all(self, arms: Sequence[int], rewards: Sequence[float]) -> None:
        """Further samples."""
        if self.clock is not None or self.prior is not None or len(arms) < len(self._arms):
            for arm, reward in zip(arms, rewards, strict=True):
                self.add(arm, reward)
            return
        by_arm: list[list[float]] = [[] for _ in self._arms]
        for arm, reward in zip(arms, rewards, strict=True):
            by_arm[arm].append(reward)
        for stream, rewards in zip(self._arms, by_arm, strict=True):
            if rewards:
                stream.extend(rewards)

    def stream(self, arm: int) -> Any:
        """The stream of an arm."""
        return self._arms[arm]

    @property
    def counts(self) -> list[float]:
        """The number of samples of every arm."""
        return [float(samples.count) for samples in self._arms]

    def estimates(self, t: int) -> tuple[tuple[float, float], ...]:
        """(mean, count) of every arm in round t."""
        L = self.L(t)
        self.latest = tuple([(samples.mean(L), float(samples.count)) for samples in self._arms])
        return self.latest

    def rows(self, t: int) -> tuple[tuple[float, float], ...]:
        """What indices are made of: (mean, count), or (index, count) where the estimator brings its own."""
        rows, L = self.estimates(t), self.L(t)
        if self.radius is None:
            rows = tuple((samples.index(L), float(samples.count)) for samples in self._arms)
        if self.prior is not None:
            self.prior.check(L, self.latest, self.radius, rows)
        return rows

    def indices(self, t: int, rows: Sequence[tuple[float, float]]) -> list[float]:
        """The index of every arm in round t; +inf where an arm must be pulled.

        A pull whose reward is still out counts in the radius, so that many open ones do not all take one arm.
        """
        L = self.L(t)
        if self.radius is None:
            if self.prior is None:
                return [index for index, _ in rows]
            out = self.pending
            return [self.prior.own_index(arm, index, n, out[arm], L) for arm, (index, n) in enumerate(rows)]
        if self.prior is not None:
            return [
                self.prior.index(arm, mean, n, self.pending[arm], L, self.radius)
                for arm, (mean, n) in enumerate(rows)
            ]
        return self.radius.indices(rows, self.pending, L)

    def worth(self, t: int, rows: Sequence[tuple[float, float]]) -> Sequence[Any]:
        """What arms are ranked by: the index; among those that must be pulled, the fewest out."""
        return by_fewest_out(self.indices(t, rows), self.pending)

    @property
    def informed(self) -> bool:
        """Whether a prior on every arm makes the initial rounds needless."""
        return self.prior is not None and self.prior.complete

    def state(self) -> list[dict[str, Any]]:
        """The samples of every arm as plain data."""
        taken = {} if self.clock is None else {"taken": self.clock.taken}
        return [{**samples.state(), **taken} for samples in self._arms]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        """Go on from what `state()` described."""
        if self.clock is None:
            self._arms = [type(fresh).from_state(each) for fresh, each in zip(self._arms, state, strict=True)]
            return
        self.clock.taken = int(state[0]["taken"])
        for arm, each in zip(self._arms, state, strict=True):
            arm.load(each)


def prior_state(policy: RobustPolicy, seat: Seat) -> PriorState | None:
    """The prior of a seat at the start of a game."""
    if seat.prior is None or not any(seat.prior.weights):
        return None
    policy.require_prior(seat.prior, seat.n_arms)
    return PriorState(seat.prior)


class MessagePassingAgent:
    """An agent with samples of its own and of others, that floods messages.

    A subclass gives `worth`, by which arms are ranked; or `decide` alone, and then takes no constraint.
    """

    def __init__(
        self, policy: FloodingPolicy | RobustPolicy, seat: Seat, gamma: int, samples: Any = None
    ) -> None:
        if samples is None:
            assert isinstance(policy, RobustPolicy)
            samples = Samples(policy, seat)
        self.agent = seat.agent
        self.n_arms = seat.n_arms
        self.start_and_quiet = policy.start_and_quiet
        self.samples: Samples = samples
        self.relay = Relay(seat.agent, gamma, several=seat.tries > 1)
        self.validator = message_validator(policy, seat, gamma)
        self.now = 0
        self.allowed: Sequence[int] = range(seat.n_arms)
        """The arms among which the present decision is made, ascending."""
        self.drawn: Callable[[], Mapping[int, float]] | None = None
        """The chance of every arm in the last decision; None if nothing was drawn."""

    def propensity(self, arm: int) -> float:
        """The probability that the draws of the last decision lead to this arm, which was its first."""
        return 1.0 if self.drawn is None else float(self.drawn()[arm])

    def choose(self, t: int) -> int:
        self.now, self.drawn = t, None
        first = self._first(t) if t <= self.n_arms and not self.samples.informed else -1
        return self.decide(t) if first < 0 else first

    def rank(self, t: int, allowed: Sequence[int] | None = None, k: int = 1) -> list[int]:
        """At least the k best of the allowed arms (ascending; None: all), the best first."""
        if allowed is None and k == 1:
            return [self.choose(t)]
        self.now, self.drawn = t, None
        self.allowed = range(self.n_arms) if allowed is None else allowed
        try:
            first = self._first_arms(t) if t <= self.n_arms and not self.samples.informed else []
            return first or self.order(t, k)
        finally:
            self.allowed = range(self.n_arms)

    def _first(self, t: int) -> int:
        """The arm of one of the first K rounds; -1 if the agent may decide already."""
        if self.start_and_quiet.start == "round-robin":
            return t - 1
        return shared_arm(t, self.agent, [n for _, n in self.samples.estimates(t)])

    def _first_arms(self, t: int) -> list[int]:
        """The allowed arms in the order of one of the first K rounds; none if the agent decides."""
        if self.start_and_quiet.start == "round-robin":
            return circle(t - 1, self.n_arms, self.allowed)
        counts = [n for _, n in self.samples.estimates(t)]
        if all(counts[arm] for arm in self.allowed):
            return []
        around = circle(t - 1 + self.agent, self.n_arms, self.allowed)
        return sorted(around, key=lambda arm: counts[arm] > 0)

    def decide(self, t: int) -> int:
        """The arm to pull after the initial rounds."""
        return first_best(self.worth(t))

    def order(self, t: int, k: int) -> list[int]:
        """At least the k best of `allowed`, after the initial rounds."""
        return ranked(self.worth(t), self.allowed)

    def worth(self, t: int) -> Sequence[Any]:
        """A sort key for every arm: the largest is the best, the lowest arm on ties."""
        raise ContractError(
            f"{type(self).__name__} ranks no arms: give it worth(t), a sort key for every arm, or leave "
            "allowed and k out"
        )

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.now = max(self.now, t)
        if self.sends(t, arm):  # decided from what was known before the pull
            self.relay.post(self.message(t, arm, reward))
        self.add_own(arm, reward)

    def add_own(self, arm: int, reward: float) -> None:
        """Add a sample of the own pulls."""
        self.samples.add(arm, reward)

    def sends(self, t: int, arm: int) -> bool:
        """Whether the pull of this round is sent."""
        quiet = self.start_and_quiet.quiet
        if quiet is None or t <= self.n_arms or not self.samples.latest:
            return True
        means, counts = zip(*self.samples.latest, strict=True)
        return worth_sending(arm, means, counts, quiet)

    def message(self, t: int, arm: int, reward: float) -> Message:
        """The message about a pull."""
        return Message(self.agent, t, arm, reward)

    def outgoing(self, t: int) -> list[Message]:
        return self.relay.outgoing(t)

    def receive(self, messages: Sequence[Message]) -> None:
        self.use_all(self.relay.accept(messages, self.validator, self.now))

    def __init_subclass__(cls) -> None:
        """A class that changes what is done with one message does it with each."""
        if "use_all" not in vars(cls) and ("use" in vars(cls) or "take" in vars(cls)):
            cls.use_all = MessagePassingAgent.use_all  # type: ignore[method-assign]

    def use_all(self, news: Sequence[Message]) -> None:
        """Use new messages, in this order; a class may do so faster than one by one."""
        for message in news:
            self.use(message)

    @property
    def refused(self) -> int:
        """Number of invalid messages, which no honest agent could have sent."""
        return self.relay.refused

    def use(self, message: Message) -> None:
        """Add the sample of a new message."""
        self.take(message.origin, message.arm, message.reward)

    def take(self, origin: int, arm: int, reward: float) -> None:
        """Add a new sample of another agent."""
        self.samples.add(arm, reward)

    def awaiting(self, pending: Sequence[int]) -> None:
        """Set the number of pulls of every arm whose rewards are not yet known."""
        self.samples.pending = pending

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as plain data."""
        prior = self.samples.prior
        return {
            **({} if prior is None else {"prior": prior.state()}),
            "samples": self.samples.state(),
            "relay": self.relay.state(),
            "now": self.now,
            "latest": plain_rows(self.samples.latest),  # decides what is sent once the reward is known
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` described; the prior may be another."""
        self.samples.restore(state["samples"])
        if self.samples.prior is not None:
            self.samples.prior.restore(state.get("prior"), self.samples.counts)
        self.relay.restore(state["relay"])
        self.now = int(state.get("now", 0))
        self.samples.latest = rows_from_plain(state.get("latest", ()))


def message_validator(policy: FloodingPolicy | RobustPolicy, seat: Seat, gamma: int) -> MessageValidator:
    """The validator of an agent, from its seat and its part of the plan."""
    part = seat.part if isinstance(seat.part, HopPart) else HopPart(gamma)
    origins: dict[int, int] | Collection[int] | None = part.origins
    if origins is None and gamma == 1 and seat.neighbours:
        origins = frozenset(seat.neighbours)
    return MessageValidator(
        n_arms=seat.n_arms,
        origins=origins,
        n_agents=seat.n_agents,
        oldest=None if part.delay is None else gamma + part.delay,
        rows=policy.shares_rows,
    )
