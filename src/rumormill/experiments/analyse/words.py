"""The words for swept parameters and their values, the same in terminal, figures and page."""

from __future__ import annotations

from typing import Any

from rumormill.text import band, setting

Values = dict[str, Any]
"""What every swept parameter is at one sweep point; empty when nothing is swept."""

ANY = "any"
"""A parameter on which something does not depend."""

AXIS_NAMES = {
    "gamma": "γ (hops)",
    "alpha": "tail index α",
    "zeta": "factor ζ",
    "eps": "ε",
    "M": "agents",
}
SYMBOLS = {"gamma": "γ", "alpha": "α", "zeta": "ζ", "eps": "ε", "rho": "ρ", "sigma": "σ", "tau": "τ"}
# Parameters with an end of their own: what is said instead of "falls" or "grows".
LIMITS = {("alpha", "low"): "1"}


def in_words(values: Values, between: str = ", ") -> str:
    """A sweep point as a title."""
    return between.join(f"{symbol(name)} = {setting(value)}" for name, value in values.items())


def band_of(row: dict[str, Any]) -> str:
    """The band of a row of a summary; one trial has none."""
    return "one trial: no band" if row["trials"] == 1 else band(row["low"], row["high"])


def in_one_line(constants: dict[str, Any]) -> str:
    """Constants as they were resolved: ζ = 1, ε = 0.765, u = 4.03, …"""
    return ", ".join(f"{symbol(name)} = {setting(value)}" for name, value in constants.items())


def axis_name(parameter: str) -> str:
    """What a swept parameter is called on an axis."""
    return AXIS_NAMES.get(parameter.removeprefix("policies."), parameter.replace("_", " "))


def symbol(parameter: str) -> str:
    """What a swept parameter is called in a sentence."""
    return SYMBOLS.get(parameter.removeprefix("policies."), parameter)


def is_number(value: Any) -> bool:
    """Whether a swept value has a place on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)
