"""Runs in numbers: the table of one, and two side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analyse.bootstrap import bootstrap_band, bootstrap_interval, relative_difference
from rumormill.experiments.analyse.views import Point, at_end, horizon, part, points

if TYPE_CHECKING:
    from rumormill.experiments.analyse.claims import Verdict
    from rumormill.experiments.run.store import RunFolder

Row = dict[str, Any]


def summary(run: RunFolder) -> list[Row]:
    """One row per sweep point and policy: what it came to at the horizon, with a 95 % band of the mean."""
    rounds = horizon(run)
    rows = []
    for point in points(run):
        for policy in run.policies:
            frame = part(run, policy, point)
            regret = at_end(frame)
            low, high = bootstrap_band(regret[:, None])
            rows.append(
                {
                    **point,
                    "policy": policy,
                    "trials": len(regret),
                    "regret": float(regret.mean()),
                    "low": float(low[0]),
                    "high": float(high[0]),
                    "median_agent": float(at_end(frame, "agent_q50").mean()),
                    "worst_agent": float(at_end(frame, "agent_max").mean()),
                    "messages_per_round": float(at_end(frame, "messages").mean()) / rounds,
                    "bytes_per_round": float(at_end(frame, "wire_bytes").mean()) / rounds,
                }
            )
    return rows


def compare(first: RunFolder, second: RunFolder) -> list[Row]:
    """Regret at the horizon where both runs have the same policy and sweep point.

    `change` is how much larger the second is, as a share of the first. Trials are paired where both runs
    drew the same bandits from the same seed, else taken as independent.
    """
    paired = first.spec.seed == second.spec.seed and first.spec.arms == second.spec.arms
    rows = []
    for point in points(first):
        for policy in first.policies:
            if policy not in second.policies or point not in points(second):
                continue
            one, other = _ends(first, policy, point), _ends(second, policy, point)
            rows.append({**point, "policy": policy, **_change(one, other, paired)})
    if not rows:
        raise InputError(
            f"{first.path} and {second.path} have no policy at the same sweep point in common: "
            "compare runs of the same experiment"
        )
    return rows


def _ends(run: RunFolder, policy: str, point: Point) -> dict[int, float]:
    """Regret at the horizon by trial."""
    frame = part(run, policy, point)
    last = frame.filter(frame["t"] == horizon(run))
    return dict(zip(last["trial"].to_list(), last["regret"].to_list(), strict=True))


def _change(one: dict[int, float], other: dict[int, float], paired: bool) -> Row:
    common = sorted(one.keys() & other.keys())
    if paired and common:
        both = np.array([[other[trial], one[trial]] for trial in common])
        found = bootstrap_interval([both], relative_difference)
    else:
        columns = [np.array(list(ends.values()))[:, None] for ends in (other, one)]
        found = bootstrap_interval(columns, _ratio)
    return {
        "first": float(np.mean(list(one.values()))),
        "second": float(np.mean(list(other.values()))),
        "change": found.estimate,
        "low": found.low,
        "high": found.high,
        "paired": paired,
    }


def _ratio(means: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.asarray(means[0][..., 0] / means[1][..., 0] - 1)


def differences(first: RunFolder, second: RunFolder) -> list[Row]:
    """Every key in which the two specs differ."""
    one, other = _flat(first.manifest["spec"]), _flat(second.manifest["spec"])
    return [
        {"key": key, "first": one.get(key), "second": other.get(key)}
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        inner = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inner = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {path: value}
    return {key: leaf for at, item in inner for key, leaf in _flat(item, at).items()}


def share(value: float) -> str:
    """A relative difference in words: -40.2 %; nothing where it is not known."""
    return "–" if math.isnan(value) else f"{100 * value:+,.1f} %"


def verdict_row(verdict: Verdict) -> Row:
    """A verdict as text."""
    return {
        "claim": verdict.claim,
        "scope": verdict.scope,
        "verdict": verdict.word,
        "difference": share(verdict.estimate),
        "confidence interval": f"{share(verdict.low)} to {share(verdict.high)}",
        "detail": verdict.detail,
    }
