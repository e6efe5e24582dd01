"""Two small runs, one with a sweep, for everything that shows runs."""

from __future__ import annotations

from typing import Any

import pytest

from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import decode

POLICIES = [
    {"type": "kmp", "zeta": 1.0},
    {"type": "centralized", "zeta": 1.0},
    {"type": "decentralized", "zeta": 1.0},
    {"type": "consensus"},
    {"type": "robust", "zeta": 1.0},
]


def small_spec(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": f"A small run <{name}>",
        "question": "Does it show & tell?",
        "seed": 7,
        "horizon": 60,
        "trials": 6,
        "network": {"kind": "watts_strogatz", "n": 12, "k": 4, "p": 0.1},
        "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 3},
        "policies": POLICIES,
        **more,
    }


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(decode(small_spec("plain")), tmp_path_factory.mktemp("runs") / "plain", 1)


@pytest.fixture(scope="session")
def sweep_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    claims = [
        {"kind": "matters", "policy": "Decentralized", "parameter": "gamma"},
        {"kind": "hardly-matters", "policy": "KMP", "parameter": "gamma"},
    ]
    spec = decode(small_spec("sweep", sweep={"gamma": [0, 1, 2]}, claims=claims))
    return run(spec, tmp_path_factory.mktemp("runs") / "sweep", 1)


@pytest.fixture(scope="session")
def plain_summary(plain_run: RunFolder) -> Summary:
    return summarise(plain_run)


@pytest.fixture(scope="session")
def sweep_summary(sweep_run: RunFolder) -> Summary:
    return summarise(sweep_run)
