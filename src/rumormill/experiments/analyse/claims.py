"""The paper's claims, each tested on the trials of a run, with a number and a plain word.

A comparison "A beats B" looks at mean regret at the horizon: estimate = mean(A) / mean(B) - 1, resampled
over trials that both played on the same rewards. The interval is a bootstrap (BCa) one; the intervals of
one scope hold together with 95 % confidence (Bonferroni). A claim holds if its whole interval says so, does
not hold if its whole interval says the opposite, and is otherwise not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.bootstrap import Interval, bootstrap_interval, relative_difference
from rumormill.experiments.spec import schema

if TYPE_CHECKING:
    from rumormill.experiments.run.store import RunFolder

Word = Literal["holds", "does not hold", "not decided at this size"]
HOLDS: Word = "holds"
FAILS: Word = "does not hold"
OPEN: Word = "not decided at this size"

CONFIDENCE = 0.95
# A parameter "matters" if it changes regret by more than this share, and does not if it changes it by less.
MATTERS = 0.10
# Runs whose gains over lone agents the paper compares: larger on the first than on the second.
GAIN_PAIRS = (("fig1a", "fig1b"), ("fig1c", "fig1d"))

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """One claim, tested. estimate, low and high are relative: -0.4 is 40 % less. NaN: too few trials."""

    claim: str
    scope: str
    word: Word
    estimate: float
    low: float
    high: float
    trials: int
    detail: str


@dataclass(frozen=True)
class _Claim:
    """A claim before it is tested."""

    text: str
    groups: list[Array]
    statistic: Callable[[Sequence[Array]], Array]
    judge: Callable[[Interval], Word]
    detail: str


def verdicts(runs: RunFolder | Sequence[RunFolder]) -> list[Verdict]:
    """The claims that these runs can decide: of each run, and between runs where the paper compares two."""
    runs = list(runs) if isinstance(runs, Sequence) else [runs]
    done: list[Verdict] = []
    for run in runs:
        done += _test(_scope(run), _claims(run))
    by_name = {run.manifest["name"]: run for run in runs}
    for larger, smaller in GAIN_PAIRS:
        if larger in by_name and smaller in by_name:
            pair = by_name[larger], by_name[smaller]
            done += _test(f"{larger} and {smaller}", _gain_claims(*pair))
    return done


def _scope(run: RunFolder) -> str:
    return f"{run.manifest['name']} ({run.manifest['scale']})"


def _test(scope: str, claims: list[_Claim]) -> list[Verdict]:
    done = []
    for claim in claims:
        confidence = 1 - (1 - CONFIDENCE) / len(claims)
        found = bootstrap_interval(claim.groups, claim.statistic, confidence)
        word = claim.judge(found) if found.known else OPEN
        trials = min(len(group) for group in claim.groups)
        done.append(
            Verdict(claim.text, scope, word, found.estimate, found.low, found.high, trials, claim.detail)
        )
    return done


# --- judges ---------------------------------------------------------------------------------------------


def below_zero(found: Interval) -> Word:
    """For claims that something is smaller."""
    return HOLDS if found.high < 0 else FAILS if found.low > 0 else OPEN


def above_zero(found: Interval) -> Word:
    """For claims that something is larger."""
    return HOLDS if found.low > 0 else FAILS if found.high < 0 else OPEN


def matters(found: Interval) -> Word:
    """For claims that a parameter has an effect worth speaking of."""
    if found.low > MATTERS or found.high < -MATTERS:
        return HOLDS
    return FAILS if found.low > -MATTERS and found.high < MATTERS else OPEN


def hardly_matters(found: Interval) -> Word:
    """For claims that a parameter has no such effect."""
    opposite: dict[Word, Word] = {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}
    return opposite[matters(found)]


# --- claims ---------------------------------------------------------------------------------------------


def _claims(run: RunFolder) -> list[_Claim]:
    label = _labels(run)
    if run.axes == ["gamma"]:
        return _gamma_claims(run, label)
    if run.axes == ["alpha"]:
        return _alpha_claims(run, label)
    if run.axes:
        return []
    ours: list[str] = [kind for kind in ("kmp", "centralized", "decentralized") if kind in label]
    pairs: list[tuple[str, str, str]] = [
        (a, b, "beats") for b in ("consensus", "robust") if b in label for a in ours
    ]
    pairs += [(a, b, "does at least as well as") for a, b in pairwise(ours)]
    claims = []
    for a, b, word in pairs:
        data = _paired(run, [(label[a], {}), (label[b], {})])
        claims.append(
            _Claim(
                f"{label[a]} {word} {label[b]}",
                [data],
                relative_difference,
                below_zero,
                f"mean regret {_amounts(data)}; lower in {_share(data)} trials",
            )
        )
    return claims


def _gamma_claims(run: RunFolder, label: dict[str, str]) -> list[_Claim]:
    # Without any message (gamma = 0) all are alone: what matters is how far messages travel.
    swept = [point["gamma"] for point in run.manifest["points"]]
    values = sorted(gamma for gamma in swept if isinstance(gamma, int) and gamma > 0)
    if len(values) < 2:
        return []
    claims = []
    for kind in ("decentralized", "centralized", "kmp"):
        if kind not in label:
            continue
        data = _paired(run, [(label[kind], {"gamma": values[-1]}), (label[kind], {"gamma": values[0]})])
        effect = "hardly matters" if kind == "kmp" else "matters"
        claims.append(
            _Claim(
                f"γ {effect} for {label[kind]}",
                [data],
                relative_difference,
                hardly_matters if kind == "kmp" else matters,
                f"γ = {values[-1]} against γ = {values[0]}: mean regret {_amounts(data)}; "
                f"it matters if it changes regret by more than {MATTERS:.0%}",
            )
        )
    return claims


def _alpha_claims(run: RunFolder, label: dict[str, str]) -> list[_Claim]:
    values = sorted(p["alpha"] for p in run.manifest["points"])
    if "consensus" not in label or len(values) < 2:
        return []
    name = label["consensus"]
    data = _paired(run, [(name, {"alpha": values[0]}), (name, {"alpha": values[-1]})])
    steps = _paired(run, [(name, {"alpha": value}) for value in values]).mean(axis=0)
    worse = int((np.diff(steps) < 0).sum())
    return [
        _Claim(
            f"{name} gets worse as α goes to 1",
            [data],
            relative_difference,
            above_zero,
            f"α = {values[0]:g} against α = {values[-1]:g}: mean regret {_amounts(data)}; "
            f"the mean rises in {worse} of {len(values) - 1} steps towards 1",
        )
    ]


def _gain_claims(first: RunFolder, second: RunFolder) -> list[_Claim]:
    """The gain over lone agents, mean(Robust) / mean(policy), is larger in the first run."""
    label, other = _labels(first), _labels(second)
    claims = []
    for kind in ("kmp", "centralized", "decentralized"):
        if not {kind, "robust"} <= label.keys() & other.keys():
            continue
        here = _paired(first, [(label["robust"], {}), (label[kind], {})])
        there = _paired(second, [(other["robust"], {}), (other[kind], {})])
        paired = _same_chance(first, second) and len(here) == len(there)
        gains = [float(data[:, 0].mean() / data[:, 1].mean()) for data in (here, there)]
        claims.append(
            _Claim(
                f"the gain of {label[kind]} over {label['robust']} is larger in {first.manifest['name']} "
                f"than in {second.manifest['name']}",
                [np.column_stack([here, there])] if paired else [here, there],
                _ratio_of_gains,
                above_zero,
                f"gains {gains[0]:.1f}x and {gains[1]:.1f}x; trials {'paired' if paired else 'independent'}",
            )
        )
    return claims


def _ratio_of_gains(means: Sequence[Array]) -> Array:
    """(a / b) / (c / d) - 1 of the four columns a, b, c, d."""
    a, b, c, d = (means[i][..., j] for i in range(len(means)) for j in range(means[i].shape[-1]))
    return np.asarray((a / b) / (c / d) - 1)


# --- data -----------------------------------------------------------------------------------------------


def _labels(run: RunFolder) -> dict[str, str]:
    """The policy that stands for each type: the first of it (for Decentralized, with the clique filter)."""
    label: dict[str, str] = {}
    for policy in run.spec.policies:
        if isinstance(policy, schema.DecentralizedForm) and not policy.clique_filter:
            continue
        label.setdefault(str(policy.__struct_config__.tag), policy.label)
    return label


def _paired(run: RunFolder, columns: list[tuple[str, dict[str, Any]]]) -> Array:
    """Regret at the horizon, (trials, columns), over the trials that every column has."""
    import polars as pl

    frame = run.frame.filter(pl.col("t") == run.manifest["horizon"])
    found: list[dict[int, float]] = []
    for policy, point in columns:
        rows = frame.filter(pl.col("policy") == policy, *(pl.col(k) == v for k, v in point.items()))
        found.append(dict(rows.select("trial", "regret").iter_rows()))
    common = sorted(set.intersection(*(set(column) for column in found)))
    return np.array([[column[trial] for column in found] for trial in common]).reshape(len(common), -1)


def _same_chance(first: RunFolder, second: RunFolder) -> bool:
    """Whether trial i of both runs has the same bandit."""
    return bool(first.spec.seed == second.spec.seed and first.spec.arms == second.spec.arms)


def _amounts(data: Array) -> str:
    return " against ".join(f"{mean:,.0f}" for mean in data.mean(axis=0))


def _share(data: Array) -> str:
    return f"{int((data[:, 0] < data[:, 1]).sum())} of {len(data)}"
