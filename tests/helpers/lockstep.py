"""Nodes driven in lock step over a perfect network: the simulator's game, played by live nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from rumormill.live.core.frames import HEAD, Obs, decode
from rumormill.live.core.game import LiveGame
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import NodeConfig
from rumormill.live.core.records import Record

Pay = Callable[[int, int, int], float]
"""(agent, round, arm) -> reward."""
Limits = Callable[[int, int], tuple[list[int] | None, int]]
"""(agent, round) -> allowed arms (None: all) and how many are tried."""
NO_LIMIT = 1 << 60


class RoundNode(Node):
    """A node that accepts what was sent in a round when the round is over, oldest decision first."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self._finished: dict[int, int] = defaultdict(int)  # per link: the last round of the peer
        self._held: list[tuple[int, int, Obs]] = []  # (round, link, frame)

    def _alone(self, game: LiveGame) -> bool:
        return False

    def receive(self, link: int, body: bytes) -> None:
        plain = msgspec.msgpack.decode(body)
        if plain[0] == "round":  # the peer has sent everything of it
            self._finished[link] = plain[1]
        elif plain[0] == "obs":
            frame = decode(body)
            assert isinstance(frame, Obs)
            self._held.append((self._finished[link] + 1, link, frame))
        else:
            super().receive(link, body)

    def frames(self, link: int, limit: int) -> list[bytes]:
        found = list(self.links[link].control)
        self.links[link].control.clear()
        return found

    def finish_round(self, t: int) -> None:
        """Queue all frames of this round on every link, then its end."""
        end = msgspec.msgpack.encode(["round", t])
        for link in self.links.values():
            while (frame := self._exchange.next_frame(link)) is not None:
                link.control.append(frame)
            link.control.append(HEAD.pack(len(end)) + end)

    def round_over(self, t: int) -> bool:
        """Accept the items of round t, once every neighbour has finished it; False if one has not."""
        if any(self._finished[link] < t for link in self.links):
            return False
        arrived = [each for each in self._held if each[0] <= t]
        self._held = [each for each in self._held if each[0] > t]
        singles = []
        for _, name, frame in arrived:
            link = self.links[name]
            found = self._exchange._checked(link, frame)
            assert found is not None
            game, shared, stream = found
            last = frame.first + len(frame.items) - 1
            shared.has[stream.key] = max(shared.has.get(stream.key, 0), last)
            for i, item in enumerate(frame.items):
                head = frame.head if i == len(frame.items) - 1 else None
                order = (item[0], frame.origin, frame.first + i)
                singles.append((order, (link, game, stream, frame.hops, frame.first + i, [item], head)))
        for _, given in sorted(singles, key=lambda each: each[0]):
            self._exchange._take(*given)
        return True


class Lockstep:
    """Nodes 0..M-1, linked as `neighbours` says, that play rounds together."""

    def __init__(
        self, nodes: Sequence[RoundNode], neighbours: Mapping[int, Sequence[int]], game: str
    ) -> None:
        self._nodes, self._game = nodes, game
        self.journals: list[list[Record]] = [[] for _ in nodes]
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
        self.journals[v] += node.take_journal()
        node.committed(node.records)

    def _deliver(self) -> None:
        """Everything that is on the way arrives: all is taken out before anything is put in."""
        sent = [(v, w, self._nodes[v].frames(w, NO_LIMIT)) for v, w in self._edges]
        for v, w, frames in sent:
            for frame in frames:
                self._nodes[w].receive(v, frame[HEAD.size :])

    def play_round(self, t: int, pay: Pay, limits: Limits = lambda v, t: (None, 1)) -> list[list[int]]:
        """Everybody chooses and is paid for all arms, then everybody tells, then everybody hears."""
        arms = []
        for v, node in enumerate(self._nodes):
            token = node.choose(self._game, float(t), 60.0, *limits(v, t))
            assert token.t == t, (token, t)
            arms.append([token.arm, *token.others])
            for arm in arms[-1]:
                node.observe(self._game, token.t, arm, pay(v, t, arm))
            self._commit(v)
        for node in self._nodes:
            node.finish_round(t)
        self._deliver()
        for v, node in enumerate(self._nodes):
            assert node.round_over(t)
            self._commit(v)
        return arms
