"""Checks of what a caller gives, written once: what was given, what is allowed.

The ranges below hold for both engines. Within them no power, product or sum of the formulas leaves the
floats, so that nothing has to be clipped or guessed.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from abc import ABCMeta
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from rumormill.errors import ArgumentError, InputError
from rumormill.text import nearest, shown

P = ParamSpec("P")
R = TypeVar("R")

# Rewards, means and locations of arms.
LARGEST_REWARD = 1e100
# By how much outcomes of one agent may be larger than those of others.
LARGEST_SCALE = 1e9
# Moment bounds u and rho: those of rewards that large, down to those of rewards of some 1e-30.
LEAST_MOMENT, LARGEST_MOMENT = 1e-60, 1e200
# The order of the moments is 1 + eps: below this the radius hardly shrinks with any number of samples.
LEAST_EPS = 1e-3
# How strongly consensus mixes.
LEAST_KAPPA = 1e-6
# Constants c and zeta of a radius.
LEAST_CONSTANT, LARGEST_CONSTANT = 1e-100, 1e100


def is_whole(value: object) -> bool:
    """Whether the value is a whole number, Python's or numpy's; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def is_number(value: object) -> bool:
    """Whether the value is a finite real number, Python's or numpy's; truth values and texts are not."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool | np.bool_) and math.isfinite(value)  # type: ignore[arg-type]


def whole(name: str, value: Any, least: int = 1) -> int:
    """The value as an int of at least `least`."""
    if not is_whole(value) or value < least:
        raise refused(name, value, f"a whole number >= {least}")
    return int(value)


def number(name: str, value: Any) -> float:
    """The value as a finite float."""
    if not is_number(value):
        raise refused(name, value, "a finite number")
    return float(value)


def positive(name: str, value: Any) -> float:
    """The value as a finite float above zero."""
    if not (is_number(value) and value > 0):
        raise refused(name, value, "a finite number above 0")
    return float(value)


def between(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float in [low, high]."""
    if not (is_number(value) and low <= value <= high):
        raise refused(name, value, f"a number from {low:g} to {high:g}")
    return float(value)


def above(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float in (low, high]."""
    if not (is_number(value) and low < value <= high):
        raise refused(name, value, f"a number above {low:g}, at most {high:g}")
    return float(value)


def inside(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float strictly between the two."""
    if not (is_number(value) and low < value < high):
        raise refused(name, value, f"a number between {low:g} and {high:g}")
    return float(value)


def probability(name: str, value: Any) -> float:
    """The value as a float in [0, 1]."""
    return between(name, value, 0, 1)


def reward(name: str, value: Any) -> float:
    """The value as a float that a reward or a mean may have."""
    return between(name, value, -LARGEST_REWARD, LARGEST_REWARD)


def level_scale(name: str, value: Any) -> float:
    """The value as a float that an agent may divide its outcomes by."""
    return between(name, value, 1 / LARGEST_SCALE, LARGEST_SCALE)


def eps(name: str, value: Any) -> float:
    """The order of the moments minus one."""
    return between(name, value, LEAST_EPS, 1)


def one_of(name: str, value: Any, allowed: Iterable[str]) -> Any:
    """The value, which must be one of a few words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise refused(name, value, " or ".join([", ".join(map(repr, words[:-1])), repr(words[-1])]))
    return value


def truth(name: str, value: Any) -> bool:
    """The value as a bool."""
    if not isinstance(value, bool | np.bool_):
        raise refused(name, value, "True or False")
    return bool(value)


def refused(name: str, value: Any, allowed: str) -> InputError:
    """The error that says so."""
    return InputError(f"{name} = {shown(value)} is not allowed: {allowed}")


def rewards_in_range(largest: float, what: str) -> None:
    """Refuse rewards of a size for which the formulas are not made; NaN is refused too."""
    if not largest <= LARGEST_REWARD:
        raise InputError(
            f"{what} of size {largest:.3g} is not allowed: rewards are finite and at most "
            f"{LARGEST_REWARD:g} in size; rescale them"
        )


# --- arguments ------------------------------------------------------------------------------------------


class NamedArguments(ABCMeta):
    """Metaclass of public classes: a misspelt or missing argument is named in an ArgumentError."""

    if not TYPE_CHECKING:  # type checkers and editors read the constructor itself

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                _require_fitting(getattr(cls, "__init__", cls), (None, *args), kwargs, cls.__name__)
                raise

    @property
    def __signature__(cls) -> inspect.Signature:
        """The parameters of the constructor: what `inspect.signature`, `help` and editors show."""
        constructor = getattr(cls, "__init__")  # noqa: B009  # as an attribute it is unsound to mypy
        if constructor is object.__init__:
            return inspect.Signature()
        _, *parameters = inspect.signature(constructor).parameters.values()  # without self
        if dataclasses.is_dataclass(cls):  # the default itself, not "<factory>"
            made = {f.name: f.default_factory for f in dataclasses.fields(cls)}
            parameters = [
                one.replace(default=factory())
                if (factory := made.get(one.name, dataclasses.MISSING)) is not dataclasses.MISSING
                else one
                for one in parameters
            ]
        return inspect.Signature(parameters)


def named_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The same for functions that users call."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            _require_fitting(function, args, kwargs, function.__name__)
            raise

    return called


# What other libraries call an argument.
OTHER_WORDS = {
    "seed": "rng",
    "random_state": "rng",
    "rounds": "horizon",
    "n_rounds": "horizon",
    "steps": "horizon",
    "T": "horizon",
    "n_trials": "trials",
    "graph": "network",
    "n_jobs": "workers",
}


def _require_fitting(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> None:
    """Raise ArgumentError if a call does not fit the signature."""
    signature = inspect.signature(called)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        names = [each for each in signature.parameters if each != "self"]
        unknown = [key for key in kwargs if key not in names]
        if unknown:
            meant = OTHER_WORDS.get(unknown[0], "")
            meant = meant if meant in names else unknown[0]
            raise ArgumentError(f"{name}: {unknown[0]} is unknown{nearest(meant, names)}") from None
        raise ArgumentError(f"{name}: {error}; it takes {', '.join(names)}") from None
