"""Robust-UCB: every agent is a group of its own, M times the bound of one agent.

The paper has no bound of its own for it; printed is that of Algorithm 1 at gamma = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from rumormill.theory.bound import Assumption
from rumormill.theory.bounds.decentralized import printed_by_cover
from rumormill.theory.bounds.family import Parts
from rumormill.theory.bounds.sampled import SampledFamily


@dataclass(frozen=True, eq=False)
class Alone(SampledFamily):
    """Agents that never talk."""

    def covers_world(self) -> bool:
        return True  # whoever never listens does not mind what is said

    def corrected(self) -> Parts:
        terms = {**self.shared(self.n_agents), "failures": self.failures(self.heard)}
        return terms, self.rests_on(Assumption("Every agent learns alone: M times one agent."))

    def printed(self) -> Parts:
        text = "The paper has no bound of its own for agents that never talk: Algorithm 1 at gamma = 0."
        return printed_by_cover(self, self.n_agents, Assumption(text))
