"""Off-policy questions: what a log with propensities says another fixed policy would have paid.

Row i: arm a_i, taken with probability p_i, paid x_i. For a policy that takes arm a with probability π(a),
with w_i = min(π(a_i)/p_i, 100),

    clipped IPS       mean of w_i x_i
    doubly robust     Σ π(a) m_a + mean of w_i (x_i - m_(a_i)),   m_a a winsorised mean of the other blocks

over the rows with p_i < 1: whether a choice is drawn is known beforehand, so leaving out the rest is no bias.
Row i belongs to block i mod 24; an estimate is the mean of the block estimates, its interval reaches from the
4th smallest to the 4th largest of them. If block estimates are independent and fall below the value with a
probability between 1/3 and 2/3, it holds with 98 % at least. By Zolotarev's formula that is so, in large
blocks, for every law with a tail index of 1.5 or more, however skewed; no moments are needed. Arms must not
change, and propensities must be right: weights whose own interval excludes 1 are refused. docs/advice.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import DataError, InputError
from rumormill.stats import Interval, winsorised_mean
from rumormill.text import nearest, shown

Floats = NDArray[np.float64]

BLOCKS, RANK = 24, 4
# Rows of the arms in question below which nothing is said, and the largest weight of a row.
LEAST_ROWS, MOST_WEIGHT = 10 * BLOCKS, 100.0
# Share of the weight that clipping may take away.
MOST_CLIPPED = 0.05


@dataclass(frozen=True)
class OffPolicy:
    """What a policy would have paid per decision, in the unit of the log; `logged` is what was paid."""

    policy: str
    ips: Interval
    doubly_robust: Interval
    logged: Interval
    rows: int
    """Rows of the arms that the policy takes, among those whose choice was drawn."""
    clipped: float
    """Share of these rows whose weight was clipped."""
    fixed: int = 0
    """Rows with propensity 1, which were left out: no other arm had a chance."""
    without: int = 0
    """Rows of the log without a propensity, which were left out."""

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        names = ("ips", "doubly_robust", "logged")
        found = {name: getattr(self, name) for name in names}
        ends = {
            name: {"estimate": each.estimate, "low": each.low, "high": each.high}
            for name, each in found.items()
        }
        numbers = {name: getattr(self, name) for name in ("rows", "clipped", "fixed", "without")}
        return {"policy": self.policy, **ends, **numbers}


def chances(policy: str, arms: Sequence[str]) -> dict[str, float]:
    """π by arm: "always=A", "uniform" or "A=0.7,B=0.3"."""
    kind, _, rest = policy.partition("=")
    if policy == "uniform":
        return dict.fromkeys(arms, 1.0 / len(arms))
    pairs = [(rest, "1")] if kind == "always" else [part.partition("=")[::2] for part in policy.split(",")]
    try:
        found = {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        found = {}
    if not found or abs(sum(found.values()) - 1.0) > 1e-9 or min(found.values()) < 0.0:
        raise InputError(
            f'policy = {shown(policy)} is not allowed: "always=ARM", "uniform", or shares that add up to 1, '
            '"A=0.7,B=0.3"'
        )
    for name in found:
        if name not in arms:
            raise InputError(f"the log has no choice of {name!r}: it cannot tell{nearest(name, arms)}")
    return found


def evaluate(arm: Sequence[Any], value: Any, propensity: Any, policy: str) -> OffPolicy:
    """What the policy would have paid; refused in words where the log cannot tell."""
    names, code = np.unique(np.asarray(arm).astype(str), return_inverse=True)
    x, p = np.asarray(value, float), np.asarray(propensity, float)
    if not (len(code) == len(x) == len(p)) or not len(x):
        raise InputError(
            f"{len(code)} arms, {len(x)} values, {len(p)} propensities: give one of each per row"
        )
    if not np.isfinite(x).all() or not ((p > 0.0) & (p <= 1.0)).all():
        raise DataError("values must be finite, propensities above 0 and at most 1: the log has others")
    shares = chances(policy, names.tolist())
    share = np.array([shares.get(name, 0.0) for name in names])
    asked, drawn, logged = share[code] > 0.0, p < 1.0, blocks(x)
    if asked.any() and drawn[asked].mean() < 0.5:
        raise InputError(
            f"{policy}: most of these choices were deterministic (propensity 1), so the log cannot tell "
            "what others would have paid: log a policy that draws (default, thompson-kmp, epsilon-greedy)"
        )
    # Where the choice was fixed beforehand another policy's arm had no chance: those rows cannot tell.
    code, x, p, asked = code[drawn], x[drawn], p[drawn], asked[drawn]
    if asked.sum() < LEAST_ROWS:
        raise InputError(
            f"{policy}: the log has {asked.sum()} such choices that were drawn, {LEAST_ROWS} are needed"
        )
    raw = share[code] / p
    w = np.minimum(raw, MOST_WEIGHT)
    lost = 1.0 - w.sum() / raw.sum()
    if lost > MOST_CLIPPED:
        raise InputError(
            f"{policy}: {100 * lost:.0f} % of the weight lies on choices taken with less than 1 %"
        )
    weights = blocks(w)
    if not weights.low <= 1.0 <= weights.high:
        raise InputError(
            f"{policy}: weights average {weights.estimate:.3g}, not 1: propensities do not fit the choices"
        )
    block = np.arange(len(x)) % BLOCKS
    robust = np.empty(len(x))
    for b in range(BLOCKS):
        inside, other = block == b, block != b
        means = np.array(
            [winsorised_mean(x[other & (code == k)])[0] if share[k] else 0.0 for k in range(len(names))]
        )
        robust[inside] = share @ means + w[inside] * (x[inside] - means[code[inside]])
    clipped = float((raw[asked] > MOST_WEIGHT).mean())
    fixed = int((~drawn).sum())
    return OffPolicy(policy, blocks(w * x), blocks(robust), logged, int(asked.sum()), clipped, fixed)


def blocks(y: Floats) -> Interval:
    """The mean of the block means, and their interval."""
    means = np.sort([float(y[b::BLOCKS].mean()) for b in range(BLOCKS)])
    return Interval(float(means.mean()), float(means[RANK - 1]), float(means[-RANK]))


def evaluate_file(
    path: Path, policy: str, *, arm: str = "arm", reward: str | None = None, propensity: str = "propensity"
) -> OffPolicy:
    """As `evaluate`, from the columns of a log; the value is that of `reward`, or of reward or cost.

    Rows without a propensity are left out and counted: a node's log has some.
    """
    from rumormill.advice.reading.formats import scanned

    with scanned(path) as table:
        names = table.collect_schema().names()
        value = reward or next((name for name in ("reward", "cost") if name in names), "reward")
        for name in (arm, value, propensity):
            if name not in names:
                why = ": without propensities a log cannot tell" if name == propensity else ""
                raise InputError(f"{path} has no column {name!r}{why}{nearest(name, names)}")
        frame = table.select(arm, value, propensity).collect()
    given = frame.drop_nulls(propensity)
    if not len(given):
        raise InputError(f"{path}: {propensity!r} is empty: without propensities a log cannot tell")
    try:
        x, p = (np.array(given[name].to_list(), float) for name in (value, propensity))
    except (TypeError, ValueError):
        raise DataError(f"{path}: {value} and {propensity} must be numbers in every row") from None
    return replace(evaluate(given[arm].to_list(), x, p, policy), without=len(frame) - len(given))
