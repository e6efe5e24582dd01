"""The theory's bounds for a run: one game of every sweep point, held against what was measured in it.

Bounds are about one bandit on one network, and most runs draw both anew in every trial. So the game is that
of trial 0, and what is measured is its regret in that trial; where all trials play the same game, it is the
mean over all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analyse.measured import Measurements, Row, Series, Values
from rumormill.experiments.plan import SweepPoint, plan_of
from rumormill.experiments.run.cache import NetworkCache
from rumormill.experiments.spec.building import is_fresh
from rumormill.theory import Assumption, Bound, LowerBound, lower_bound, regret_bound

if TYPE_CHECKING:
    from rumormill.arms import RewardSource

# A bound is smooth: so many rounds draw it as well as all.
ROUNDS_DRAWN = 32
PERFECT = "perfect"


@dataclass(frozen=True)
class PolicyBounds:
    """What theory says about one policy in one game, and its regret there."""

    policy: str
    rounds: NDArray[np.int64]
    regret: NDArray[np.float64]
    """Measured, at `rounds`."""
    corrected: tuple[Bound, ...]
    """At some of the rounds, the last of all among them."""
    printed: Bound
    """At the last round."""

    @property
    def measured(self) -> float:
        return float(self.regret[-1])

    @property
    def at_end(self) -> Bound:
        """The corrected bound at the last round."""
        return self.corrected[-1]

    def drawn(self) -> tuple[list[int], list[float]]:
        """Rounds and values to draw: nothing where the bound exceeds what regret can be."""
        if self.at_end.vacuous:
            return [], []
        kept = [bound for bound in self.corrected if not bound.vacuous]
        return [bound.horizon for bound in kept], [bound.value for bound in kept]


@dataclass(frozen=True)
class Unbounded:
    """A policy that theory says nothing about, and why."""

    policy: str
    rounds: NDArray[np.int64]
    regret: NDArray[np.float64]
    reason: str


@dataclass(frozen=True)
class GameBounds:
    """One sweep point: its game, the lower bound, and the bounds of all policies that have one."""

    values: Values
    first_round: int
    """The first round after every arm was tried once: before, nothing is learned."""
    worst_per_round: float
    """The regret of a round in which all agents pull the worst arm: M times the largest gap."""
    lower: LowerBound | None
    reason: str
    """Why there is no lower bound."""
    policies: tuple[PolicyBounds, ...]
    others: tuple[Unbounded, ...]


@dataclass(frozen=True)
class RunBounds:
    """The bounds of a run. `one_game`: all trials of a sweep point share bandit and network."""

    games: tuple[GameBounds, ...]
    labels: tuple[str, ...]
    """All policies of the run, in the order of the spec."""
    horizon: int
    one_game: bool
    channel: str
    """Bounds count on messages that arrive in time, as over a perfect channel."""


def run_bounds(summary: Measurements) -> RunBounds:
    """Work out the bounds of every sweep point that has its first trial done."""
    spec = summary.spec
    one_game = spec.arms.means != "uniform" and not is_fresh(spec)
    networks = NetworkCache()  # most sweep points share their network and plans
    games = []
    for point in plan_of(spec).points:
        values = _stored(summary, point)
        if values is not None and (one_game or 0 in summary.at(values)[0].trials):
            games.append(_game(point, values, summary.at(values), networks, one_game))
    if not games:
        raise InputError(
            f"{summary.path} has no first trial finished, and bounds are about its game: "
            "run it again to go on"
        )
    return RunBounds(tuple(games), tuple(summary.policies), summary.horizon, one_game, spec.channel.type)


def _stored(summary: Measurements, point: SweepPoint) -> Values | None:
    """The sweep point as the table has it (a mixture of words and numbers is kept as words)."""
    for values in summary.points:
        if all(
            (str(point.values[axis]) if isinstance(value, str) else point.values[axis]) == value
            for axis, value in values.items()
        ):
            return values
    return None


def _game(
    point: SweepPoint, values: Values, measured: list[Series], networks: NetworkCache, one_game: bool
) -> GameBounds:
    """The bounds of all policies in the first trial of a point."""
    bandit, prepared = point.bandit(0), networks.at(point, 0)
    lower, reason = _lower(bandit)
    some = _some(measured[0].rounds, bandit.n_arms)
    policies: list[PolicyBounds] = []
    others: list[Unbounded] = []
    for part, series in zip(point.spec.policies, measured, strict=True):
        regret = series.mean if one_game else series.regret[series.trials.index(0)]
        ready = prepared.contender(point, part)
        game = (bandit, prepared.network, ready.policy)
        given: dict[str, Any] = {"plan": ready.plan, "world": ready.world}
        try:
            printed = regret_bound(*game, int(series.rounds[-1]), "printed", **given)
            corrected = tuple(regret_bound(*game, int(t), **given) for t in some)
        except InputError as error:
            others.append(Unbounded(part.label, series.rounds, regret, str(error)))
        else:
            policies.append(PolicyBounds(part.label, series.rounds, regret, corrected, printed))
    worst = prepared.network.n_agents * float(bandit.gaps.max())
    return GameBounds(values, int(some[0]), worst, lower, reason, tuple(policies), tuple(others))


def _some(rounds: NDArray[np.int64], n_arms: int) -> NDArray[np.int64]:
    """A few of the rounds, even on a logarithmic axis, without the first K: there the arms are fixed."""
    later = rounds[rounds > n_arms]
    if not len(later):
        return rounds[-1:]
    wanted = np.geomspace(later[0], later[-1], ROUNDS_DRAWN)
    return np.unique(np.append(later[np.searchsorted(later, wanted).clip(max=len(later) - 1)], later[-1]))


def _lower(bandit: RewardSource) -> tuple[LowerBound | None, str]:
    try:
        found = lower_bound(bandit)
    except InputError as error:
        return None, str(error)
    if found.coefficient == 0:
        return None, "no arm's law can have so large a mean as the best one's, within its family"
    return found, ""


# --- rows -----------------------------------------------------------------------------------------------


def in_sentence(assumption: Assumption) -> str:
    """An assumption as it is read: one that does not hold says so."""
    return assumption.text if assumption.holds else f"NOT COVERED. {assumption.text}"


def bound_rows(found: RunBounds) -> list[Row]:
    """One row per sweep point and policy: the bounds at the last round beside the measurement."""
    return [
        {
            **game.values,
            "policy": each.policy,
            "measured": each.measured,
            "corrected": each.at_end.value,
            "ratio": each.at_end.value / each.measured if each.measured > 0 else math.inf,
            "printed": each.printed.value,
            "dominant": each.at_end.dominant,
            "vacuous": each.at_end.vacuous,
            "covered": each.at_end.covered,
            "assumptions": " ".join(in_sentence(assumption) for assumption in each.at_end.assumptions),
        }
        for game in found.games
        for each in game.policies
    ]


def lower_rows(found: RunBounds) -> list[Row]:
    """One row per sweep point: the coefficient of ln t, its value at the last round, the most possible."""
    rows = []
    for game in found.games:
        row: Row = {**game.values, "coefficient": None, "at_end": None}
        row |= {"most_possible": game.worst_per_round * found.horizon, "family": game.reason}
        if game.lower is not None:
            families = dict.fromkeys(term.family for term in game.lower.arms)
            row |= {
                "coefficient": game.lower.coefficient,
                "at_end": game.lower.at(found.horizon),
                "family": ", ".join(families),
            }
        rows.append(row)
    return rows
