"""Every estimator in the catalogue: promises, definition, online form, the oracle's second writing."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers import oracle
from helpers.catalogue_samples import every, made
from helpers.oracle_adapters import PAPER_ESTIMATORS
from rumormill import catalogue
from rumormill.checks import stays_small
from rumormill.estimators import Terms

# Estimators with a sketch, or with an index of their own: compared as streams.
STREAMS = sorted({*oracle.MEANS, *oracle.OWN_INDEX} - set(PAPER_ESTIMATORS))
# Settings that make another estimator of one: the oracle knows the default.
OTHERS = {"trimmed": {"variant": "literal"}}

each = pytest.mark.parametrize(("name", "table"), every("estimator"))
MOMENTS = [
    rm.Moments(eps=1.0, u=4.0, rho=3.0),
    rm.Moments(eps=0.5, u=2.0, rho=1.5),
    rm.Moments(eps=0.2, u=5.0, rho=4.0),
]


@each
def test_keeps_its_promises(name: str, table: dict[str, Any]) -> None:
    rm.checks.check_estimator(made("estimator", table))


@each
def test_attributes_are_true(name: str, table: dict[str, Any]) -> None:
    """Each attribute is compared with what happens: samples are fed, constants and streams are asked for."""
    estimator = made("estimator", table)
    assert estimator.bounded_memory == stays_small(estimator)
    without_moments = Terms(last_L=9.0, horizon=100)
    assert estimator.needs_moments == raises(lambda: estimator.stream_for(without_moments))
    without_horizon = Terms(moments=MOMENTS[0], last_L=9.0)
    assert estimator.needs_horizon == raises(lambda: estimator.stream_for(without_horizon))
    stream = estimator.stream_for(Terms(moments=MOMENTS[0], last_L=9.0, horizon=100))
    stream.update(1.0)
    assert estimator.brings_index != raises(lambda: stream.index(1.0))
    if table.get("variant") == "literal":  # a wrong algorithm, played with the constant of the right one
        assert not estimator.has_lemma
        return
    if not estimator.brings_index:
        assert estimator.has_lemma == any(estimator.valid(n, 2.0, MOMENTS[0]) for n in (1, 10, 10**6))
        by_theory = {"type": "robust", "estimator": table, "c": "theory"}
        assert estimator.has_lemma != raises(lambda: made("policy", by_theory))


def raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except (rm.InputError, TypeError):
        return True
    return False


@each
@pytest.mark.parametrize("moments", MOMENTS, ids=repr)
def test_equals_the_oracle(name: str, table: dict[str, Any], moments: rm.Moments) -> None:
    assert (name in PAPER_ESTIMATORS) != (name in STREAMS), "write its definition down in the oracle"
    if name in STREAMS or OTHERS.get(name, {}).items() & table.items():
        return
    estimator = made("estimator", table)
    rules = oracle.Rules("robust", estimator=name, eps=moments.eps, u=moments.u, rho=moments.rho, c="theory")
    x = np.random.default_rng(5).standard_cauchy(300).tolist()
    online = estimator.online(moments)
    grown = 1.0 + table.get("slack", 0.0)  # by how much n or L grows before a mean is worked out again
    last_n, last_L, last = 0, 0.0, math.inf
    for n, sample in enumerate(x, 1):
        online.update(sample)
        L = 2 * math.log(n + 1)
        expected = oracle.MEANS[name](x[:n], L, rules)
        assert estimator.of(x[:n], L, moments) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        if math.isinf(expected) or n > grown * last_n or grown * last_L < L:
            last_n, last_L, last = (0, 0.0, expected) if math.isinf(expected) else (n, L, expected)
        assert online.mean(L) == pytest.approx(last, rel=1e-9, abs=1e-9)
        if not estimator.has_lemma:
            with pytest.raises(rm.InputError, match="theory"):
                rm.RobustUCB(estimator=estimator, c="theory")
            continue
        radius = rm.RobustUCB(estimator=estimator, c="theory").radius(moments)
        assert radius.at(n, L) == pytest.approx(oracle.radius(n, L, rules), rel=1e-12)
    zeta = oracle.Rules("robust", estimator=name, eps=moments.eps, u=moments.u, rho=moments.rho, zeta=0.7)
    factor = rm.RobustUCB(estimator=estimator, zeta=0.7).radius(moments)
    assert factor.at(40, 3.0) == pytest.approx(oracle.radius(40, 3.0, zeta), rel=1e-12)


@pytest.mark.parametrize(("name", "table"), [p for p in every("estimator") if p.values[0] in STREAMS])
@pytest.mark.parametrize("moments", MOMENTS, ids=repr)
def test_a_stream_equals_the_oracle(name: str, table: dict[str, Any], moments: rm.Moments) -> None:
    """Mean and index, in a game of 400 rounds with three arms and five agents in reach."""
    estimator: Any = made("estimator", table)
    options = {key: value for key, value in table.items() if key not in ("type", "group")}
    rules = oracle.Rules(
        "robust",
        estimator=name,
        options=options,
        c="theory",
        eps=moments.eps,
        u=moments.u,
        rho=moments.rho,
    )
    terms = Terms(moments=moments, last_L=2 * math.log(400), horizon=400, n_arms=3, group=5)
    stream = estimator.stream_for(terms)
    x = np.random.default_rng(5).standard_cauchy(300).tolist()
    budget, last = 400 * table.get("group", 5) / 3, None
    for n, sample in enumerate(x, 1):
        stream.update(sample)
        L = 2 * math.log(n + 1)
        if name in oracle.LAZY:
            (mean, index, _), last = oracle.lazily(x[:n], L, rules, budget, last)
        else:
            mean, index, _ = oracle.estimate(x[:n], L, rules, budget, terms.last_L)
        assert stream.mean(L) == pytest.approx(mean, rel=1e-9, abs=1e-9)
        if estimator.brings_index:
            assert stream.index(L) == pytest.approx(index, rel=1e-9, abs=1e-9)
        else:
            radius = rm.RobustUCB(estimator=estimator, c="theory").radius(moments)
            assert radius.index(stream.mean(L), n, L) == pytest.approx(index, rel=1e-9, abs=1e-9)


@each
@pytest.mark.parametrize("moments", MOMENTS, ids=repr)
def test_many_lists_at_once_are_the_same_as_one_by_one(
    name: str, table: dict[str, Any], moments: rm.Moments
) -> None:
    estimator = made("estimator", table)
    rows = np.random.default_rng(6).standard_cauchy((7, 40))
    for L in (0.5, 3.0, 8.0):
        one_by_one = [estimator.of(row.tolist(), L, moments) for row in rows]
        np.testing.assert_allclose(estimator.of_rows(rows, L, moments), one_by_one, rtol=1e-9, atol=1e-12)


@each
def test_is_plain_data(name: str, table: dict[str, Any]) -> None:
    estimator = made("estimator", table)
    assert pickle.loads(pickle.dumps(estimator)) == estimator == made("estimator", table)
    assert hash(estimator) == hash(made("estimator", table))
    assert catalogue.name_of("estimator", type(estimator)) == name
