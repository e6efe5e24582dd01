"""Streams that hurt: heavy tails, ties, zeros, outliers. Drawn once per session, from fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest

from rumormill.arms import AlphaStable, Pareto, TwoPoint
from rumormill.arms.base import Moments

LENGTH = 20_000


def _stream(name: str) -> tuple[list[float], Moments]:
    rng = np.random.default_rng(20240611)
    if name.startswith("stable"):
        alpha = float(name.split("-")[1])
        eps = 0.85 * (alpha - 1)
        law = AlphaStable(alpha=alpha, loc=0.7)
        x = law.sample(rng, LENGTH)
        moments = Moments(eps=eps, u=law.moment(1 + eps), rho=law.moment(1 + eps, central=True))
    elif name == "pareto":
        tail = Pareto.with_mean(2.0, tail=1.5)
        x = tail.sample(rng, LENGTH)
        moments = Moments(eps=0.4, u=tail.moment(1.4), rho=tail.moment(1.4, central=True))
    elif name == "two-point":  # ties, zeros, and now and then a large sample of always the same size
        coin = TwoPoint(low=0.0, high=400.0, probability=0.002)
        x = coin.sample(rng, LENGTH)
        moments = Moments(eps=1.0, u=coin.moment(2.0), rho=coin.moment(2.0, central=True))
    elif name == "outliers":  # moment bounds that a few absurd samples mock
        x = np.round(rng.standard_normal(LENGTH), 2) + 1.0
        x[[3, 700, 701, 9_000, 15_000]] = [1e12, -1e15, 1e9, 3e11, -1e12]
        moments = Moments(eps=1.0, u=2.0, rho=1.0)
    else:
        raise ValueError(name)
    return x.tolist(), moments


STREAMS = ("stable-1.1", "stable-1.3", "stable-1.5", "stable-1.9", "pareto", "two-point", "outliers")


@pytest.fixture(scope="session", params=STREAMS)
def stream(request: pytest.FixtureRequest) -> tuple[list[float], Moments]:
    """(samples, moment bounds)."""
    return _stream(request.param)
