"""What a bound is: a number, the terms it is made of, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from rumormill.validate import one_of

Form = Literal["corrected", "printed"]
FORMS = ("corrected", "printed")


@dataclass(frozen=True)
class Assumption:
    """One sentence on what a bound rests on, and whether that is so; remarks always hold."""

    text: str
    holds: bool = True


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected pseudo-regret after `horizon` rounds.

    terms add up to value; ceiling is what regret can be at most (every pull the worst arm), so that a bound
    above it is vacuous: true, and empty.
    """

    value: float
    terms: Mapping[str, float]
    form: Form
    horizon: int
    ceiling: float
    assumptions: tuple[Assumption, ...]

    @classmethod
    def of(
        cls,
        terms: dict[str, float],
        *,
        form: Form,
        horizon: int,
        ceiling: float,
        assumptions: Sequence[Assumption],
    ) -> Bound:
        return cls(
            value=sum(terms.values()),
            terms=MappingProxyType(dict(terms)),
            form=form,
            horizon=horizon,
            ceiling=ceiling,
            assumptions=tuple(assumptions),
        )

    @property
    def covered(self) -> bool:
        """Whether every assumption holds; else the bound is a formula, not a promise."""
        return all(assumption.holds for assumption in self.assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: it exceeds the regret of pulling the worst arm always."""
        return self.value > self.ceiling

    @property
    def dominant(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)

    def describe(self) -> str:
        """The value and its terms in one line, with the honest remark if it is vacuous."""
        parts = ", ".join(f"{name} {value:.4g}" for name, value in self.terms.items())
        remark = f"; vacuous, regret cannot exceed {self.ceiling:.4g}" if self.vacuous else ""
        return f"{self.form} bound {self.value:.4g} after {self.horizon} rounds ({parts}){remark}"


def check_form(form: str) -> None:
    """Refuse a form that is neither of the two."""
    one_of("form", form, FORMS)
