"""Recipes of rewards: what a request counts, to the number."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rumormill as rm
from rumormill.recipes import FirstToken, QualityScore, TokenRate

seconds = st.floats(0.0, 1e4)


@given(seconds, st.floats(0.0, 10.0), st.booleans(), st.integers(0, 5), st.floats(0.1, 100.0))
def test_a_cost_is_bounded_and_a_failure_is_never_cheaper(
    took: float, dollars: float, failed: bool, retries: int, timeout: float
) -> None:
    recipe = FirstToken(timeout=timeout, seconds_per_dollar=3.0, failure=1.5, retry=0.5)
    cost = recipe.value(took, dollars=dollars, failed=failed, retries=retries)
    late = took >= timeout
    assert cost == min(took, timeout) + 3.0 * dollars + (1.5 if failed or late else 0.0) + 0.5 * retries
    assert cost <= recipe.value(took, dollars=dollars, failed=True, retries=retries)
    assert cost <= recipe.value(None, dollars=dollars, retries=retries)


def test_a_time_out_counts_alike_however_it_is_reported() -> None:
    recipe = FirstToken(timeout=8.0, failure=1.0)
    assert recipe.value(None) == recipe.value(8.0) == recipe.value(123.0, failed=True) == 9.0
    assert FirstToken(timeout=8.0).value(None) == 16.0
    assert FirstToken(timeout=8.0, failure=0.0).value(2.0, failed=True) == 2.0


def test_the_page_about_routing(capsys: pytest.CaptureFixture[str]) -> None:
    """Its example is executed, and shows what the text beside it says."""
    page = (Path(__file__).parents[1] / "docs" / "routing.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(block, "routing.md", "exec"), {})
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["fast"] * 3 + ["cheap"]


def test_rates_and_scores() -> None:
    assert TokenRate().value(10, seconds=4.0) == 2.5
    assert TokenRate(from_first_token=True).value(10, seconds=4.0, first_token=2.0) == 5.0
    assert TokenRate().value(10, seconds=4.0, failed=True) == TokenRate().value(0, seconds=0.0) == 0.0
    score = QualityScore(points_per_dollar=2.0, points_per_second=0.5)
    assert math.isclose(score.value(1.0, dollars=0.1, seconds=0.4), 0.6)
    assert math.isclose(score.value(1.0, dollars=0.1, seconds=0.4, failed=True), -0.4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: FirstToken(timeout=0.0), "timeout"),
        (lambda: FirstToken(timeout=1.0, seconds_per_dollar=-1.0), "seconds_per_dollar"),
        (lambda: FirstToken(timeout=1.0, failure=math.inf), "failure"),
        (lambda: FirstToken(timeout=1.0).value(-0.1), "seconds"),
        (lambda: FirstToken(timeout=1.0).value(math.nan), "seconds"),
        (lambda: FirstToken(timeout=1.0).value(0.1, dollars=-1.0), "dollars"),
        (lambda: FirstToken(timeout=1.0).value(0.1, retries=-1), "retries"),
        (lambda: TokenRate().value(3, seconds=0.0), "3 tokens need more"),
        (lambda: QualityScore().value(1.1), "score"),
        (lambda: QualityScore(points_per_second=-1.0), "points_per_second"),
    ],
)
def test_what_is_refused(call: object, says: str) -> None:
    with pytest.raises(rm.InputError, match=says):
        call()  # type: ignore[operator]
