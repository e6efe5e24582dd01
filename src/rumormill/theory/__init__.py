"""The theory beside the measurement: bounds, graph invariants, coverage of the radii."""

from rumormill.theory.bound import Assumption, Bound, Form
from rumormill.theory.coverage import CoverageRow, coverage
from rumormill.theory.divergence import Divergence, divergence
from rumormill.theory.invariants import Certified, Invariants, invariants
from rumormill.theory.lower import ArmTerm, LowerBound, lower_bound, two_point_coefficient
from rumormill.theory.upper import individual_bound, regret_bound
from rumormill.theory.verify import Verification, verify

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
