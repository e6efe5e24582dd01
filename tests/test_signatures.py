"""`inspect.signature` and `help` of public names show the real parameters."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import pydoc
from typing import Any

import msgspec
import pytest

import rumormill as rm

CLASSES = [name for name in rm.__all__ if isinstance(getattr(rm, name), type)]
PROTOCOLS = [name for name in CLASSES if getattr(getattr(rm, name), "_is_protocol", False)]
MADE = [name for name in CLASSES if name not in PROTOCOLS]
FUNCTIONS = [name for name in rm.__all__ if inspect.isfunction(getattr(rm, name))]


def parameters_of(cls: Any) -> list[str]:
    """The names that the constructor takes."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls) if field.init]
    if issubclass(cls, msgspec.Struct):
        return list(cls.__struct_fields__)
    if cls.__init__ is object.__init__:
        return []
    return list(inspect.signature(cls.__init__).parameters)[1:]


@pytest.mark.parametrize("name", MADE)
def test_the_signature_of_a_class_is_that_of_its_constructor(name: str) -> None:
    cls = getattr(rm, name)
    signature = inspect.signature(cls)
    assert list(signature.parameters) == parameters_of(cls)
    kinds = {one.kind for one in signature.parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    shown = pydoc.plain(pydoc.render_doc(cls)).partition(f" |  {name}(")[2].splitlines()
    for parameter in parameters_of(cls):
        assert parameter in shown[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_signature_of_a_function_names_its_parameters(name: str) -> None:
    parameters = inspect.signature(getattr(rm, name)).parameters.values()
    assert all(one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters)
    assert all(one.annotation is not one.empty for one in parameters)


def test_a_default_that_is_made_is_shown() -> None:
    assert inspect.signature(rm.KMPUCB).parameters["estimator"].default == rm.TrimmedMean()


def test_only_the_class_has_it() -> None:
    assert not hasattr(rm.Gaussian(), "__signature__")


def test_protocols_are_not_constructed() -> None:
    assert PROTOCOLS == ["Agent", "Carrier", "Plan"]


def test_errors_travel_between_processes() -> None:
    for cls in (rm.RumormillError, rm.InputError, rm.DataError, rm.ContractError, rm.SolverError):
        assert str(pickle.loads(pickle.dumps(cls("what was given")))) == "what was given"
