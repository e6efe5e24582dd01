"""The examples in the docstrings of the rooms below the engine run and say what they print."""

import doctest
import importlib
import pkgutil

import pytest

ROOMS = {"arms": 40, "estimators": 30, "graphs": 7, "policies": 30, "protocol": 25, "theory": 15}


@pytest.mark.parametrize(("room", "fewest"), ROOMS.items())
def test_examples(room: str, fewest: int) -> None:
    package = importlib.import_module(f"rumormill.{room}")
    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    results = [doctest.testmod(importlib.import_module(name)) for name in names]
    assert sum(result.attempted for result in results) >= fewest
    assert sum(result.failed for result in results) == 0
