"""Failures: tries without an outcome, whose share differs between arms, and values cut off at a limit.

Means leave missing outcomes out, so an arm that times out in 30 % of its tries may look best. The shares are
compared with a chi-square test of independence of arm and outcome.

Reference: K. Pearson, "On the criterion that a given system of deviations ...", Philosophical Magazine 1900.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.reading.log import Log

Counts = NDArray[np.int64]

LEVEL = 0.001
# Shares that differ by less than this change no mean by much.
LEAST_DIFFERENCE = 0.01
# The largest cost is a limit if at least so many values, and this share of all, are exactly it, and five
# times as many as are the next one.
LEAST_CAPPED, LEAST_CAPPED_SHARE, TIMES_NEXT = 10, 0.005, 5


@dataclass(frozen=True)
class Failures:
    """Missing and cut-off outcomes of every arm."""

    missing: Counts
    """(agents, arms)."""
    tries: Counts
    """(agents, arms), with and without an outcome."""
    p_value: float
    cost: float | None
    """The value that a missing outcome counts as; None: left out."""
    limit: float | None
    """The value at which costs are cut off; None: they are not."""
    at_limit: Counts
    """By arm."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of an arm's tries that has no outcome."""
        return np.asarray(self.missing.sum(axis=0) / np.maximum(self.tries.sum(axis=0), 1))

    @property
    def limit_shares(self) -> NDArray[np.float64]:
        """The share of an arm's values that is the limit."""
        return np.asarray(self.at_limit / np.maximum((self.tries - self.missing).sum(axis=0), 1))

    @property
    def differ(self) -> bool:
        """Whether some arms fail more often than others."""
        return self.p_value <= LEVEL and float(np.ptp(self.shares)) >= LEAST_DIFFERENCE

    def hides_order(self, best: int) -> bool:
        """Whether another arm than the one that looks best may be best."""
        left_out = self.differ and self.cost is None and self.shares[best] > self.shares.min()
        cut_off = self.limit is not None and self.limit_shares[best] > self.limit_shares.min()
        return bool(left_out or cut_off)

    def as_dict(self, arms: tuple[str, ...], agents: tuple[str, ...] | None) -> dict[str, Any]:
        """Plain values for JSON."""
        each = self.missing / np.maximum(self.tries, 1)
        names = agents or ("?",)
        return {
            "differ": self.differ,
            "p_value": self.p_value,
            "cost": self.cost,
            "limit": self.limit,
            "arms": [
                {
                    "arm": arm,
                    "missing": int(self.missing[:, k].sum()),
                    "share": float(self.shares[k]),
                    "at_limit": int(self.at_limit[k]),
                    "worst_agent": names[int(each[:, k].argmax())],
                    "worst_share": float(each[:, k].max()),
                }
                for k, arm in enumerate(arms)
            ],
        }


def check_failures(log: Log) -> Failures:
    """Count missing outcomes and values at a limit."""
    missing = np.zeros((log.n_agents, log.n_arms), np.int64) if log.missing is None else log.missing
    tries = log.counts() + (missing if log.failure_cost is None else 0)
    limit = _limit(log)
    hit = log.value == (np.nan if limit is None else limit)
    at_limit = np.bincount(log.arm[hit], minlength=log.n_arms)
    return Failures(missing, tries, _p_value(missing.sum(0), tries.sum(0)), log.failure_cost, limit, at_limit)


def _p_value(missing: Counts, tries: Counts) -> float:
    """Of the chi-square test that all arms fail equally often."""
    from scipy.special import chdtrc

    some = tries > 0
    share = float(missing.sum()) / max(float(tries.sum()), 1.0)
    if share in (0.0, 1.0):
        return 1.0
    distance = (missing - share * tries)[some] ** 2 / (tries[some] * share * (1 - share))
    return float(chdtrc(max(int(some.sum()) - 1, 1), float(distance.sum())))


def _limit(log: Log) -> float | None:
    """The largest cost, if it is a limit; of rewards, none. What failures count as is no limit."""
    values = log.value if log.failure_cost is None else log.value[log.value != log.failure_cost]
    if log.objective != "minimise" or not len(values):
        return None
    found, counts = np.unique(values, return_counts=True)
    least = max(LEAST_CAPPED, LEAST_CAPPED_SHARE * len(values))
    if len(found) < LEAST_CAPPED or counts[-1] < max(least, TIMES_NEXT * counts[-2]):
        return None
    return float(found[-1])
