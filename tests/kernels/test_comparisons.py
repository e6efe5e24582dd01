"""Kernel and formula, directly: the same bits for every compiled formula, the same means from the kernels."""

from __future__ import annotations

import ast
from pathlib import Path

import numba
import numpy as np
import pytest

from helpers.kernel_comparisons import COMPARISONS, Comparison
from rumormill import counter_rng as keyed
from rumormill import default_rule, formulas, kernels
from rumormill.arms import Moments
from rumormill.estimators import Catoni, MedianOfMeans
from rumormill.kernels import means_stored as stored
from rumormill.kernels import means_sums as running
from rumormill.kernels.jit import alone
from rumormill.kernels.means_sums import SURE

catoni, median_of_means = alone(stored.catoni), alone(stored.median_of_means)
required_rank, sure_size = alone(running.required_rank), alone(running.sure_size)


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: c.name)
def test_the_compiled_formula_has_the_bits_of_the_plain_one(comparison: Comparison) -> None:
    compiled = alone(comparison.compiled)
    for case in comparison.cases(np.random.default_rng(5), 2_000):
        found = np.array(compiled(*case), dtype=float)
        expected = np.array(comparison.plain(*case), dtype=float)
        if comparison.ulps:
            np.testing.assert_array_max_ulp(found, expected, comparison.ulps)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=f"{comparison.name}{case}")


def test_every_formula_that_a_kernel_compiles_is_compared() -> None:
    compiled: set[str] = set()
    for path in Path(kernels.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("part", "step", "linked")
            ):
                (argument,) = node.args
                if path.name != "jit.py":  # there `linked` is made, of whatever it is given
                    assert isinstance(argument, ast.Attribute)
                    compiled.add(argument.attr)
    # The steps of the default are compared in whole games: tests/policies/test_default.py.
    compiled -= {"catoni_defined", *vars(default_rule)} - set(vars(formulas))
    assert compiled - {"catoni_defined"} == {comparison.name for comparison in COMPARISONS}
    assert compiled <= set(vars(formulas)) | set(vars(keyed))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_part_cannot_be_called_without_its_kernel() -> None:
    kernels_only = running.sure_size
    assert alone(kernels_only)(1.0, 1.0, 2.0, 1.0) > 0.0
    with pytest.raises(TypeError, match=r"alone\(sure_size\)"):
        kernels_only(1.0, 1.0, 2.0, 1.0)


SAMPLES = [
    [0.37, 1e18],
    [1e18, 0.37],
    [0.0, 0.0, 0.0],
    [1.0],
    [-1e100, 1e100, 3.0],
    [1e-9, 2e-9, -7e15, 5.0, 5.0],
    np.random.default_rng(1).standard_cauchy(50).tolist(),
    (1e12 + np.random.default_rng(2).standard_normal(40)).tolist(),
]


@pytest.mark.parametrize("samples", SAMPLES, ids=range(len(SAMPLES)))
@pytest.mark.parametrize("eps", [0.001, 0.3, 0.85, 1.0])
@pytest.mark.parametrize("L", [0.0, 0.3, 9.0])
@pytest.mark.parametrize("rho", [1e-60, 1.0, 1e200])
def test_catoni_of_the_kernel_is_that_of_the_definition(
    samples: list[float], eps: float, L: float, rho: float
) -> None:
    moments = Moments(eps=eps, u=1.0, rho=rho)
    expected = Catoni().of(samples, L, moments)
    found = catoni(np.array(samples), L, 1.0 + eps, rho, False, 0.0)
    grain = 1e-13 * max(abs(expected), float(np.median(np.abs(samples))), 1e-300)
    assert found == expected or abs(found - expected) <= grain


@pytest.mark.parametrize("samples", SAMPLES, ids=range(len(SAMPLES)))
@pytest.mark.parametrize("L", [0.0, 0.3, 9.0])
def test_median_of_means_of_the_kernel_is_that_of_the_online_form(samples: list[float], L: float) -> None:
    online = MedianOfMeans().online(Moments(eps=0.5, u=1.0, rho=1.0))
    for x in samples:
        online.update(x)
    state = online.state()
    pool = np.array([[0.0, *state["hi"]], [0.0, *state["lo"]]])
    k = formulas.group_count(len(samples), L)
    assert median_of_means(float(len(samples)), k, 0, pool, np.zeros(k + 1)) == online.mean(L)


def test_a_sure_sample_never_leaves() -> None:
    """`need` and `sure_x` may be late, never early: by the exact rule the sample stays to the last level."""
    rng = np.random.default_rng(8)
    for _ in range(5_000):
        x, u = float(rng.standard_cauchy()), float(10 ** rng.uniform(-3, 3))
        p, last_L = float(rng.uniform(1.01, 2.0)), float(rng.uniform(1.0, 40.0))
        rank = np.ceil(required_rank(formulas.power_of_size(x, p), u, last_L))
        assert formulas.leaving_level(formulas.power_of_size(x, p), rank, u) >= last_L
        if rank > 2:  # and not so late that nothing is ever sure
            assert formulas.leaving_level(formulas.power_of_size(x, p), rank - 2, u) < last_L * SURE
        fewest = float(rng.integers(1, 10_000))
        sure = sure_size(fewest, u, p, last_L)
        assert formulas.leaving_level(formulas.power_of_size(sure, p), fewest, u) >= last_L
        assert formulas.leaving_level(formulas.power_of_size(sure * 1.00001, p), fewest, u) < last_L
