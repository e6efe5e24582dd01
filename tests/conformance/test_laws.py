"""Every reward law in the catalogue: its numbers hold, and a bandit of it plays alike on both engines."""

import pickle
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.catalogue_samples import every, made
from helpers.oracle_adapters import ties_between_engines
from rumormill import catalogue

each = pytest.mark.parametrize(("name", "table"), every("law"))


@each
def test_can_be_sent_to_another_process(name: str, table: dict[str, Any]) -> None:
    law = made("law", table)
    again = pickle.loads(pickle.dumps(law))
    assert repr(again) == repr(law) == repr(made("law", table))
    one, two = (each.sample(np.random.default_rng(1), 20) for each in (law, again))
    np.testing.assert_array_equal(one, two)
    assert catalogue.name_of("law", type(law)) == name


@each
def test_samples_depend_on_the_generator_alone(name: str, table: dict[str, Any]) -> None:
    law = made("law", table)
    one, two, other = (law.sample(np.random.default_rng(seed), (3, 50)) for seed in (1, 1, 2))
    assert one.shape == (3, 50)
    assert one.dtype == np.float64
    assert np.isfinite(one).all()
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


@each
def test_moments_are_those_of_the_samples(name: str, table: dict[str, Any]) -> None:
    """Order 1/2: its square has a mean, so five standard errors are a fair bar (fixed seed)."""
    law = made("law", table)
    x = law.sample(np.random.default_rng(7), 100_000)
    for center, central in ((0.0, False), (law.mean, True)):
        sizes = np.abs(x - center) ** 0.5
        error = sizes.std() / np.sqrt(len(x))
        assert abs(sizes.mean() - law.moment(0.5, central=central)) < 5 * error + 1e-12


@each
def test_the_default_order_is_finite_and_the_tail_index_is_not(name: str, table: dict[str, Any]) -> None:
    law = made("law", table)
    assert 0 < law.default_eps() <= 1
    assert np.isfinite(law.moment(1 + law.default_eps()))
    if np.isfinite(law.tail_index):
        with pytest.raises(rm.InputError, match="infinite"):
            law.moment(law.tail_index)


@each
def test_can_be_moved_to_any_mean(name: str, table: dict[str, Any]) -> None:
    law = made("law", table)
    for mean in (-0.75, 0.25, 2.0):
        moved = law.at_mean(mean)
        assert moved.mean == pytest.approx(mean, rel=1e-9, abs=1e-9)
        assert moved.tail_index == law.tail_index


@each
def test_the_standard_form_gives_the_same_samples(name: str, table: dict[str, Any]) -> None:
    law = made("law", table)
    form = law.standard()
    if form is None:
        return
    standard, loc, scale = form
    one, two = (each.sample(np.random.default_rng(3), 200) for each in (law, standard))
    np.testing.assert_allclose(one, loc + scale * two, rtol=1e-9, atol=1e-12)


@each
def test_a_bandit_of_it_plays_alike_on_both_engines(name: str, table: dict[str, Any]) -> None:
    bandit = rm.Bandit([made("law", table).at_mean(mean) for mean in (0.5, 0.75, 0.25)])
    for policy in (rm.DecentralizedMPUCB(gamma=2, zeta=0.3), rm.ConsensusUCB()):
        assert ties_between_engines(bandit, rm.Network.path(4), policy, horizon=50, seed=2) == 0
