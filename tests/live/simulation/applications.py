"""Applications: they ask, answer late, twice or never, and talk nonsense."""

from __future__ import annotations

from live.making import GAME
from live.simulation.mesh import MOST_CLASSES, SIDE
from live.simulation.network import Network
from live.simulation.parts import N_ARMS, Broken, Sent
from rumormill.live.core.decisions import NotReady
from rumormill.live.core.game import Refused


def limits(t: int) -> tuple[list[int] | None, int, bool]:
    """Allowed arms, the number of arms of a decision, its propensity; of most there are none."""
    drawn = t % 5 == 0
    return (sorted({t % N_ARMS, t // 3 % N_ARMS}), 1 + t % 2, drawn) if t % 4 == 0 else (None, 1, drawn)


class Applications(Network):
    """One on every machine."""

    def choose(self, v: int) -> None:
        host, node = self.hosts[v], self.node(v)
        decisions = node.games[GAME].decisions
        if decisions.next_t % 3 == 1 and not self.members:
            self.play_class(v, decisions.next_t)
        try:
            ttl = self.rng.choice([0.5, 5.0, 60.0])
            token = node.choose(GAME, self.clock(v), ttl, *limits(decisions.next_t))
        except NotReady:
            if decisions.next_t <= decisions.reserved:
                raise Broken(f"I11: node {v} does not answer") from None
            return
        if (v, host.epoch, token.t) in self.tokens:
            raise Broken(f"I6: node {v} used decision {token.t} before")
        self.tokens.add((v, host.epoch, token.t))
        self._undo_token(v, host.epoch, token.t)
        reward = self.rng.gauss(token.arm, 1.0) * self.rng.choice([1, 1, 1, 30])
        weight = self.rng.choice([1, 1, 1, self.rng.randint(1, self.limits.batch)])
        host.sent[token.t] = Sent(token, reward, weight)

    def _undo_token(self, v: int, epoch: int, t: int) -> None:
        self.tokens.discard((v, epoch, t))  # its record notes it again
        self.write(v)

    def observe(self, v: int) -> None:
        host = self.hosts[v]
        if not host.sent:
            return
        recent = list(host.sent)[-12:]
        sent = host.sent[self.rng.choice(recent if self.rng.random() < 0.9 else list(host.sent))]
        self.tell(v, sent, sent.reward)

    def tell(self, v: int, sent: Sent, reward: float) -> None:
        node, token = self.node(v), sent.token
        try:
            answer = node.observe(GAME, token.t, token.arm, reward, sent.weight)
        except Refused as refused:
            if refused.kind == "old" and node.games[GAME].decisions.too_old(token.t):
                return
            if refused.kind == "conflict" and reward != sent.reward:
                return
            raise Broken(f"node {v} refuses {token}: {refused}") from None
        if reward != sent.reward:
            raise Broken(f"I6: node {v} took a second reward of {token}")
        if sent.answer is not None and sent.answer[0] != answer.seq and sent.acked:
            raise Broken(f"I6: node {v} answers {answer.seq} after {sent.answer[0]}")
        sent.answer = (answer.seq, answer.record)

    def play_class(self, v: int, t: int) -> None:
        """A decision of a request class, and its reward."""
        node, name = self.node(v), f"{GAME}/c{(t // 3 + v) % 4}"
        try:
            token = node.choose(name, self.clock(v), 60.0)
            node.observe(name, token.t, token.arm, float(token.arm))
        except NotReady:
            pass
        kept = [each for each in node.games if each.startswith(f"{GAME}/")]
        if len(kept) > MOST_CLASSES or name not in kept:
            raise Broken(f"node {v} keeps the classes {kept}")
        self.write(v)

    def play_side(self, v: int) -> None:
        """A decision of the second game, and mostly its reward."""
        node = self.node(v)
        if SIDE in node.games:
            try:
                token = node.choose(
                    SIDE, self.clock(v), 60.0, None, 1 + node.games[SIDE].decisions.next_t % 2
                )
            except NotReady:
                return
            if self.rng.random() < 0.8:
                node.observe(SIDE, token.t, token.arm, self.rng.gauss(token.arm, 1.0))
                for arm in token.others if token.t % 3 else ():  # hedged: both were tried
                    seq = node.observe(SIDE, token.t, arm, float(token.t)).seq
                    if node.observe(SIDE, token.t, arm, float(token.t)).seq != seq:
                        raise Broken(f"I6: node {v} took a second reward of {token}")
            self.write(v)

    def nonsense(self, v: int) -> None:
        """Requests that must be refused."""
        node, rng = self.node(v), self.rng
        next_t = node.games[GAME].decisions.next_t
        host = self.hosts[v]
        bad = [(next_t + 5, 0, 1.0), (0, 0, 1.0), (1, N_ARMS, 1.0), (1, 0, float("nan")), (1, 0, 1e200)]
        t, arm, reward = rng.choice(bad)
        try:
            node.observe(GAME, t, arm, reward)
        except Refused:
            pass
        else:
            raise Broken(f"node {v} took {(t, arm, reward)}")
        taken = [sent for sent in host.sent.values() if sent.answer is not None]
        if taken:
            sent = rng.choice(taken)
            self.tell(v, sent, sent.reward + 1.0)
