"""Numbers and names as people write them, once for terminal, figures and pages."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

VERSION = "0.2.0"
"""The version of the package."""

MOST_SHOWN = 60


def shown(value: Any, most: int = MOST_SHOWN) -> str:
    """A value as it was given, cut where it is long, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def one_line(text: str) -> str:
    """The same words on one line."""
    return " ".join(text.split())


def plural(number: int, thing: str) -> str:
    """1 agent, 2,000 agents."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def nearest(given: str, allowed: Iterable[object]) -> str:
    """What is allowed instead: the nearest name first, if one is near; letters may be small or capital."""
    names = [str(name) for name in allowed]
    folded = {name.casefold(): name for name in reversed(names)}
    near = difflib.get_close_matches(given.casefold(), list(folded), 1, 0.5)
    hint = f": did you mean {folded[near[0]]!r}? Allowed" if near else ": allowed"
    return f"{hint} are {', '.join(names)}"


def cell(value: Any) -> str:
    """A value in a table: thousands apart, few digits, – for nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """A number with few digits: 12,345 or 3.142 or 1.20e+12."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e12:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def rounded(value: float) -> str:
    """To the whole number, thousands apart: 12,346."""
    return f"{value:,.0f}"


def band(low: float, high: float) -> str:
    """From one whole number to another: 1,234 – 2,345."""
    return f"{rounded(low)} – {rounded(high)}"


def setting(value: Any) -> str:
    """A setting as people write it: 0.05, 200, yes, word."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def share(value: float) -> str:
    """A relative difference: -40.2 %; nothing where it is not known."""
    return "–" if math.isnan(value) else f"{100 * value:+,.1f} %"


def shares(low: float, high: float) -> str:
    """An interval of relative differences; nothing where it is not known."""
    return "–" if math.isnan(low) and math.isnan(high) else f"{share(low)} to {share(high)}"


def times(value: float) -> str:
    """So many times as much: 3.6x."""
    return f"{value:.1f}x"


def tick(value: float, _: Any = None) -> str:
    """The label of a tick: 12,000; parts of one keep their digits."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def amount(value: float) -> str:
    """A large number in a few signs: 12.3 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"


def short(value: float) -> str:
    """A power of ten in two or three signs: 10k, 1M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def memory(size: float) -> str:
    """Bytes as people say them: 3.2 GB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours / 24:,.0f} days"
