"""The default: cooperative Thompson sampling that decides from the data what it may trust.

While the arms' residuals share a shape, locations (Huber's mean, clipped where the data say) are compared:
arm k's draw is location_k + sd_k Z. Once a smooth test says that shapes differ, means are compared: clipped
below, hardly above. Every arm gets at least f ln(1 + N) of the N samples that an agent has. No moments, no
horizon, no constants to set. The exact rule: docs/semantics.md, "The default"; what is known about its
regret: docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from rumormill import default_rule as rule
from rumormill.default_rule import Beliefs
from rumormill.estimators import ClippedMean
from rumormill.formulas import inverse_normal
from rumormill.graphs import Network
from rumormill.policies.base import Seat, argmax_chances, mixed
from rumormill.policies.kmp import KMPUCB
from rumormill.policies.message_passing_agent import MessagePassingAgent, OwnDraws, ranked
from rumormill.policies.message_passing_policy import FloodingPolicy, HopPart, HopPlan, StartAndQuiet
from rumormill.validate import is_whole, refused, truth

# Beyond so many agents in reach on average, "auto" takes a smaller hop budget than the diameter.
MOST_IN_REACH = 512


@dataclass(frozen=True, kw_only=True)
class Default(FloodingPolicy):
    """Cooperative Thompson sampling without constants: what to take if nothing is known.

    Parameters
    ----------
    gamma : int | "auto", default "auto"
        Hop budget of messages; "auto" is the diameter where agents have at most 512 others in reach on
        average, else the largest budget for which that holds (at least 1).

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Pareto(tail=1.5).at_mean(mean) for mean in (3.0, 4.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(5), rm.Default(), horizon=400, rng=1)
    >>> result.engine, result.regret.shape
    ('fast', (1, 200))

    References
    ----------
    docs/semantics.md, "The default"; docs/decisions/018-default.md.
    """

    label: ClassVar[str] = "Default"
    gamma: int | Literal["auto"] = "auto"  # type: ignore[assignment]

    def __post_init__(self) -> None:
        named = isinstance(self.gamma, str) and self.gamma == "auto"
        if not (named or (is_whole(self.gamma) and int(self.gamma) >= 0)):
            raise refused("gamma", self.gamma, 'a whole number >= 0, or "auto"')

    @property
    def start_and_quiet(self) -> StartAndQuiet:
        return StartAndQuiet(start="shared")

    def plan(self, network: Network) -> HopPlan:
        gamma = widest_reach(network) if isinstance(self.gamma, str) else network.resolve_gamma(self.gamma)
        return HopPlan(gamma, near=network.neighbourhoods(gamma))

    def agent(self, seat: Seat) -> DefaultAgent:
        return DefaultAgent(self, seat)


def widest_reach(network: Network) -> int:
    """The diameter; of large networks the largest hop budget with few enough agents in reach, at least 1."""
    if network.n_agents <= MOST_IN_REACH + 1:
        return network.diameter
    gamma = 1
    while True:
        distances = network.neighbourhoods(gamma).distances
        # Per hop, how many agents are so far away, on average.
        shells = np.bincount(distances, minlength=gamma + 1)[1:] / network.n_agents
        reach = np.cumsum(shells)
        if reach[-1] > MOST_IN_REACH or shells[-1] == 0.0:
            within = np.count_nonzero((reach <= MOST_IN_REACH) & (shells > 0.0))
            return network.resolve_gamma(max(int(within), 1))
        gamma += _few_enough_hops(shells.tolist(), MOST_IN_REACH - float(reach[-1]))


def _few_enough_hops(shells: list[float], room: float) -> int:
    """How many hops more would fill the room if shells went on growing at their last rate; at most twice."""
    before = shells[-2] if len(shells) > 1 else 1.0
    shell, rate, more = shells[-1], max(shells[-1] / before, 1.0), 0
    while more < len(shells) and room > 0.0:
        shell *= rate
        room -= shell
        more += 1
    return max(more, 1)


class BeliefSamples:
    """The samples of one agent: `Beliefs` of lists, and what agents and live nodes ask of samples."""

    informed, prior = False, None

    def __init__(self, n_arms: int) -> None:
        self.beliefs = empty_beliefs(n_arms)
        self.pending: Sequence[int] = [0] * n_arms
        self.latest: tuple[tuple[float, float], ...] = ()

    def add(self, arm: int, reward: float) -> None:
        rule.add_sample(self.beliefs, arm, reward)

    def estimates(self, t: int) -> tuple[tuple[float, float], ...]:
        """(location or mean, count) of every arm."""
        del t
        return tuple(zip(self.beliefs.value, self.beliefs.n, strict=True))

    def state(self) -> list[dict[str, Any]]:
        return [deepcopy(self.beliefs._asdict())]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        self.beliefs = Beliefs(**deepcopy(state[0]))


def empty_beliefs(n_arms: int) -> Beliefs:
    """Before the first sample."""
    room = rule.store_room(n_arms)

    def zeros() -> list[float]:
        return [0.0] * n_arms

    return Beliefs(
        n=zeros(),
        store=[[0.0] * room for _ in range(n_arms)],
        centre=zeros(),
        psi=zeros(),
        square=zeros(),
        inside=zeros(),
        origin=zeros(),
        top=[[0.0] * rule.TOP for _ in range(n_arms)],
        filled=[0] * n_arms,
        rest=zeros(),
        squares=zeros(),
        fitted_n=zeros(),
        known=[-1.0] * n_arms,
        value=zeros(),
        spread=zeros(),
        share=zeros(),
        now=[0.0] * rule.NOW,
    )


class DefaultAgent(MessagePassingAgent):
    """The rule for one agent."""

    samples: Any

    def __init__(self, policy: Default, seat: Seat) -> None:
        super().__init__(policy, seat, policy.hops(seat), BeliefSamples(seat.n_arms))
        self.group = seat.part.group if isinstance(seat.part, HopPart) else 1
        self.pilot = rule.pilot_size(seat.n_arms)
        self.draws = OwnDraws(seat)

    def worth(self, t: int) -> Sequence[Any]:
        beliefs: Beliefs = self.samples.beliefs
        counts = [n + out for n, out in zip(beliefs.n, self.samples.pending, strict=True)]
        if any(counts[arm] < self.pilot for arm in self.allowed):
            start = t - 1 + self.agent
            return [
                (1, -((arm - start) % self.n_arms)) if n < self.pilot else (0, -n)
                for arm, n in enumerate(counts)
            ]
        if any(beliefs.n[arm] < self.pilot for arm in self.allowed):  # rewards are still out
            return [-count for count in counts]
        arms = [arm for arm, n in enumerate(beliefs.n) if n >= self.pilot]
        self._update(beliefs, arms)
        level = math.log(1.0 + sum(counts[arm] for arm in arms))
        coin = self.draws.uniform(t, self.n_arms) * float(self.group)
        worth: list[Any] = [(0, -math.inf)] * self.n_arms
        for arm in arms:
            missing = beliefs.share[arm] * level - counts[arm]
            z = inverse_normal(self.draws.uniform(t, arm))
            drawn = beliefs.value[arm] + beliefs.spread[arm] * z
            worth[arm] = (1, missing) if coin < missing else (0, drawn)
        self.drawn = partial(self._chances, self.allowed, level, counts)
        return worth

    def _chances(self, arms: Sequence[int], level: float, counts: Sequence[float]) -> dict[int, float]:
        """Of every arm: by the coin of the share, else by the largest draw."""
        beliefs: Beliefs = self.samples.beliefs
        missing = [beliefs.share[arm] * level - counts[arm] for arm in range(self.n_arms)]
        scarce = ranked(missing, arms)[0]
        by_coin = min(1.0, max(0.0, missing[scarce] / self.group))
        return mixed(argmax_chances(beliefs.value, beliefs.spread, arms), scarce, by_coin)

    def _update(self, beliefs: Beliefs, arms: Sequence[int]) -> None:
        """Fit if one is due, and bring the values of these arms up to date; others take no part."""
        for arm in arms:
            if beliefs.now[rule.FITTED] and not beliefs.fitted_n[arm]:
                rule.join(beliefs, arm)
        part = beliefs
        if len(arms) < self.n_arms:
            part = Beliefs._make([*([field[arm] for arm in arms] for field in beliefs[:-1]), beliefs.now])
        if sum(part.n) >= part.now[rule.NEXT_FIT]:
            rule.fit(part)
        rule.update_values(part)
        if part is not beliefs:
            for field, values in zip(beliefs[:-1], part[:-1], strict=True):
                for arm, value in zip(arms, values, strict=True):
                    field[arm] = value


def recommended(*, symmetric: bool = False, proven: bool = False) -> Default | KMPUCB:
    """The policy to take, by what is known about the rewards.

    Parameters
    ----------
    symmetric : bool, default False
        Accepted and without effect: `rm.Default()` finds out by itself whether laws are skewed.
    proven : bool, default False
        Use the constant of a lemma; moment bounds are then required.

    Returns
    -------
    Default | KMPUCB
        `rm.Default()`; with `proven` a KMPUCB. The paper's settings are those of `rm.KMPUCB()`.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.recommended()
    Default(gamma='auto')

    References
    ----------
    docs/decisions/018-default.md.
    """
    truth("symmetric", symmetric)
    if truth("proven", proven):
        return KMPUCB(estimator=ClippedMean(), c="theory")
    return Default()
