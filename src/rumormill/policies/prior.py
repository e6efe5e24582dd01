"""Priors: what agents know of the arms before round 1, and how fresh samples replace it.

An arm's prior (m0, n0) counts as w = ⌊min(n0, cap)⌋ further samples of mean m0. It is dropped for good once
fresh samples contradict it, it takes away at most half of the confidence radius of the fresh samples, and an
arm without enough fresh samples is probed now and then. So a stale prior costs at most what a cold start with
half the radius costs, and a constant (docs/semantics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rumormill.errors import InputError
from rumormill.estimators import Radius
from rumormill.formulas import (
    needs_probe,
    pooled_index,
    prior_contradicted,
    prior_doubt,
    prior_floor,
    prior_mean,
    prior_reach,
)
from rumormill.validate import LARGEST_REWARD, NamedArguments, refused, whole

CAP = 30
PROBE = 100
Values = tuple[float, ...] | tuple[tuple[float, ...], ...]
Rows = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Prior(metaclass=NamedArguments):
    """What agents know of the arms before round 1: an estimate and a number of samples for every arm.

    Parameters
    ----------
    mean : sequence of K numbers, or one such sequence per agent
        The estimate of every arm, in the unit of the rewards.
    n : sequence of K numbers >= 0, or one such sequence per agent
        The number of samples behind it; below 1: nothing is known of the arm.
    spread : sequence of K numbers >= 0, or one such sequence per agent, optional
        Scale of one sample (a standard deviation, or a robust one), in the unit of the rewards. Required by
        estimators that bring their own index.
    cap : int, default 30
        The largest weight of a prior, in samples.
    probe : int, default 100
        An arm with too few fresh samples for an index of its own is pulled about once in so many samples.

    Examples
    --------
    >>> import rumormill as rm
    >>> prior = rm.Prior(mean=[0.0, 1.0], n=[200, 12])
    >>> prior.weights
    (30, 12)
    >>> seat = rm.Seat(agent=0, n_arms=2, prior=prior)
    >>> rm.RobustUCB(moments=rm.Moments(eps=1.0, u=2.0, rho=1.0)).agent(seat).choose(1)
    1

    References
    ----------
    docs/semantics.md: a prior. Cheung and Lyu (2024), "Leveraging (biased) information: multi-armed bandits
    with offline data": without a bound on its bias, no prior can always help.
    """

    mean: ArrayLike
    n: ArrayLike
    spread: ArrayLike | None = None
    cap: int = CAP
    probe: int = PROBE

    def __post_init__(self) -> None:
        whole("cap", self.cap)
        whole("probe", self.probe)
        mean = _values("mean", self.mean, -LARGEST_REWARD)
        for name in ("n", "spread"):
            if getattr(self, name) is None:
                continue
            given = _values(name, getattr(self, name), 0.0)
            if np.shape(given) != np.shape(mean):
                raise InputError(
                    f"prior: {name} has shape {np.shape(given)}, mean has {np.shape(mean)}: give them alike"
                )
            object.__setattr__(self, name, given)
        object.__setattr__(self, "mean", mean)

    @property
    def n_arms(self) -> int:
        """The number of arms it is about."""
        return int(np.shape(self.mean)[-1])

    @property
    def n_agents(self) -> int | None:
        """The number of agents it is about; None where all agents know the same."""
        return int(np.shape(self.mean)[0]) if np.ndim(self.mean) == 2 else None

    @property
    def weights(self) -> tuple[Any, ...]:
        """The weight of every arm, in samples: ⌊min(n, cap)⌋."""
        weights: Any = np.minimum(np.floor(np.asarray(self.n)), self.cap).astype(int).tolist()
        return tuple(map(tuple, weights)) if np.ndim(self.n) == 2 else tuple(weights)

    @property
    def complete(self) -> bool:
        """Whether every agent has a prior on every arm, so that none plays the initial rounds."""
        return bool(np.min(self.weights) >= 1)

    def of(self, agent: int) -> Prior:
        """The prior of one agent."""
        if self.n_agents is None:
            return self
        mean, n = np.asarray(self.mean)[agent], np.asarray(self.n)[agent]
        spread = None if self.spread is None else np.asarray(self.spread)[agent]
        return Prior(mean=mean, n=n, spread=spread, cap=self.cap, probe=self.probe)

    def require_fits(self, n_arms: int, n_agents: int | None) -> None:
        """Raise InputError unless it is about so many arms, and about so many agents or all alike."""
        if self.n_arms != n_arms:
            raise InputError(
                f"the prior is about {self.n_arms} arms, there are {n_arms}: give one value per arm"
            )
        if self.n_agents is not None and self.n_agents != n_agents:
            agents = "one agent" if n_agents is None else f"{n_agents} agents"
            raise InputError(
                f"the prior is about {self.n_agents} agents, here: {agents}: give one row per agent"
            )

    def plain(self) -> dict[str, Any]:
        """It as plain data: the keys and values of a spec or mesh file."""
        found = {"mean": self.mean, "n": self.n, "spread": self.spread}
        made = {name: np.asarray(values).tolist() for name, values in found.items() if values is not None}
        return {**made, "cap": self.cap, "probe": self.probe}


def _values(name: str, given: Any, least: float) -> Values:
    """A value per arm, or per agent and arm, as tuples."""
    try:
        made = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise refused(name, given, "one number per arm, or one such list per agent") from None
    if made.ndim not in (1, 2) or not made.size:
        raise refused(name, given, "one number per arm, or one such list per agent")
    if not (np.isfinite(made).all() and made.min() >= least and made.max() <= LARGEST_REWARD):
        low = "0" if least == 0.0 else f"{least:g}"
        raise refused(name, given, f"numbers from {low} to {LARGEST_REWARD:g}")
    values: Any = made.tolist()
    return tuple(map(tuple, values)) if made.ndim == 2 else tuple(values)


class PriorState:
    """The prior of one agent during a game: which arms still have one."""

    def __init__(self, prior: Prior) -> None:
        self._mean: Any = prior.mean
        self._spread: Any = prior.spread
        self._weights = [float(w) for w in prior.weights]
        """In samples; 0 where an arm has no prior, or it was dropped."""
        self._held: Rows = ()
        self._probe = prior.probe
        self.complete = prior.complete
        self.taken = 0
        """Fresh samples so far, own and received, of all arms."""

    def check(self, L: float, held: Rows, radius: Radius | None, own_index: Rows) -> None:
        """Before a decision: drop what the (mean, n) of the samples that the agent holds contradicts.

        `radius` is None where the estimator brings its own index, given in `own_index`.
        """
        self._held = held
        for arm, (mean, n) in enumerate(held):
            w = self._weights[arm]
            if not w or not n or not math.isfinite(mean):
                continue
            if radius is not None:
                doubt = prior_doubt(radius.zeta)
                fresh, before = doubt * radius.at(n, L), doubt * radius.at(w, L)
            else:
                fresh, before = own_index[arm][0] - mean, prior_reach(self._spread[arm], L, w)
            if prior_contradicted(mean, self._mean[arm], fresh, before):
                self._weights[arm] = 0.0

    def index(self, arm: int, mean: float, n: float, out: int, L: float, radius: Radius) -> float:
        """The index of n fresh samples, `out` pulls whose rewards are out, and the prior."""
        cold, w, before = radius.index(mean, n + out, L), self._weights[arm], self._mean[arm]
        if not w:
            return cold
        if n and math.isfinite(mean):
            together = radius.index(prior_mean(mean, n, before, w), n + w + out, L)
        else:
            together = radius.index(before, w + out, L)
        return self._limited(cold, together, mean, n + out)

    def own_index(self, arm: int, cold: float, n: float, out: int, L: float) -> float:
        """The same for an estimator that brings its own index, `cold`."""
        w = self._weights[arm]
        if not w:
            return cold
        mean, before, reach = self._held[arm][0], self._mean[arm], prior_reach(self._spread[arm], L, w)
        defined = math.isfinite(mean) and math.isfinite(cold)
        together = pooled_index(mean, cold, before, reach) if defined else before + reach
        return self._limited(cold, together, mean, n + out)

    def _limited(self, cold: float, together: float, mean: float, n: float) -> float:
        if cold == math.inf:
            return math.inf if needs_probe(n, self.taken, self._probe) else together
        return max(together, prior_floor(mean, cold)) if math.isfinite(mean) else cold

    def state(self) -> dict[str, Any]:
        """What happened to it so far, as plain data."""
        return {"weights": list(self._weights), "taken": self.taken, "mean": list(self._mean)}

    def restore(self, state: dict[str, Any] | None, counts: Sequence[float]) -> None:
        """Go on from what `state()` described, with so many samples of every arm.

        If that was another prior, or none, this one holds for the arms with fewer samples than its weight.
        """
        if state is None or list(state.get("mean", self._mean)) != list(self._mean):
            self._weights = [w if n < w else 0.0 for w, n in zip(self._weights, counts, strict=True)]
            self.taken = int(sum(counts))
        else:
            self._weights = [float(w) for w in state["weights"]]
            self.taken = int(state["taken"])
