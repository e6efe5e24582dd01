"""Two runs side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from rumormill.errors import InputError
from rumormill.experiments.analyse.claims import CONFIDENCE, same_chance
from rumormill.experiments.analyse.summary import Row, Series, Summary
from rumormill.stats.intervals import change_of_means, median_interval, ratios


def compare(first: Summary, second: Summary) -> list[Row]:
    """Regret at the last round where both runs have the same policy and sweep point.

    `change` is how much larger the second is, as a share of the first, in the median over trials. Trials are
    paired where both runs drew the same bandits from the same seed, else taken as independent. All intervals
    hold together.
    """
    paired = same_chance(first, second)
    both = [
        (one, second.of(one.policy, values))
        for values in first.points
        if values in second.points
        for one in first.at(values)
        if one.policy in second.policies
    ]
    confidence = 1 - (1 - CONFIDENCE) / max(len(both), 1)
    rows = [
        {**one.values, "policy": one.policy, **_change(one, other, paired, confidence)} for one, other in both
    ]
    if not rows:
        raise InputError(
            f"{first.path} and {second.path} have no policy at the same sweep point in common: "
            "compare runs of the same experiment"
        )
    return rows


def _change(first: Series, second: Series, paired: bool, confidence: float) -> Row:
    one, other = first.by_trial(), second.by_trial()
    common = sorted(one.keys() & other.keys())
    columns = [np.array(list(ends.values())) for ends in (other, one)]
    samples = columns
    if paired and common:
        samples = [ratios(*(np.array([ends[trial] for trial in common]) for ends in (other, one)))]
    found = median_interval(samples, confidence)
    return {
        "first": float(columns[1].mean()),
        "second": float(columns[0].mean()),
        "change": found.estimate,
        "low": found.low,
        "high": found.high,
        "change_of_means": change_of_means(*columns),
        "paired": paired,
    }


def differences(first: Summary, second: Summary) -> list[Row]:
    """Every key in which the two specs differ."""
    one, other = _flat(first.manifest.spec), _flat(second.manifest.spec)
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
