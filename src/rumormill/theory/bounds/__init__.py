"""The upper bounds, one file per family of policies: its corrected and its printed form side by side.

All are sums over the arms that are not best. With n0 the number of samples from which an arm's radius is
below half its gap, an arm is pulled by a group that shares its samples at most n0 times, and then only
because of delay, or because an estimate fails. docs/theory.md has the argument, and where the printed forms,
letter by letter the paper's, go wrong.
"""

from rumormill.theory.bounds.family import Family
from rumormill.theory.bounds.table import BOUNDS, UNBOUNDED

__all__ = ["BOUNDS", "UNBOUNDED", "Family"]
