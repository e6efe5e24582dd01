"""What the robust policies share: parameters, reach of messages, how agents begin and what they tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.estimators import Estimator, Radius, TrimmedMean
from rumormill.formulas import CONFIDENCES, Confidence
from rumormill.graphs import Neighbourhoods, Network
from rumormill.policies.base import Policy, Seat
from rumormill.validate import LARGEST_CONSTANT, between, is_whole, one_of, refused

Start = Literal["round-robin", "shared"]
STARTS = ("round-robin", "shared")


@dataclass(frozen=True)
class HopPart:
    """How many hops messages travel: all that some agents have to know of a plan."""

    gamma: int
    group: int = field(default=1, kw_only=True)
    """How many agents are within reach, oneself included."""
    origins: dict[int, int] | None = field(default=None, kw_only=True)
    """Who is within reach, and how many are within the reach of each, itself included; None: not known."""
    keep: float = field(default=1.0, kw_only=True)
    """The share of what is heard that is used."""
    coins: int = field(default=0, kw_only=True, repr=False)
    """The key of the agent's own keyed uniforms, which decide what that is."""
    delay: int | None = field(default=None, kw_only=True)
    """By how many rounds messages may be late; None where nobody knows."""
    liars: int = field(default=0, kw_only=True)
    """How many of those in reach may lie, as far as is known."""


@dataclass(frozen=True, eq=False)
class HopPlan:
    """The hop budget on one network, and how many agents it reaches."""

    gamma: int
    near: Neighbourhoods | None = field(default=None, kw_only=True)

    def known(self, agent: int) -> dict[str, Any]:
        """What an agent knows of those around it, whatever else the plan tells it."""
        if self.near is None:
            return {}
        sizes, (ids, _) = self.near.sizes, self.near.row(agent)
        origins = dict(zip(ids.tolist(), (sizes[ids] + 1).tolist(), strict=True))
        return {"group": len(origins) + 1, "origins": origins}

    def part(self, agent: int) -> HopPart:
        return HopPart(self.gamma, **self.known(agent))


@dataclass(frozen=True)
class StartAndQuiet:
    """How an agent begins, and how quiet it is."""

    start: Start = "round-robin"
    quiet: float | None = None


@dataclass(frozen=True, kw_only=True)
class RobustPolicy(Policy):
    """Parameters of every policy with a robust mean.

    The radius is m^(1/p) (c L / n)^(eps/p); the same constant can be given as a plain factor `zeta`
    on it, c = zeta^(p/eps). `c="theory"` takes the constant of the estimator's concentration lemma.
    Neither given means zeta = 1. An estimator that brings its own index takes neither. Moments not given
    come from the seat; not every estimator needs them.
    """

    estimator: Estimator = field(default_factory=TrimmedMean)
    """The robust mean that the index is built on."""
    c: float | Literal["theory"] | None = None
    """The constant of the radius: a number, or "theory" for that of the estimator's lemma."""
    zeta: float | None = None
    """The same constant as a plain factor on the radius, c = zeta^(p/eps); 1 if neither is given."""
    confidence: Confidence = "paper"
    """L_t: 2 ln t ("paper"), or ln(M t³) ("anytime"), for which the proofs' union bound holds."""
    moments: Moments | None = None
    """Bounds on the moments, where they are not those that the seat brings."""

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise refused("estimator", self.estimator, "an estimator, for example rm.TrimmedMean()")
        one_of("confidence", self.confidence, CONFIDENCES)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")
        if not self.estimator.brings_index:
            # A trial build finds every bad constant now, before any round is played.
            self.radius(self.moments or Moments(eps=0.5, u=1.0, rho=1.0))
        elif self.c is not None or self.zeta is not None:
            name, value = ("c", self.c) if self.zeta is None else ("zeta", self.zeta)
            brings = f"{type(self.estimator).__name__} brings its own index, with parameters of its own"
            raise refused(name, value, f"leave it out, {brings}")

    def radius(self, moments: Moments) -> Radius:
        """The confidence radius for arms with these moments; those given to the policy come first."""
        if self.estimator.brings_index:
            raise InputError(f"{type(self.estimator).__name__} brings its own index: there is no radius")
        zeta = 1.0 if self.c is None and self.zeta is None else self.zeta
        return Radius.build(self.estimator, self.moments or moments, c=self.c, zeta=zeta)

    def require_usable(self, moments: Moments) -> None:
        if not self.estimator.brings_index:
            self.radius(moments)

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        estimator = self.estimator
        found: dict[str, str | int | float] = {"mean": type(estimator).__name__, "schedule": self.confidence}
        if estimator.needs_moments:
            used = self.moments or moments
            found |= {"eps": used.eps, "u": used.u, "rho": used.rho}
        if estimator.brings_index:
            own = {name: getattr(estimator, name) for name in getattr(estimator, "__dataclass_fields__", ())}
            return found | {
                name: value for name, value in own.items() if isinstance(value, str | int | float)
            }
        radius = self.radius(moments)
        return found | ({"c": radius.constant} if radius.zeta is None else {"zeta": radius.zeta})

    @property
    def start_and_quiet(self) -> StartAndQuiet:
        """How its agents begin, and how quiet they are."""
        return StartAndQuiet()

    def plan(self, network: Network) -> HopPlan:
        return HopPlan(0)

    def plan_key(self) -> object:
        return (type(self), 0)


@dataclass(frozen=True, kw_only=True)
class MessagePassingPolicy(RobustPolicy):
    """A robust policy whose messages travel `gamma` hops.

    start: in the first K rounds everybody pulls arm t - 1 ("round-robin", the paper), or agents share the
    arms out and pull only those they have not heard of ("shared").

    quiet: tell only what can still matter, namely a pull that is not of the own favourite, or of one with
    at most `quiet` times the samples of another arm. 1/4 is a good choice, 0 tells no favourite at all, None
    tells everything.
    """

    gamma: int | Literal["half-diameter"] = "half-diameter"
    """How many hops messages travel; "half-diameter" is ⌈diameter/2⌉."""
    quiet: float | None = None
    """Tell only what can still matter; None tells everything."""
    start: Start = "round-robin"
    """How the first K rounds are played: "round-robin" or "shared"."""

    def __post_init__(self) -> None:
        super().__post_init__()
        named = isinstance(self.gamma, str) and self.gamma == "half-diameter"
        if not (named or (is_whole(self.gamma) and int(self.gamma) >= 0)):
            raise refused("gamma", self.gamma, 'a whole number >= 0, or "half-diameter"')
        if self.quiet is not None:
            between("quiet", self.quiet, 0, LARGEST_CONSTANT)
        one_of("start", self.start, STARTS)

    @property
    def start_and_quiet(self) -> StartAndQuiet:
        return StartAndQuiet(self.start, self.quiet)

    def plan(self, network: Network) -> HopPlan:
        gamma = network.resolve_gamma(self.gamma)
        return HopPlan(gamma, near=network.neighbourhoods(gamma))

    def plan_key(self) -> object:
        return (type(self), self.gamma)

    def hops(self, seat: Seat) -> int:
        """How far the agent's messages travel: as planned, or as given where nothing was planned."""
        if seat.part is None and is_whole(self.gamma):
            return int(self.gamma)
        return int(seat.require_part(HopPart).gamma)
