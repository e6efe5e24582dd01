"""Nodes driven in lock step over a perfect network: the simulator's game, played by live nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rumormill.live.core.frames import HEAD
from rumormill.live.core.node import Node

Pay = Callable[[int, int, int], float]
"""(agent, round, arm) -> reward."""
NO_LIMIT = 1 << 60


class Lockstep:
    """Nodes 0..M-1, linked as `neighbours` says, that play rounds together."""

    def __init__(self, nodes: Sequence[Node], neighbours: Mapping[int, Sequence[int]], game: str) -> None:
        self._nodes, self._game = nodes, game
        self._edges = [(v, w) for v in neighbours for w in neighbours[v]]
        for v, node in enumerate(nodes):
            for w in neighbours[v]:
                node.link_up(w, w)  # the link of a node to w is called w
            node.start()
            self._commit(v)
        for _ in range(2):  # hello, then who has what
            self._deliver()

    def _commit(self, v: int) -> None:
        node = self._nodes[v]
        node.take_journal()
        node.committed(node.records)

    def _deliver(self) -> None:
        """Everything that is on the way arrives: all is taken out before anything is put in."""
        sent = [(v, w, self._nodes[v].frames(w, NO_LIMIT)) for v, w in self._edges]
        for v, w, frames in sent:
            for frame in frames:
                self._nodes[w].receive(v, frame[HEAD.size :])

    def play_round(self, t: int, pay: Pay) -> list[int]:
        """Everybody chooses and is paid, then everybody tells, then everybody hears."""
        arms = []
        for v, node in enumerate(self._nodes):
            token = node.choose(self._game, float(t), 60.0)
            assert token.t == t, (token, t)
            node.observe(self._game, token.t, token.arm, pay(v, t, token.arm))
            self._commit(v)
            arms.append(token.arm)
        for node in self._nodes:
            node.finish_round(t)
        self._deliver()
        for v, node in enumerate(self._nodes):
            assert node.round_over(t)
            self._commit(v)
        return arms
