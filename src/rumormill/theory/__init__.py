"""The theory beside the measurement: bounds, graph invariants, coverage of the radii."""

from rumormill.theory.coverage import CoverageRow, coverage
from rumormill.theory.family import Assumption, Bound, Form
from rumormill.theory.invariants import Certified, Invariants, invariants
from rumormill.theory.lower import (
    ArmTerm,
    Divergence,
    LowerBound,
    divergence,
    lower_bound,
    two_point_coefficient,
)
from rumormill.theory.upper import Verification, individual_bound, regret_bound, verify

__all__ = [
    "ArmTerm",
    "Assumption",
    "Bound",
    "Certified",
    "CoverageRow",
    "Divergence",
    "Form",
    "Invariants",
    "LowerBound",
    "Verification",
    "coverage",
    "divergence",
    "individual_bound",
    "invariants",
    "lower_bound",
    "regret_bound",
    "two_point_coefficient",
    "verify",
]
