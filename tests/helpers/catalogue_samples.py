"""Settings with which everything in the catalogue is tried out.

What a class needs is read from the catalogue; words, truth values and named things follow from the types of
its settings, the rest is in small tables here. A name or a setting for which there is nothing to try is an
error, so nothing can enter the catalogue untried.
"""

from pathlib import Path
from typing import Any

import pytest

from rumormill import catalogue

# What has no default, by kind and name.
NEEDED: dict[str, dict[str, dict[str, Any]]] = {
    "policy": {},
    "estimator": {},
    "law": {
        "alpha-stable": {"alpha": 1.7},
        "student-t": {"df": 2.5},
        "pareto": {"tail": 1.8},
        "two-point": {"probability": 0.3},
        "bernoulli": {"low": -2.0, "high": 4.0},  # so that it can be moved as far as the tests move laws
        "empirical": {"data": [0.0, 0.25, 0.5, 4.0]},
    },
    "network": {
        "erdos_renyi": {"n": 12, "p": 0.5},
        "barabasi_albert": {"n": 12, "m": 2},
        "watts_strogatz": {"n": 12, "k": 4, "p": 0.3},
        "random_regular": {"n": 12, "d": 3},
        "ring": {"n": 7},
        "path": {"n": 5},
        "star": {"n": 6},
        "complete": {"n": 5},
        "grid": {"rows": 3, "cols": 4},
        "balanced_tree": {"branching": 2, "height": 2},
        "file": {"file": str(Path(__file__).with_name("village.edges"))},
        "mesh": {"file": str(Path(__file__).with_name("village.toml"))},
    },
    "channel": {},
}

# Values worth trying beside the default, by kind and setting.
VALUES: dict[str, dict[str, list[Any]]] = {
    "policy": {
        "c": [0.4, "theory"],
        "zeta": [0.3],
        "moments": [{"eps": 0.3, "u": 3.0, "rho": 2.0}],
        "gamma": [0, 1, 2, 3],
        "kappa": [0.5],
        "epsilon": [1.5],
        "cover": [],
        "quiet": [0.0, 0.25],
        "hold": [3],
        "f": [0, 2],
        "spare": [2],
        "guard": [0, 1],
        "patience": [0, 5],
        "sigma": [0.5],
        "gamma_c": [1.5],
        "eta": [1.2],
        "width": [0.5],
        "rate": [0.0, 0.5, 1.0],
        "resamples": [20],
    },
    "estimator": {
        "slack": [0.02],
        "C": [0.7],
        "kappa": [2.0],
        "omega": [1.0],
        "guard": [1.0],
        "pilot": [0, 3],
        "scale": [0.25],
        "a": [1.5],
        "eta": [1.0],
        "zeta": [0.5],
        "group": [3],
        "lam": [1.5],
        "coeff": [2.0],
        "c": [0.4],
        "p": [1.5],
    },
    "law": {
        "alpha": [1.2, 2.0],
        "beta": [0.5],
        "loc": [-0.5],
        "scale": [0.25],
        "df": [1.5, 5.0],
        "tail": [2.5],
        "shift": [1.0],
        "mu": [0.5],
        "sigma": [0.5],
        "low": [-1.0],
        "high": [8.0],
        "probability": [0.9],
        "data": [[1.0, -3.0]],
    },
    "network": {
        "n": [6, 10],
        "p": [0.9],
        "m": [3],
        "k": [2],
        "d": [2],
        "rows": [1],
        "cols": [2],
        "branching": [3],
        "height": [1],
        "file": [],
        "subgraph": [5],
    },
    "channel": {"p": [0.7, 0.0], "delay": [3, ["geometric", 0.4, 5]]},
}

# Values that hold for a path of five agents only.
ON_A_PATH_OF_FIVE: dict[str, list[Any]] = {
    "cover": [[[0, 1, 2], [3, 4]]],
    "leaders": [[2], [0, 4]],
    "epsilon": [[0.5, 1.0, 0.0, 1.0, 0.5]],
}


def samples(kind: str, name: str) -> list[dict[str, Any]]:
    """Tables for `catalogue.make`: the defaults, and each setting changed by itself."""
    settings = catalogue.settings(catalogue.KINDS[kind].classes[name])
    needed = NEEDED[kind].get(name, {})
    for setting in settings:
        if setting.required and setting.name not in needed:
            raise LookupError(f"the {kind} {name} needs {setting.name}: add a sample to NEEDED")
    base = {catalogue.KINDS[kind].tag: name, **needed}
    changed = [{**base, one.name: value} for one in settings for value in _values(kind, name, one)]
    return [base, *changed]


def _values(kind: str, name: str, setting: catalogue.Setting) -> list[Any]:
    if setting.name == "forget" and not getattr(catalogue.KINDS[kind].classes[name], "takes_prior", True):
        return []  # refused in words
    words: list[Any] = [w for w in catalogue.choices(setting.type) if w not in ("a number", "a list")]
    named = [known for known in catalogue.KINDS.values() if known.base is setting.type]
    if setting.type is bool:
        words = [True, False]
    elif named:
        words = list(named[0].classes)
    if setting.name not in VALUES[kind] and not words:
        raise LookupError(f"the {kind} {name} takes {setting.name}: add what to try to VALUES")
    return [value for value in [*words, *VALUES[kind].get(setting.name, [])] if value != setting.default]


def every(kind: str) -> list[Any]:
    """All samples of a kind, as parameters (name, table) of a test."""
    return [
        pytest.param(name, table, id=_called(name, table))
        for name in catalogue.KINDS[kind].classes
        for table in samples(kind, name)
    ]


def on_a_path_of_five() -> list[Any]:
    """All samples of policies, and what only a path of five agents can have."""
    found = every("policy")
    for name, cls in catalogue.POLICIES.items():
        for setting in catalogue.settings(cls):
            for value in ON_A_PATH_OF_FIVE.get(setting.name, []):
                table = {**samples("policy", name)[0], setting.name: value}
                found.append(pytest.param(name, table, id=_called(name, table)))
    return found


def _called(name: str, table: dict[str, Any]) -> str:
    given = [f"{key}={value}" for key, value in table.items() if value != name and key != "file"]
    return " ".join([name, *given]).replace("\n", " ")


def made(kind: str, table: dict[str, Any]) -> Any:
    """The thing itself."""
    return catalogue.make(kind, table)
