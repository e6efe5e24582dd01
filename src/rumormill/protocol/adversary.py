"""The adversary: Byzantine agents that lie on purpose; and random corruption of messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace

from rumormill.arms import Arm, RewardSource
from rumormill.arms.base import sign_of
from rumormill.errors import InputError
from rumormill.protocol.message import Message
from rumormill.validate import NamedArguments, is_whole, one_of, probability, refused, reward, truth, whole

Attack = Literal["promote", "slander", "flood"]
ATTACKS = ("promote", "slander", "flood")
# What rows of a liar claim: these means, of so many samples.
CLAIMED_MEAN, CLAIMED_COUNT = 5.0, 1e9


@dataclass(frozen=True, kw_only=True)
class Corruption(metaclass=NamedArguments):
    """Rewards in messages are falsified at random: one of x + shift, scale x, or a draw from `law`.

    A draw from a law belongs to (origin, round): all receivers of a false value get the same one.

    Parameters
    ----------
    rate : float
        Probability that a message is falsified.
    shift : float | None, default None
        Added to the reward.
    scale : float | None, default None
        Factor on the reward.
    law : Arm | None, default None
        Law of the false reward.
    at : "origin" | "receiver", default "origin"
        "origin", iff U(CORRUPT; origin, round) < rate: all receivers get the same value, the origin
        knows the true one; "receiver", iff U(CORRUPT; receiver, origin, round) < rate: what is
        forwarded is the true value.
    rows : bool, default False
        Falsify the means in the rows of KMP in the same way.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Corruption(rate=0.1, shift=5.0).falsified(1.0, drawn=0.0)
    6.0

    References
    ----------
    docs/imperfect.md: the fault model and what it costs.
    """

    rate: float
    shift: float | None = None
    scale: float | None = None
    law: Arm | None = None
    at: Literal["origin", "receiver"] = "origin"
    rows: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", probability("rate", self.rate))
        ways = [name for name in ("shift", "scale", "law") if getattr(self, name) is not None]
        if len(ways) != 1:
            given = " and ".join(ways) or "none of them"
            raise InputError(f"Corruption: give one of shift, scale and law, not {given}")
        for name in ("shift", "scale"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, reward(name, getattr(self, name)))
        if self.law is not None and not isinstance(self.law, Arm):
            raise refused("law", self.law, "a reward law, for example rm.Gaussian()")
        one_of("at", self.at, ("origin", "receiver"))
        truth("rows", self.rows)

    def falsified(self, x: float, drawn: float) -> float:
        """The false value in place of x; `drawn` is used if there is a law."""
        if self.shift is not None:
            return x + self.shift
        return self.scale * x if self.scale is not None else drawn

    def corrupted(self, message: Message, drawn: float) -> Message:
        """The message with a false reward, and false rows if `rows`."""
        rows = message.rows
        if self.rows:
            rows = tuple(
                (mean if math.isinf(mean) else self.falsified(mean, drawn), count) for mean, count in rows
            )
        return replace(message, reward=self.falsified(message.reward, drawn), rows=rows)


@dataclass(frozen=True)
class FalseReport:
    """The message that an adversary sends every round."""

    arm: int
    reward: float
    means: tuple[float, ...]
    """By arm, what rows claim."""

    def message(self, agent: int, t: int, with_rows: bool) -> Message:
        rows = tuple((mean, CLAIMED_COUNT) for mean in self.means) if with_rows else ()
        return Message(agent, t, self.arm, self.reward, rows)


@dataclass(frozen=True, kw_only=True)
class Byzantine(metaclass=NamedArguments):
    """Adversaries: agents that never pull, forward messages honestly, and send false messages of their own.

    Parameters
    ----------
    agents : Sequence[int] | int, default ()
        Ids of the adversaries; a number n means the agents 0..n-1.
    attack : "promote" | "slander" | "flood", default "promote"
        Content of the false message of every round; rows, where the policy sends them, claim 10^9
        samples. "promote": the worst arm paid `size`; rows 5 for it, -5 for others. "slander": the
        best arm paid `size`; rows -5 for it, 5 for others. "flood": as promote.
    size : float | None, default None
        The false reward; by default 1 more than the best mean (promote), -5 (slander), 1000 (flood).

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Byzantine(agents=2, attack="flood").ids
    (0, 1)

    References
    ----------
    docs/imperfect.md: the fault model and what it costs.
    """

    agents: Sequence[int] | int = ()
    attack: Attack = "promote"
    size: float | None = None

    def __post_init__(self) -> None:
        given: Any = self.agents
        if is_whole(given):
            given = range(whole("agents", given, 0))
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise refused("agents", given, "a list of agents, or how many of them")
        ids = tuple(sorted({whole("an agent of byzantine", v, 0) for v in given}))
        object.__setattr__(self, "agents", ids)
        one_of("attack", self.attack, ATTACKS)
        if self.size is not None:
            object.__setattr__(self, "size", reward("size", self.size))

    @property
    def ids(self) -> tuple[int, ...]:
        """The adversaries, sorted."""
        assert isinstance(self.agents, tuple)
        return self.agents

    def lie(self, source: RewardSource) -> FalseReport:
        """The false message for these arms; rewards and means are those that agents maximise."""
        slander = self.attack == "slander"
        arm = int(np.argmin(source.gaps) if slander else np.argmax(source.gaps))
        best = sign_of(getattr(source, "objective", "maximise")) * source.best_mean
        usual = {"promote": best + 1.0, "slander": -5.0, "flood": 1000.0}[self.attack]
        said = -CLAIMED_MEAN if slander else CLAIMED_MEAN
        means = tuple(said if k == arm else -said for k in range(source.n_arms))
        return FalseReport(arm, usual if self.size is None else self.size, means)
