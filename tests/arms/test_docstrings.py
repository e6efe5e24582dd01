"""The examples in the docstrings run and say what they print."""

import doctest
import importlib
from typing import Any

import pytest


@pytest.mark.parametrize("module", ["bandit", "light", "power", "replay", "stable"])
def test_examples(module: Any) -> None:
    result = doctest.testmod(importlib.import_module(f"rumormill.arms.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
