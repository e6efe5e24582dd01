"""Small runs that figures are drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import decode

START = "every arm tried once"  # a line of its own beside the policies
POLICIES = [{"type": kind, "zeta": 1.0} for kind in ("kmp", "centralized", "decentralized", "robust")]


def small_run(folder: Path, **more: Any) -> RunFolder:
    spec = {
        "name": "small",
        "seed": 3,
        "horizon": 40,
        "trials": 5,
        "network": {"kind": "ring", "n": 9},
        "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 3},
        "policies": POLICIES,
        **more,
    }
    return run(decode(spec), folder, 1)


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(tmp_path_factory.mktemp("figures") / "plain")


@pytest.fixture(scope="session")
def swept_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(
        tmp_path_factory.mktemp("figures") / "swept",
        sweep={"gamma": [0, 1, 3], "confidence": ["paper", "anytime"]},
    )


@pytest.fixture(scope="session")
def plain(plain_run: RunFolder) -> Summary:
    return summarise(plain_run)


@pytest.fixture(scope="session")
def swept(swept_run: RunFolder) -> Summary:
    return summarise(swept_run)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def ends(run: RunFolder, policy: str, **point: Any) -> NDArray[np.float64]:
    keep = [pl.col(axis) == value for axis, value in point.items()]
    return run.frame.filter(pl.col("policy") == policy, pl.col("t") == 40, *keep)["regret"].to_numpy()
