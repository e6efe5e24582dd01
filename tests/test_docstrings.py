"""Docstrings of public names: one line, the sections of numpydoc, and examples that run."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from typing import Any

import pytest

import rumormill as rm

NAMES = [name for name in rm.__all__ if not inspect.ismodule(getattr(rm, name))]
SECTIONS = ("Parameters", "Returns", "Examples", "References")


def sections_of(thing: Any) -> set[str]:
    text = inspect.cleandoc(thing.__doc__ or "")
    return {title for title in SECTIONS if re.search(rf"^{title}\n-{{{len(title)}}}$", text, re.MULTILINE)}


def required(thing: Any) -> set[str]:
    """Errors need their line only; a class returns nothing; what takes nothing has no parameters."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return set()
    needed = set(SECTIONS)
    if isinstance(thing, type):
        needed.discard("Returns")
    if getattr(thing, "_is_protocol", False) or not inspect.signature(thing).parameters:
        needed.discard("Parameters")
    return needed


@pytest.mark.parametrize("name", NAMES)
def test_the_first_line_is_a_sentence(name: str) -> None:
    text = inspect.cleandoc(getattr(rm, name).__doc__ or "")
    first, _, rest = text.partition("\n")
    assert first.endswith((".", "!")), first
    assert not rest or rest.startswith("\n")


@pytest.mark.parametrize("name", NAMES)
def test_sections(name: str) -> None:
    thing = getattr(rm, name)
    assert required(thing) <= sections_of(thing)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_executed(name: str) -> None:
    """`test_examples.py` runs the examples of every module: that of this name is among them."""
    thing = getattr(rm, name)
    if "Examples" in sections_of(thing):
        found = doctest.DocTestFinder().find(sys.modules[thing.__module__])
        assert [each for each in found if each.examples and each.name.endswith(f".{thing.__name__}")]


@pytest.mark.parametrize("name", [n for n in NAMES if "Parameters" in required(getattr(rm, n))])
def test_parameters_that_are_described_exist(name: str) -> None:
    thing = getattr(rm, name)
    text = inspect.cleandoc(thing.__doc__ or "")
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=^\w+\n-{3,}$|\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        return
    heads = re.findall(r"^(\w[^:\n]*?)(?: ?:.*)?$", section[1], re.MULTILINE)
    described = [one.strip() for head in heads for one in head.split(",")]
    assert set(described) <= set(inspect.signature(thing).parameters), described
