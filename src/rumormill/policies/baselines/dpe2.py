"""DPE2 (Wang, Proutiere, Ariu, Jedra and Russo 2020), in the spirit of: only leaders explore.

A leader knows its favourite f, the arm of the largest mean, and the candidates {k ≠ f : index_k >= mean_f}.
If an arm must be pulled (index +inf) it pulls the first such arm; else, if there are candidates and
U(THOMPSON; v, t, 0) < 1/2, candidate ⌊|candidates| U(THOMPSON; v, t, 1)⌋; else f. A follower pulls the
favourite of its leader, as of the newest message of the leader that it heard. Messages carry (mean, N) of
every arm.

The paper's DPE2, where agents talk over a graph and only the leader explores by KL-UCB, has group regret Σ
ln T Δ / kl up to constants of the graph: that of one agent alone (from memory).

What differs from the printed text: one leader per agent within γ hops, as in Algorithm 2, instead of one
for all; robust means and radii; leaders use all samples that they hear; messages are sent in every round,
not only when the favourite changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from rumormill.policies.base import Seat, mixed
from rumormill.policies.centralized import CentralizedAgent, CentralizedMPUCB, LeaderPart
from rumormill.policies.message_passing_agent import OwnDraws, first_best, ranked
from rumormill.protocol import Message
from rumormill.protocol.message import Rows, plain_rows, rows_from_plain


@dataclass(frozen=True, kw_only=True)
class DPE2(CentralizedMPUCB):
    """Leaders explore, followers pull what their leader thinks best.

    Parameters
    ----------
    leaders : "independent" | "qubo" | "search" | "dominating" | Sequence[int], default "independent"
        The leaders: an "independent" set of large weight, found by annealing a "qubo" or by local
        "search"; a "dominating" set; or these agents.
    patience : float | None, default PATIENCE
        A follower decides as a leader while the newest message of its leader is older than the distance
        to it plus so many rounds; None: never.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.DPE2(gamma=1, leaders="dominating").plan(rm.Network.star(6)).leaders.tolist()
    [0]

    References
    ----------
    Wang, Proutiere, Ariu, Jedra and Russo (2020), "Optimal algorithms for multiplayer multi-armed bandits".
    """

    label: ClassVar[str] = "DPE2"
    takes_prior: ClassVar[bool] = False
    shares_rows: ClassVar[bool] = True

    def agent(self, seat: Seat) -> ExploringAgent:
        return ExploringAgent(self, seat, seat.require_part(LeaderPart))


def favourite(rows: Rows) -> int:
    """The arm of the largest defined mean with samples behind it; -1 if there is none."""
    known = [(mean, -arm) for arm, (mean, n) in enumerate(rows) if n > 0 and mean < math.inf]
    return -max(known)[1] if known else -1


class ExploringAgent(CentralizedAgent):
    """One agent: a leader, or a follower while it hears its leader."""

    def __init__(self, policy: DPE2, seat: Seat, part: LeaderPart) -> None:
        super().__init__(policy, seat, part)
        self.nothing: Rows = ((0.0, 0.0),) * seat.n_arms
        self.rows = self.nothing
        self.draws = OwnDraws(seat)

    def choose(self, t: int) -> int:
        self.rows = self.nothing
        return super().choose(t)

    def decide(self, t: int) -> int:
        return first_best(self.worth(t))

    def order(self, t: int, k: int) -> list[int]:
        return ranked(self.worth(t), self.allowed)

    def worth(self, t: int) -> Sequence[Any]:
        indices = self.samples.indices(t, self.samples.rows(t))
        self.rows = self.samples.latest
        chosen = self._chosen(t, indices, [mean for mean, _ in self.rows])
        return [(arm == chosen, index) for arm, index in enumerate(indices)]

    def _chosen(self, t: int, indices: Sequence[float], means: Sequence[float]) -> int:
        if self.heard is not None and t > self.distance and not self._left_alone(t, self.heard.round):
            told = favourite(self.heard.rows)
            if told in self.allowed:
                return told
        best = ranked(indices, self.allowed)[0]
        if indices[best] == math.inf:
            return best
        best = ranked(means, self.allowed)[0]
        others = [arm for arm in self.allowed if arm != best and indices[arm] >= means[best]]
        if others:
            self.drawn = partial(mixed, dict.fromkeys(others, 1.0 / len(others)) | {best: 0.0}, best, 0.5)
        if others and self.draws.uniform(t, 0) < 0.5:
            return others[int(self.draws.uniform(t, 1) * len(others))]
        return best

    def message(self, t: int, arm: int, reward: float) -> Message:
        return Message(self.agent, t, arm, reward, self.rows)

    def use(self, message: Message) -> None:
        self.take(message.origin, message.arm, message.reward)
        if self.validator.overclaims(message):
            self.relay.refused += 1
        else:
            self.hear(message)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "rows": plain_rows(self.rows)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.rows = rows_from_plain(state["rows"])
