"""Checks of what a caller gives, shared by the files of this room."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from rumormill.errors import InputError

Rng: TypeAlias = int | np.random.SeedSequence | np.random.Generator


def whole(name: str, value: Any, least: int) -> int:
    """The value as an int of at least `least`; bools and floats are refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r} is not allowed: it must be a whole number of at least {least}")
    return int(value)


def number(name: str, value: Any) -> float:
    """The value as a finite float; bools and anything else are refused."""
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not math.isfinite(value)
    ):
        raise InputError(f"{name} = {value!r} is not allowed: it must be a finite number")
    return float(value)


def probability(name: str, value: Any) -> float:
    """The value as a float in [0, 1]."""
    if not 0 <= number(name, value) <= 1:
        raise InputError(f"{name} = {value!r} is not allowed: a probability lies in [0, 1]")
    return float(value)


def positive(name: str, value: Any) -> float:
    """The value as a finite float above zero."""
    if number(name, value) <= 0:
        raise InputError(f"{name} = {value!r} is not allowed: it must be above zero")
    return float(value)


def generator(rng: Any) -> np.random.Generator:
    """The stream that `rng` names. There is no default: results must be repeatable."""
    if isinstance(rng, np.random.Generator | np.random.SeedSequence):
        return np.random.default_rng(rng)
    if isinstance(rng, bool | np.bool_) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InputError(
            f"rng = {rng!r} is not allowed: give a whole number of at least 0, a numpy SeedSequence or a "
            "numpy Generator"
        )
    return np.random.default_rng(int(rng))


def fresh_seed(stream: np.random.Generator) -> int:
    """An integer seed for a library that cannot take a numpy Generator."""
    return int(stream.integers(2**31))
