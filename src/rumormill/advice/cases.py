"""The problems advice is given on: recorded rewards or known laws, with the moment bounds they suggest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rumormill.advice.tails import UNPROVEN_INDEX, Tail, estimate_tail, pooled_tail
from rumormill.advice.traces import Traces
from rumormill.arms import Bandit, Moments, Replay, RewardSource
from rumormill.errors import DataError, InputError
from rumormill.experiments.spec.building import build_bandit, build_law
from rumormill.experiments.spec.reading import points
from rumormill.experiments.spec.schema import Spec
from rumormill.seeds import Role, root_seed, stream_seed

# Not too near the infinite moment, as for laws; and no nearer to 1 than where any radius still shrinks.
SAFE_SHARE, LEAST_EPS = 0.85, 0.05
# What sample moments are multiplied by: a heavy tail hides some of its moment from every sample.
MARGIN_LIGHT, MARGIN_HEAVY = 1.25, 2.0
# Regret in replays of heavy tails is counted from medians of this many means (δ about 5 %).
TRUTH_GROUPS = 25


@dataclass(frozen=True)
class ArmTail:
    """What is known of one arm's tail: the exact index of a law, or an estimate from a column."""

    arm: str
    mean: float | None
    exact: float | None = None
    estimate: Tail | None = None

    def row(self) -> dict[str, Any]:
        tail = self.estimate
        if tail is None:
            words = "known from the law" + (": every moment is finite" if math.isinf(self.exact or 0) else "")
            return {"arm": self.arm, "mean": self.mean, "tail_index": self.exact, "tail": words}
        return {
            "arm": self.arm,
            "rows": tail.values,
            "mean": self.mean,
            "tail_index": tail.index,
            "low": tail.low,
            "high": tail.high,
            "outermost": tail.used,
            "tail": tail.words,
        }


@dataclass(frozen=True)
class Case:
    """A problem to give advice on: rewards for every trial, moment bounds, and why these."""

    name: str
    tails: tuple[ArmTail, ...]
    moments: Moments
    light: bool
    reasons: tuple[str, ...]
    source: Callable[[int, int, int], RewardSource]
    """The rewards of a trial, for so many agents and rounds."""


def case_of_traces(traces: Traces, seed: int = 0, name: str = "traces") -> Case:
    """Recorded rewards: every trial replays rows of its own resample of the file.

    Resampling twice, first the file and then its rows, lets the trials differ in the means too, as far as
    the file leaves them open.
    """
    values = traces.values
    if len(np.unique(values.mean(axis=0))) == 1:
        raise DataError("all columns have the same mean: no arm is better, so there is nothing to advise")
    root = root_seed(seed)
    tails = tuple(
        ArmTail(
            arm=column,
            mean=float(values[:, k].mean()),
            estimate=estimate_tail(values[:, k], np.random.default_rng(stream_seed(root, Role.BANDIT, k))),
        )
        for k, column in enumerate(traces.arms)
    )
    found = {tail.arm: tail.estimate for tail in tails if tail.estimate is not None}
    light = all(tail.verdict == "light" for tail in found.values())
    safe, whose = _safe_index(
        found, values, np.random.default_rng(stream_seed(root, Role.BANDIT, len(tails)))
    )
    eps = 1.0 if light else min(1.0, max(LEAST_EPS, SAFE_SHARE * (safe - 1)))
    margin = MARGIN_LIGHT if light else MARGIN_HEAVY
    centred = values - values.mean(axis=0)
    moments = Moments(
        eps=eps,
        u=margin * float((np.abs(values) ** (1 + eps)).mean(axis=0).max()),
        rho=margin * float((np.abs(centred) ** (1 + eps)).mean(axis=0).max()),
    )
    if light:
        order = "ε = 1: every tail is light, so variances are finite."
    elif eps == LEAST_EPS:
        order = (
            f"ε = {eps:g}, the least: the tail index of {whose} can be relied on to reach {safe:.3g} only, "
            "and without a mean there is nothing to learn; more rows would help most."
        )
    else:
        order = (
            f"ε = {eps:.3g} = {SAFE_SHARE:g} ({safe:.3g} − 1): the tail index of {whose} is at least that."
        )
    bounds = f"u = {moments.u:.4g}, ρ = {moments.rho:.4g}: {margin:g} times the largest sample moments."

    def replayed(trial: int, agents: int, horizon: int) -> Replay:
        rng = np.random.default_rng(stream_seed(root, trial, Role.BANDIT))
        rows = values[rng.integers(len(values), size=len(values))]
        table = rows[rng.integers(len(rows), size=(horizon, agents))]
        return Replay(table, means=rows.mean(axis=0) if light else _middle_means(rows))

    return Case(name, tails, moments, light, (order, bounds), replayed)


def _middle_means(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of means of every column: regret is counted from it where sample means are worth little."""
    size = len(rows) // TRUTH_GROUPS
    groups = rows[: TRUTH_GROUPS * size].reshape(TRUTH_GROUPS, size, -1)
    means: NDArray[np.float64] = np.median(groups.mean(axis=1), axis=0)
    return means


def _safe_index(
    found: dict[str, Tail], values: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, str]:
    """The index that no arm's tail is likely to be below, and whose it is.

    The lowest of several low ends is lower than it needs to be. Where all bands overlap, the arms may well
    share one index, and all rows together tell it better.
    """
    if max(tail.low for tail in found.values()) <= min(tail.high for tail in found.values()):
        pooled = pooled_tail(values, rng)
        return min(pooled.low, UNPROVEN_INDEX), "all arms together (their bands overlap)"
    heaviest = min(found, key=lambda column: found[column].safe_index)
    return found[heaviest].safe_index, f"{heaviest!r}, the heaviest arm,"


def case_of_spec(spec: Spec) -> Case:
    """The arms of an experiment: tails and moments are exact."""
    single = one_problem(spec)
    bandit = build_bandit(single, 0)
    eps = bandit.default_eps()
    uniform = single.arms.means == "uniform"
    # E|X + m|^p is convex in m: over means in [0, 1] it is largest at an end.
    worst = Bandit([build_law(single, 0.0), build_law(single, 1.0)]) if uniform else bandit
    moments = worst.moments(eps)
    tails = tuple(
        ArmTail(arm=f"arm {k}", mean=None if uniform else law.mean, exact=law.tail_index)
        for k, law in enumerate(bandit.arms)
    )
    index = bandit.tail_index
    why = "variances are finite" if index > 2 else f"moments are finite below order {index:g}"
    if single.arms.eps is not None:
        why = "given by the spec"
    means = " for any means in [0, 1]" if uniform else ""
    reasons = (
        f"ε = {eps:.3g}: {why}.",
        f"u = {moments.u:.4g}, ρ = {moments.rho:.4g}: exact{means}.",
    )
    return Case(
        single.name,
        tails,
        moments,
        index > 2,
        reasons,
        lambda trial, agents, horizon: build_bandit(single, trial),
    )


def one_problem(spec: Spec) -> Spec:
    """The spec at its only network and arms; refused where a sweep makes it several problems."""
    several = points(spec)
    first = several[0].spec
    if any((point.spec.network, point.spec.arms) != (first.network, first.arms) for point in several):
        raise InputError(
            f"{spec.name} sweeps {', '.join(spec.sweep)}: advice is for one network and one law, "
            "so give a spec without that sweep"
        )
    return msgspec.structs.replace(first, sweep={})
