"""Base classes of the robust policies: parameters, hop budget, initial rounds, which pulls are sent."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.estimators import Estimator, Radius, TrimmedMean
from rumormill.formulas import CONFIDENCES, Confidence
from rumormill.graphs import Neighbourhoods, Network
from rumormill.policies.base import Policy, Seat
from rumormill.policies.forgetting import Forget
from rumormill.policies.prior import Prior
from rumormill.validate import LARGEST_CONSTANT, between, is_whole, one_of, refused

Start = Literal["round-robin", "shared"]
STARTS = ("round-robin", "shared")


@dataclass(frozen=True)
class HopPart:
    """Hop budget and what an agent knows of the agents within reach."""

    gamma: int
    group: int = field(default=1, kw_only=True)
    """Number of agents within reach, itself included."""
    origins: dict[int, int] | None = field(default=None, kw_only=True)
    """The agents within reach, each with the number of agents within its own reach; None: not known."""
    keep: float = field(default=1.0, kw_only=True)
    """Fraction of the received samples that is used."""
    coins: int = field(default=0, kw_only=True, repr=False)
    """Key of the counter-based uniforms that select them."""
    draws: int | None = field(default=None, kw_only=True, repr=False)
    """Key of the agent's own counter-based draws, that of U(THOMPSON; agent) in the trial; None: seed 0."""
    delay: int | None = field(default=None, kw_only=True)
    """Largest delay of a message, in rounds; None: not known."""
    liars: int = field(default=0, kw_only=True)
    """Declared number of adversaries within reach."""


@dataclass(frozen=True, eq=False)
class HopPlan:
    """The hop budget on one network, and the neighbourhoods it gives."""

    gamma: int
    near: Neighbourhoods | None = field(default=None, kw_only=True)

    def known(self, agent: int) -> dict[str, Any]:
        """What every agent knows of the agents within reach."""
        if self.near is None:
            return {}
        sizes, (ids, _) = self.near.sizes, self.near.row(agent)
        origins = dict(zip(ids.tolist(), (sizes[ids] + 1).tolist(), strict=True))
        return {"group": len(origins) + 1, "origins": origins}

    def part(self, agent: int) -> HopPart:
        return HopPart(self.gamma, **self.known(agent))


@dataclass(frozen=True)
class StartAndQuiet:
    """How the first K rounds are played, and which pulls are not sent."""

    start: Start = "round-robin"
    quiet: float | None = None


PARAMETERS = "Parameters\n----------"
DESCRIBED = re.compile(r"^(\w+) : .*(?:\n .*)*", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class RobustPolicy(Policy):
    """Parameters of every policy with a robust mean.

    The radius is m^(1/p) (c L / n)^(eps/p); the same constant can be given as a plain factor `zeta`
    on it, c = zeta^(p/eps). `c="theory"` takes the constant of the estimator's concentration lemma.
    Neither given means zeta = 1. An estimator that brings its own index takes neither. Moments not given
    come from the seat; not every estimator needs them.

    They are described once, here: the docstring of a policy is given what it inherits.

    Parameters
    ----------
    estimator : Estimator, default TrimmedMean()
        Robust mean that the index is built on.
    c : float | "theory" | None, default None
        Constant of the radius: a number, or "theory" for that of the estimator's lemma.
    zeta : float | None, default None
        The same constant as a factor on the radius, c = zeta^(p/eps); 1 if neither c nor zeta is
        given.
    confidence : "paper" | "anytime", default "paper"
        Schedule L_t = ln(1/delta_t): 2 ln t ("paper"), or ln(M t³) ("anytime"), for which the union
        bound of the proofs holds.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.
    forget : Forget | "restart" | None, default None
        Which samples are forgotten, for rewards that change: {"window": W}, {"discount": phi} (both count
        the samples taken in), "restart" (on an alarm), or None.
    """

    takes_prior: ClassVar[bool] = True
    estimator: Estimator = field(default_factory=TrimmedMean)
    c: float | Literal["theory"] | None = None
    zeta: float | None = None
    confidence: Confidence = "paper"
    moments: Moments | None = None
    forget: Forget | Literal["restart"] | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__doc__:
            above, title, below = inspect.cleandoc(cls.__doc__).partition("\n\nExamples\n")
            above += "" if PARAMETERS in above else f"\n\n{PARAMETERS}"
            known = {*vars(cls), *(found[1] for found in DESCRIBED.finditer(above))}
            inherited = [e for base in cls.__bases__ for e in DESCRIBED.finditer(inspect.getdoc(base) or "")]
            above = "\n".join([above, *(found[0] for found in inherited if found[1] not in known)])
            cls.__doc__ = above + title + below

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise refused("estimator", self.estimator, "an estimator, for example rm.TrimmedMean()")
        one_of("confidence", self.confidence, CONFIDENCES)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")
        object.__setattr__(self, "forget", Forget.of(self.forget, self.estimator))
        if self.forget is not None and not self.takes_prior:
            raise refused("forget", self.forget, f"leave it out, {type(self).__name__} does not forget")
        if not self.estimator.brings_index:
            # A trial build finds every bad constant now, before any round is played.
            self.radius(self.moments or Moments(eps=0.5, u=1.0, rho=1.0))
        elif self.c is not None or self.zeta is not None:
            name, value = ("c", self.c) if self.zeta is None else ("zeta", self.zeta)
            brings = f"{type(self.estimator).__name__} brings its own index, with parameters of its own"
            raise refused(name, value, f"leave it out, {brings}")

    def require_prior(self, prior: Prior, n_arms: int, n_agents: int | None = None) -> None:
        super().require_prior(prior, n_arms, n_agents)
        if self.estimator.brings_index and prior.spread is None:
            raise InputError(
                f"the prior has no spread, and {type(self.estimator).__name__} brings its own index: "
                "give Prior(..., spread=[...])"
            )

    @property
    def needs_moments(self) -> bool:
        return self.estimator.needs_moments

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
        """How the first K rounds are played, and which pulls are not sent."""
        return StartAndQuiet()

    def plan(self, network: Network) -> HopPlan:
        return HopPlan(0)

    def plan_key(self) -> object:
        return (type(self), 0)


@dataclass(frozen=True, kw_only=True)
class FloodingPolicy(Policy):
    """A policy whose messages travel `gamma` hops; all agents begin round-robin and send every pull."""

    gamma: int | Literal["half-diameter"] = "half-diameter"
    """Hop budget of messages; "half-diameter" is ⌈diameter/2⌉."""

    def __post_init__(self) -> None:
        named = isinstance(self.gamma, str) and self.gamma == "half-diameter"
        if not (named or (is_whole(self.gamma) and int(self.gamma) >= 0)):
            raise refused("gamma", self.gamma, 'a whole number >= 0, or "half-diameter"')

    @property
    def start_and_quiet(self) -> StartAndQuiet:
        """How the first K rounds are played, and which pulls are not sent."""
        return StartAndQuiet()

    def plan(self, network: Network) -> HopPlan:
        gamma = network.resolve_gamma(self.gamma)
        return HopPlan(gamma, near=network.neighbourhoods(gamma))

    def plan_key(self) -> object:
        return (type(self), self.gamma)

    def hops(self, seat: Seat) -> int:
        """Hop budget of an agent: as planned, or as given where there is no plan."""
        if seat.part is None and is_whole(self.gamma):
            return int(self.gamma)
        return int(seat.require_part(HopPart).gamma)


@dataclass(frozen=True, kw_only=True)
class MessagePassingPolicy(FloodingPolicy, RobustPolicy):
    """A robust policy whose messages travel `gamma` hops.

    Parameters
    ----------
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.
    quiet : float | None, default None
        Send a pull only if it is not of the own best arm, or if that arm has at most `quiet` times
        the samples of another arm; 1/4 is a good choice, None sends every pull.
    start : "round-robin" | "shared", default "round-robin"
        In the first K rounds all agents pull arm t - 1 ("round-robin", the paper), or agents divide
        the arms and pull only those without a sample ("shared").
    """

    quiet: float | None = None
    start: Start = "round-robin"

    def __post_init__(self) -> None:
        RobustPolicy.__post_init__(self)
        FloodingPolicy.__post_init__(self)
        if self.quiet is not None:
            between("quiet", self.quiet, 0, LARGEST_CONSTANT)
        one_of("start", self.start, STARTS)

    @property
    def start_and_quiet(self) -> StartAndQuiet:
        return StartAndQuiet(self.start, self.quiet)
