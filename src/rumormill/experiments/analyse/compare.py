"""Two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analyse.bootstrap import bootstrap_interval, relative_difference
from rumormill.experiments.analyse.claims import same_chance
from rumormill.experiments.analyse.summary import Row, Series, Summary


def compare(first: Summary, second: Summary) -> list[Row]:
    """Regret at the last round where both runs have the same policy and sweep point.

    `change` is how much larger the second is, as a share of the first. Trials are paired where both runs
    drew the same bandits from the same seed, else taken as independent.
    """
    paired = same_chance(first, second)
    rows = []
    for values in first.points:
        for one in first.at(values):
            if one.policy in second.policies and values in second.points:
                change = _change(one, second.of(one.policy, values), paired)
                rows.append({**values, "policy": one.policy, **change})
    if not rows:
        raise InputError(
            f"{first.path} and {second.path} have no policy at the same sweep point in common: "
            "compare runs of the same experiment"
        )
    return rows


def _change(first: Series, second: Series, paired: bool) -> Row:
    one, other = first.by_trial(), second.by_trial()
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
