"""Parameters that are no law, and questions a law cannot answer."""

import math
from typing import Any

import pytest

from rumormill.arms import (
    AlphaStable,
    Empirical,
    Gaussian,
    LogNormal,
    Pareto,
    StudentT,
    TwoPoint,
    two_point_pair,
)
from rumormill.errors import InputError, SolverError

NOT_NUMBERS = [math.nan, math.inf, -math.inf, "1", None, True, 1j]


@pytest.mark.parametrize("value", [0.0, -1.0, 2.1, *NOT_NUMBERS])
def test_alpha(value: Any) -> None:
    with pytest.raises(InputError, match=r"alpha = .* a number above 0, at most 2"):
        AlphaStable(alpha=value)


@pytest.mark.parametrize("value", [-1.01, 1.01, *NOT_NUMBERS])
def test_beta(value: Any) -> None:
    with pytest.raises(InputError, match=r"beta = .* a number from -1 to 1"):
        AlphaStable(alpha=1.5, beta=value)


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize(
    ("law", "name"),
    [
        (lambda x: AlphaStable(alpha=1.5, loc=x), "loc"),
        (lambda x: Gaussian(loc=x), "loc"),
        (lambda x: StudentT(df=3, loc=x), "loc"),
        (lambda x: Pareto(tail=3, shift=x), "shift"),
        (lambda x: Pareto.with_mean(x, tail=3), "mean"),
        (lambda x: LogNormal(mu=x), "mu"),
        (lambda x: LogNormal(shift=x), "shift"),
        (lambda x: TwoPoint(low=x, probability=0.5), "low"),
        (lambda x: TwoPoint(high=x, probability=0.5), "high"),
    ],
)
def test_locations(law: Any, name: Any, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{name} = .* a number from -1e\+100 to 1e\+100"):
        law(value)


@pytest.mark.parametrize("value", [0, -0.5, *NOT_NUMBERS])
@pytest.mark.parametrize(
    ("law", "name"),
    [
        (lambda x: AlphaStable(alpha=1.5, scale=x), "scale"),
        (lambda x: Gaussian(scale=x), "scale"),
        (lambda x: StudentT(df=3, scale=x), "scale"),
        (lambda x: StudentT(df=x), "df"),
        (lambda x: Pareto(tail=x), "tail"),
        (lambda x: Pareto(tail=3, scale=x), "scale"),
        (lambda x: LogNormal(sigma=x), "sigma"),
    ],
)
def test_scales(law: Any, name: Any, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{name} = .* a number above 0, at most"):
        law(value)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.1, *NOT_NUMBERS])
def test_probability(value: Any) -> None:
    with pytest.raises(InputError, match=r"probability = .* a number between 0 and 1"):
        TwoPoint(probability=value)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0)])
def test_two_points_in_order(low: Any, high: Any) -> None:
    with pytest.raises(InputError, match="low must be below high"):
        TwoPoint(low=low, high=high, probability=0.5)


@pytest.mark.parametrize("gap", [0.0, 0.5, -0.1, math.nan])
def test_pair_gap(gap: Any) -> None:
    with pytest.raises(InputError, match=r"gap = .* a number between 0 and 0.5"):
        two_point_pair(gap, 0.5)


@pytest.mark.parametrize("eps", [0.0, 1.01, math.nan])
def test_pair_eps(eps: Any) -> None:
    with pytest.raises(InputError, match=r"eps = .* a number from 0.001 to 1"):
        two_point_pair(0.1, eps)


def test_pair_beyond_floats() -> None:
    with pytest.raises(InputError, match="too small for floats"):
        two_point_pair(0.01, 0.004)


def test_empirical_data() -> None:
    with pytest.raises(InputError, match=r"shape \(0,\)"):
        Empirical([])
    with pytest.raises(InputError, match=r"shape \(1, 2\)"):
        Empirical([[1.0, 2.0]])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"data\[1\] = nan"):
        Empirical([1.0, math.nan, math.inf])
    with pytest.raises(InputError, match="not numbers"):
        Empirical(["a"])  # type: ignore[list-item]


@pytest.mark.parametrize("p", [0.0, -1.0, math.nan, math.inf])
def test_orders(p: Any) -> None:
    with pytest.raises(InputError, match="positive, finite"):
        Gaussian().moment(p)


@pytest.mark.parametrize(
    ("law", "limit"),
    [(AlphaStable(alpha=1.5), "1.5"), (StudentT(df=3), "3.0"), (Pareto(tail=2.5), "2.5")],
    ids=repr,
)
@pytest.mark.parametrize("central", [False, True])
def test_infinite_moments_name_the_limit(law: Any, limit: Any, central: Any) -> None:
    for p in (law.tail_index, law.tail_index + 1):
        with pytest.raises(InputError, match=rf"infinite: give p below {limit}$"):
            law.moment(p, central=central)


@pytest.mark.parametrize("law", [AlphaStable(alpha=0.9), StudentT(df=0.9), Pareto(tail=0.9)], ids=repr)
def test_no_mean(law: Any) -> None:
    with pytest.raises(InputError, match="has no mean: choose"):
        _ = law.mean
    with pytest.raises(InputError, match="has no mean"):
        law.moment(0.5, central=True)
    assert law.moment(0.5) > 0


@pytest.mark.parametrize(
    "law", [LogNormal(sigma=30.0), LogNormal(sigma=30.0, shift=1.0), LogNormal(mu=700.0)]
)
def test_moments_beyond_floats(law: Any) -> None:
    with pytest.raises(InputError, match="beyond the largest float"):
        law.moment(2)


def test_an_integral_that_does_not_settle_is_no_answer() -> None:
    """Ten million waves with a logarithm in their phase: the only law without a fallback."""
    with pytest.raises(SolverError, match="could not be integrated"):
        AlphaStable(alpha=1.0, beta=0.5, loc=1e7).moment(0.5)
