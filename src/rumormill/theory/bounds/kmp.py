"""KMP-UCB: the groups are those around any set D that reaches everyone; the policy need not know it.

corrected  |D| (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps))
           + (M gamma + (M - |D|)(gamma - 1)+ + |D| + 2 M) gap + failures, once per listener
printed    2 c m^(1/eps) alpha gap^(-1/eps) ln T + alpha (gamma + 2 + M) gap
"""

from __future__ import annotations

from dataclasses import dataclass

from rumormill.theory.bound import Assumption
from rumormill.theory.bounds.family import Parts
from rumormill.theory.bounds.sampled import AS_PRINTED, SampledFamily
from rumormill.theory.bounds.sizes import dominating_size, independent_size


@dataclass(frozen=True, eq=False)
class KMP(SampledFamily):
    """Every agent uses the best informed estimate in reach."""

    def corrected(self) -> Parts:
        centres = dominating_size(self.network, self.gamma)
        terms = self.shared(centres)
        terms["delay"] += self.gap_sum * self.n_agents * self.gamma
        # A failed estimate misleads everyone who hears of it.
        terms["failures"] = self.failures(self.heard, self.heard)
        text = (
            f"{centres} agents reach everyone within gamma = {self.gamma} hops (found for this bound; the "
            "policy need not know them)."
        )
        return terms, self.rests_on(Assumption(text))

    def printed(self) -> Parts:
        size, source = independent_size(self.network, self.gamma)
        terms = {
            "learning": size * self.printed_learning(2.0, 1.0),
            "delay": self.gap_sum * size * self.gamma,
            "start": self.gap_sum * size * (2 + self.n_agents),
        }
        return terms, [AS_PRINTED, *self.rests_on(source)]
