"""DDUCB (Martínez-Rubio, Kanade and Rebeschini 2019): delayed averages, mixed by accelerated gossip.

Rounds beyond K are grouped in stages of C. What was pulled in one stage is mixed with the neighbours during
the next, y_(r+1) = (2 w_r/(λ w_(r+1))) P y_r - (w_(r-1)/w_(r+1)) y_(r-1), and used in the one after:

    use_s/use_n + σ √(2 η ln max(seen, 2) / (M use_n))        `use`: averages per agent over all mixed stages

λ is the second largest |eigenvalue| of P, w_0 = 1, w_1 = 1/λ, w_(r+1) = 2 w_r/λ - w_(r-1), and C =
⌈ln(2M/e)/√(2 ln(1/λ))⌉ with e = 1/22 (`accelerated=False`: y_(r+1) = P y_r, C = ⌈ln(M/e)/ln(1/λ)⌉).
`own=True`: an agent decides every round, and adds its own pulls to what it uses at once; `own=False`: it
decides once per stage. Regret Σ 16 η (1 + e/2) σ² ln(TM)/Δ + (M(6C+1) + C + 4/(η-1)) ΣΔ, sub-Gaussian
rewards.

What differs from the published code: there is one step of gossip a round, as published in print (there, C
steps in each of the C rounds), own pulls are not counted twice, nothing unmixed is used, the first averages
are divided by M; counts, which acceleration can push below zero, are at least 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.formulas import chebyshev_step, consensus_average, delayed_index, delayed_scale
from rumormill.graphs import Network, second_size
from rumormill.policies.averaging import (
    heard_sums,
    link_weight,
    neighbour_validator,
    newest_rows,
    root_moment,
)
from rumormill.policies.base import Policy, Seat
from rumormill.policies.message_passing_agent import first_best
from rumormill.protocol import Imperfect, Message, World
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, above, between, refused, truth

ERROR = 1 / 22
# Where gossip is exact in one step there is nothing to accelerate.
EXACT = 1e-9


@dataclass(frozen=True)
class DelayedPlan:
    """The weight of a link, the length C of a stage, and the two factors of its every step."""

    weight: float
    forward: tuple[float, ...]
    back: tuple[float, ...]

    @property
    def stage(self) -> int:
        """C."""
        return len(self.forward)

    def part(self, agent: int) -> DelayedPlan:
        return self


def stage_steps(second: float, n_agents: int, accelerated: bool) -> tuple[list[float], list[float]]:
    """forward and back: step r is forward P y_r - back y_(r-1)."""
    if second < EXACT:
        return [1.0], [0.0]
    if not accelerated:
        length = max(1, math.ceil(math.log(n_agents / ERROR) / math.log(1.0 / second)))
        return [1.0] * length, [0.0] * length
    length = max(1, math.ceil(math.log(2.0 * n_agents / ERROR) / math.sqrt(2.0 * math.log(1.0 / second))))
    forward, back, before, now = [1.0], [0.0], 1.0, 1.0 / second
    for _ in range(1, length):
        after = 2.0 * now / second - before
        forward.append(2.0 * now / (second * after))
        back.append(before / after)
        before, now = now, after
    return forward, back


LEAST_COUNT = 1e-9
# What an agent would need to go on later, besides its last pull.
KEPT = ("use", "mix", "before", "fresh", "done", "seen", "round", "step", "arm")


@dataclass(frozen=True, kw_only=True)
class DDUCB(Policy):
    """Delayed gossip.

    Parameters
    ----------
    sigma : float | None, default None
        Sub-Gaussian scale of the rewards; by default rho^(1/p).
    eta : float, default 2.0
        Exploration constant, above 1.
    accelerated : bool, default True
        Accelerated gossip, or plain averages in longer stages.
    own : bool, default True
        Decide every round and use own pulls at once, or decide once per stage.
    zeta : float, default 1.0
        Factor on the radius.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.DDUCB().plan(rm.Network.ring(5)).stage
    5

    References
    ----------
    Martínez-Rubio, Kanade and Rebeschini (2019), "Decentralized cooperative stochastic bandits".
    """

    label: ClassVar[str] = "DDUCB"

    sigma: float | None = None
    eta: float = 2.0
    accelerated: bool = True
    own: bool = True
    zeta: float = 1.0
    moments: Moments | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None:
            between("sigma", self.sigma, LEAST_CONSTANT, LARGEST_CONSTANT)
        above("eta", self.eta, 1, LARGEST_CONSTANT)
        between("zeta", self.zeta, LEAST_CONSTANT, LARGEST_CONSTANT)
        truth("accelerated", self.accelerated)
        truth("own", self.own)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")

    def plan(self, network: Network) -> DelayedPlan:
        weight = link_weight(network)
        forward, back = stage_steps(second_size(network), network.n_agents, self.accelerated)
        return DelayedPlan(weight, tuple(forward), tuple(back))

    def require_supported(self, world: World) -> None:
        known = world.messages_arrive or not isinstance(world.channel, Imperfect)
        if not (known and world.all_present and world.truthful):
            raise InputError(
                "DDUCB requires a fault-free channel: accelerated gossip amplifies what is missing or false; "
                "take a message-passing policy"
            )

    def plan_key(self) -> object:
        return (type(self), self.accelerated)

    @property
    def needs_moments(self) -> bool:
        return self.sigma is None

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        sigma = root_moment(self.moments or moments) if self.sigma is None else self.sigma
        return {"sigma": sigma, "eta": self.eta, "zeta": self.zeta}

    def scale(self, moments: Moments | None) -> float:
        """ζ σ."""
        if self.sigma is not None:
            return self.zeta * self.sigma
        assert moments is not None
        return self.zeta * root_moment(moments)

    def agent(self, seat: Seat) -> DelayedAgent:
        part: DelayedPlan = seat.require_part(DelayedPlan)
        moments = seat.require_moments(self.moments) if self.needs_moments else None
        return DelayedAgent(self, seat, self.scale(moments), part)


class DelayedAgent:
    """One row of P. Lists are sums of all arms, then counts of all arms."""

    def __init__(self, policy: DDUCB, seat: Seat, sigma: float, plan: DelayedPlan) -> None:
        self.agent = seat.agent
        self.n_arms = seat.n_arms
        self.n_agents = seat.require_agents()
        self.own, self.eta, self.sigma, self.plan = policy.own, policy.eta, sigma, plan
        nothing = [0.0] * (2 * seat.n_arms)
        self.use, self.mix, self.before = list(nothing), list(nothing), list(nothing)
        self.fresh, self.done = list(nothing), list(nothing)
        self.seen = seat.n_arms
        self.round = self.step = self.arm = 0
        self.last = (0, 0.0)
        self.validator = neighbour_validator(seat, signed_counts=True)
        self.refused = 0

    def choose(self, t: int) -> int:
        if t <= self.n_arms:
            return t - 1
        if self.own or self.step == 0:
            scale = delayed_scale(self.seen, self.sigma, self.eta)
            sums, counts = self.use[: self.n_arms], self.use[self.n_arms :]
            pairs = zip(sums, counts, strict=True)
            self.arm = first_best([delayed_index(s, n, self.n_agents, scale) for s, n in pairs])
        return self.arm

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.round, self.last = t, (int(arm), reward)
        count = self.n_arms + arm
        if t <= self.n_arms:
            self.mix[arm] += reward
            self.mix[count] += 1.0
            return
        self.fresh[arm] += reward
        self.fresh[count] += 1.0
        if self.own:
            self.use[arm] += reward / self.n_agents
            self.use[count] += 1.0 / self.n_agents
            self.seen += 1

    def outgoing(self, t: int) -> list[Message]:
        if self.n_agents == 1:
            return []
        rows = tuple(zip(self.mix[: self.n_arms], self.mix[self.n_arms :], strict=True))
        return [Message(self.agent, t, *self.last, rows)]

    def receive(self, messages: Sequence[Message]) -> None:
        if self.round < self.n_arms:
            return
        if self.round == self.n_arms:
            self.use = [value / self.n_agents for value in self.mix]
            return
        sound = [message for message in messages if self.validator.accepts(message, self.round)]
        self.refused += len(messages) - len(sound)
        self._mix(newest_rows(sound))
        self.step += 1
        if self.step == self.plan.stage:
            self._end_stage()

    def _mix(self, rows: dict[int, tuple[tuple[float, float], ...]]) -> None:
        forward, back, weight = self.plan.forward[self.step], self.plan.back[self.step], self.plan.weight
        after = list(self.mix)
        for arm in range(self.n_arms):
            for place, heard in zip((arm, self.n_arms + arm), heard_sums(rows, arm), strict=True):
                mixed = consensus_average(self.mix[place], heard, len(rows), weight)
                after[place] = chebyshev_step(mixed, self.before[place], forward, back)
        self.before, self.mix = self.mix, after

    def _end_stage(self) -> None:
        """What was mixed is used, what was pulled is mixed."""
        self.done = [old + new for old, new in zip(self.done, self.mix, strict=True)]
        self.use = self.done[: self.n_arms] + [max(n, LEAST_COUNT) for n in self.done[self.n_arms :]]
        self.mix = self.fresh
        self.fresh, self.before = [0.0] * (2 * self.n_arms), [0.0] * (2 * self.n_arms)
        self.seen = (self.round - self.plan.stage) * self.n_agents
        self.step = 0

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as plain data."""
        return {name: getattr(self, name) for name in KEPT} | {"last": list(self.last)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` described."""
        for name in KEPT:
            value = state[name]
            setattr(self, name, [float(x) for x in value] if isinstance(value, list) else int(value))
        self.last = (int(state["last"][0]), float(state["last"][1]))
