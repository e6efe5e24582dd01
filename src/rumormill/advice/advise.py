"""What to choose on an own network with own rewards: quick simulations, a choice, and its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rumormill import catalogue
from rumormill.advice.problem import Case
from rumormill.advice.search import (
    WORSE_ALLOWED,
    Arena,
    Candidate,
    CandidateOutcome,
    Choice,
    choose,
    explore,
)
from rumormill.advice.settings import QUICK_ESTIMATORS, has_lemma, require_radius
from rumormill.advice.settings import code_of as setting_code
from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.stats.bootstrap import LEAST_TRIALS, bootstrap_band
from rumormill.text import nearest

HORIZON, TRIALS = 1_000, 16


@dataclass(frozen=True)
class Advice:
    """The recommendation with everything it rests on."""

    case: Case
    network: Network
    outcomes: tuple[CandidateOutcome, ...]
    choice: Choice
    reasons: tuple[str, ...]
    horizon: int
    trials: int
    seed: int

    @property
    def chosen(self) -> Candidate:
        return self.choice.chosen.candidate

    @property
    def code(self) -> str:
        """The recommended policy, to be copied into a program."""
        return code_of(self.chosen, self.case.moments)

    def rows(self) -> list[dict[str, Any]]:
        """Every setting that was played, least regret first."""
        return sorted((self._row(outcome) for outcome in self.outcomes), key=lambda row: row["regret"])

    def short_rows(self) -> list[dict[str, Any]]:
        """The trade-off: the best, the recommended, the front, and every policy at its best."""
        shown, seen = [], set()
        for row, outcome in sorted(
            ((self._row(outcome), outcome) for outcome in self.outcomes), key=lambda pair: pair[0]["regret"]
        ):
            wanted = {self.choice.best.candidate, self.chosen, *self.choice.front}
            if outcome.candidate in wanted or row["policy"] not in seen:
                shown.append(row)
            seen.add(row["policy"])
        return shown

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        made, moments = self.network, self.case.moments
        return {
            "source": self.case.name,
            "network": {"agents": made.n_agents, "links": made.n_edges, "diameter": made.diameter},
            "simulated": {"horizon": self.horizon, "trials": self.trials, "seed": self.seed},
            "tails": [tail.row() for tail in self.case.tails],
            "moments": {"eps": moments.eps, "u": moments.u, "rho": moments.rho},
            "recommendation": {**self._row(self.choice.chosen), "code": self.code},
            "reasons": list(self.reasons),
            "settings": self.rows(),
        }

    def _row(self, outcome: CandidateOutcome) -> dict[str, Any]:
        candidate, worse = outcome.candidate, self.choice.worse[outcome.candidate]
        comparable = outcome.regret * self.choice.scale(outcome)
        low, high = (float(end[0]) for end in bootstrap_band(comparable[:, None]))
        return {
            "policy": candidate.policy,
            "gamma": candidate.gamma,
            "estimator": candidate.estimator,
            "zeta": candidate.zeta,
            "trials": len(outcome.regret),
            "regret": float(comparable.mean()),
            "low": low,
            "high": high,
            "worse": worse.estimate,
            "worse_low": worse.low,
            "worse_high": worse.high,
            "messages_per_round": outcome.messages,
            "bytes_per_round": outcome.wire_bytes,
            "on_front": candidate in self.choice.front,
            "allowed": self.case.light or candidate.robust,
            "recommended": candidate == self.chosen,
        }


def advise(
    case: Case,
    network: Network,
    *,
    horizon: int = HORIZON,
    trials: int = TRIALS,
    seed: int = 0,
    estimators: Sequence[str] = QUICK_ESTIMATORS,
    jobs: int | None = None,
) -> Advice:
    """Play a small grid of settings on the case and recommend one; the same seed gives the same advice."""
    for name in estimators:
        if name not in catalogue.ESTIMATORS and not catalogue.is_own(name):
            raise InputError(f"estimator {name!r} is unknown{nearest(name, catalogue.ESTIMATORS)}")
    require_radius(estimators)
    if not case.light and not any(has_lemma(name) for name in estimators):
        raise InputError(
            "the empirical mean alone cannot be recommended where variances may be infinite: "
            "give another estimator too"
        )
    if trials < LEAST_TRIALS:
        raise InputError(f"trials = {trials} is not allowed: comparisons need at least {LEAST_TRIALS}")
    if horizon <= len(case.tails):
        raise InputError(
            f"horizon = {horizon} is not allowed: the first {len(case.tails)} rounds only try every arm once"
        )
    arena = Arena(network, case.source, case.moments, horizon=horizon, trials=trials, seed=seed, jobs=jobs)
    outcomes = explore(arena, list(dict.fromkeys(estimators)), case.light)
    choice = choose(outcomes, case.light)
    reasons = (*case.reasons, *_why(choice, outcomes, case.light))
    return Advice(case, network, tuple(outcomes), choice, reasons, horizon, trials, seed)


# --- words ----------------------------------------------------------------------------------------------


def _why(choice: Choice, outcomes: Sequence[CandidateOutcome], light: bool) -> list[str]:
    best, chosen = choice.best, choice.chosen
    words = []
    if chosen is best:
        words.append(f"{chosen.candidate} has the lowest regret in the final, {chosen.mean:,.0f}.")
        if chosen.messages:
            words.append("No setting with fewer messages or bytes comes near it.")
    else:
        worse = choice.worse[chosen.candidate]
        saved = "no messages at all" if not chosen.messages else _saving(chosen, best)
        words.append(
            f"{best.candidate} has the lowest regret in the final, {best.mean:,.0f}; {chosen.candidate} is "
            f"worse by {worse.high:.1%} at most ({worse.estimate:+.1%}, 95 % interval {worse.low:+.1%} to "
            f"{worse.high:+.1%}, {WORSE_ALLOWED:.0%} are allowed) and needs {saved}."
        )
    alone = min((o for o in outcomes if o.candidate.policy == "robust"), key=lambda o: o.mean)
    if alone.candidate != chosen.candidate and chosen.mean:
        times = alone.mean * choice.scale(alone) / chosen.mean
        words.append(f"Without messages ({alone.candidate}) regret is {times:.3g} times as large.")
    if not light:
        words.append(
            "The empirical mean and Consensus are shown for comparison only: no lemma stands behind them "
            "where variances may be infinite."
        )
    return words


def _saving(chosen: CandidateOutcome, best: CandidateOutcome) -> str:
    if chosen.messages < best.messages:
        return f"{best.messages / chosen.messages:.3g} times fewer messages"
    if chosen.wire_bytes < best.wire_bytes:
        return f"{best.wire_bytes / chosen.wire_bytes:.3g} times fewer bytes in as many messages"
    return "as many messages"


def code_of(candidate: Candidate, moments: Moments) -> str:
    """A candidate as a line of Python."""
    given = [f"{name}={setting_code(value)}" for name, value in candidate.settings(moments).items()]
    return f"rm.{catalogue.find('policy', candidate.policy).__name__}({', '.join(given)})"
