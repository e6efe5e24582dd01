"""HT-HMUCB (Wang and Xu 2025): agents use what the hub in their reach knows.

The hub of an agent is the one with most agents within γ hops among itself and all within γ hops of it, the
smallest id on ties. Messages carry (mean, N) of every arm, as in KMP; for each arm the better informed of
the own (mean, n) and the newest row of the hub counts (the own on ties), and the index is

    mean* + ρ^(1/p) (c L_t / N*)^(eps/p)          median of means by default

On random graphs whose degrees have a power law of index α in (1, 2), one hop, drawn anew in every round,
the paper has group regret O(M^(1-1/α) ln T) up to lower orders, since hubs have M^(1/α) neighbours (its
abstract and summaries of it; the text was not available).

What differs from the printed text: the network is fixed for a trial, so every agent has one hub; hubs may
be γ hops away; agents that are no hub also use the samples that they hear; constants and schedule are those
of the library, not the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rumormill.errors import InputError
from rumormill.estimators import Estimator, MedianOfMeans
from rumormill.policies.base import Seat
from rumormill.policies.kmp import KMPAgent
from rumormill.policies.message_passing_policy import HopPart, MessagePassingPolicy
from rumormill.protocol import Message


@dataclass(frozen=True, kw_only=True)
class HTHMUCB(MessagePassingPolicy):
    """Every agent uses, arm by arm, its own estimate or that of its hub.

    Parameters
    ----------
    estimator : Estimator, default MedianOfMeans()
        Robust mean that the index is built on.
    gamma : int | "half-diameter", default 1
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> policy = rm.HTHMUCB(zeta=0.3)
    >>> [hub_of(policy.plan(rm.Network.star(4)).part(v), v) for v in range(4)]
    [0, 0, 0, 0]

    References
    ----------
    Wang and Xu (2025), "Multi-agent multi-armed bandit with fully heavy-tailed dynamics".
    """

    label: ClassVar[str] = "HT-HMUCB"
    takes_prior: ClassVar[bool] = False
    shares_rows: ClassVar[bool] = True
    live_refusal: ClassVar[str] = "a node does not know how many nodes its neighbours reach"
    estimator: Estimator = field(default_factory=MedianOfMeans)
    gamma: int | Literal["half-diameter"] = 1

    def agent(self, seat: Seat) -> HubAgent:
        return HubAgent(self, seat)


def hub_of(part: HopPart, agent: int) -> int:
    """The hub of an agent: of itself and all in reach, the one that reaches most agents."""
    if part.origins is None:
        raise InputError(f"agent {agent} does not know its reach: give policy.plan(network).part({agent})")
    reach = {**part.origins, agent: part.group}
    return min(reach, key=lambda v: (-reach[v], v))


class HubAgent(KMPAgent):
    """KMP for one agent to which only the rows of its hub count."""

    def __init__(self, policy: HTHMUCB, seat: Seat) -> None:
        super().__init__(policy, seat, policy.hops(seat))
        self.hub = hub_of(seat.require_part(HopPart), seat.agent)

    def hear(self, message: Message) -> None:
        if message.origin == self.hub:
            super().hear(message)
