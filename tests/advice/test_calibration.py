"""The calibration logs: made by number, and advice on them holds what docs/advice.md says."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the scripts are no part of the package

from scripts.calibrate_advice import FAMILIES, LOGS, case_of, score


def test_there_are_enough_of_every_kind() -> None:
    assert len(FAMILIES) * LOGS >= 200


@pytest.mark.parametrize("family", FAMILIES)
def test_a_log_is_made_by_its_number(family: str) -> None:
    first, again, other = case_of(family, 3), case_of(family, 3), case_of(family, 4)
    np.testing.assert_array_equal(first.log.value, again.log.value)
    np.testing.assert_array_equal(first.later, again.later)
    assert len(first.log.value) != len(other.log.value) or (first.log.value != other.log.value).any()
    assert first.later.shape == first.expected.shape
    assert first.later.shape[1:] == (first.log.n_agents, first.log.n_arms)


@pytest.mark.parametrize("family", ["failing", "censored"])
def test_the_right_arm_or_that_it_cannot_be_told(family: str) -> None:
    row = score(case_of(family, 3))
    assert row["named"] or row["unsure"]
    assert row["gain"]["low"] <= row["gain"]["value"] <= row["gain"]["high"]


@pytest.mark.slow
def test_the_held_out_half() -> None:
    """The table of docs/advice.md, with room for other versions of the libraries."""
    rows = [score(case_of(family, number)) for family in FAMILIES for number in range(1, LOGS, 2)]
    told = [row for row in rows if "refused" not in row]
    assert all(row["named"] or row["unsure"] for row in told)
    priced = [row for row in told if row["priced"]]
    assert sum(row["alone"][2] > 1.05 for row in priced) <= math.ceil(0.01 * len(priced))
    covered = [row["gain"]["low"] <= row["saved_measured"] <= row["gain"]["high"] for row in priced]
    assert np.mean(covered) >= 0.85
