"""Agents that send messages, each carried from agent to agent; estimates are recomputed every round.

On a perfect channel the sample that w makes in round t' reaches an agent d hops away at the end of round
t' + d - 1, if d <= gamma. What arrives together is ranked own sample first, then oldest first, then by the
number of its maker: what an agent knew when it chose ranks before what came of the choice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from helpers.oracle.estimators import LAZY, NOTHING, OWN_INDEX, clip, clipping, estimate, lazily, radius
from helpers.oracle.families import CHOICES, WITH_ROWS, favourite, hub
from helpers.oracle.rules import (
    CORRUPT,
    DISCARD,
    INF,
    Choices,
    Floats,
    Found,
    Late,
    Rules,
    World,
    level,
    span,
)

Sample = tuple[int, int]  # (round of origin, origin): sorted, the oldest comes first, then the smallest id


@dataclass(frozen=True)
class Message:
    origin: int
    made: int
    arm: int = 0
    reward: float = 0.0
    row: tuple[tuple[float, float], ...] = ()  # (mean or index, N) of every arm

    @property
    def age(self) -> Sample:
        return self.made, self.origin


class Post:
    """Carries messages over links: relayed once, in the round after arrival, while younger than gamma."""

    def __init__(self, graph: nx.Graph, gamma: int, world: World) -> None:
        self.graph, self.gamma, self.world = graph, gamma, world
        self.known: list[set[tuple[int, ...]]] = [set() for _ in graph]
        self.several = False  # whether an origin sends several arms of a round
        self.to_relay: list[list[Message]] = [[] for _ in graph]
        self.flying: dict[tuple[float, int], list[Message]] = {}  # by (end of which round, receiver)
        self.sent = 0

    def send(self, t: int, a: int, own: list[Message]) -> None:
        bundle = [m for m in self.to_relay[a] if t - m.made < self.gamma]
        self.to_relay[a] = []
        if self.gamma > 0:
            bundle += own
        for b in self.graph.neighbors(a):
            self.sent += len(bundle)
            if bundle and self.world.link(a, b, t):
                arriving = [m for m in bundle if not self.world.lost(a, b, t, m.origin, m.made)]
                self.flying.setdefault((t + self.world.late(a, b, t), b), []).extend(arriving)

    def accept(self, t: int, v: int) -> list[Message]:
        """News of this round, oldest first. What arrives while v is absent is never asked for."""
        news = []
        for m in sorted(self.flying.pop((t, v), []), key=lambda m: m.age):
            name = (*m.age, m.arm) if self.several else m.age
            if m.origin != v and name not in self.known[v]:
                self.known[v].add(name)
                news.append(m)
        self.to_relay[v] += news
        return news


def arrivals(graph: nx.Graph, gamma: int, T: int, late: Late | None = None) -> list[list[list[Sample]]]:
    """[t][v]: the samples of others that v gets at the end of round t, in order of rank."""
    post = Post(graph, gamma, World(bundles=late))
    found: list[list[list[Sample]]] = [[[] for _ in graph]]
    for t in range(1, T + 1):
        for a in graph:
            post.send(t, a, [Message(a, t)])
        found.append([[m.age for m in post.accept(t, v)] for v in graph])
    return found


def hops(graph: nx.Graph) -> list[dict[int, int]]:
    return [dict(nx.single_source_shortest_path_length(graph, v)) for v in range(len(graph))]


def leaders_of(dist: list[dict[int, int]], r: Rules) -> list[int]:
    """Of each agent: the leader within gamma of largest degree in the power; then nearest, then least id."""
    degree = [sum(1 <= d <= r.gamma for d in row.values()) for row in dist]
    chosen = []
    for v, row in enumerate(dist):
        options = [(-degree[w], d, w) for w, d in row.items() if 1 <= d <= r.gamma and w in r.leaders]
        chosen.append(v if v in r.leaders else min(options)[2])
    return chosen


class Agent:
    """What one agent knows."""

    def __init__(self, v: int, n_arms: int) -> None:
        self.v = v
        self.samples: list[list[float]] = [[] for _ in range(n_arms)]  # by arm, in order of rank
        # By arm and origin: the samples with the rounds of their arrival.
        self.by_origin: list[dict[int, list[tuple[float, int]]]] = [{} for _ in range(n_arms)]
        self.held: list[Message] = []
        self.newest: dict[int, Message] = {}  # by origin, of the newest origin round
        self.worked_out: list[Any] = [None] * n_arms  # of lazy estimators
        self.log: list[list[tuple[int, float]]] = [[] for _ in range(n_arms)]  # by arm, (number, sample)
        self.taken = 0
        self.heard_at: dict[int, int] = {}  # by origin, when its newest message came
        self.dropped: set[int] = set()  # arms whose prior was contradicted

    def add(self, t: int, origin: int, arm: int, reward: float) -> None:
        self.taken += 1
        self.log[arm].append((self.taken, reward))
        self.samples[arm].append(reward)
        self.by_origin[arm].setdefault(origin, []).append((reward, t))


class Talk:
    """The game of agents that send messages."""

    def __init__(
        self,
        table: Floats,
        graph: nx.Graph,
        r: Rules,
        world: World,
        means: Sequence[float],
        choices: Choices,
    ) -> None:
        self.T, self.M, self.K = table.shape
        self.table, self.r, self.world, self.means, self.choices = table, r, world, means, choices
        self.dist = hops(graph)
        gamma = 0 if r.policy == "robust" else r.gamma
        if world.perfect:  # more hops would reach no further agent
            gamma = min(gamma, max(max(row.values()) for row in self.dist))
        self.near = [sum(1 <= d <= gamma for d in row.values()) for row in self.dist]  # |N_γ(v)|
        self.mate = {v: set(group) for group in r.cover or () for v in group}
        self.leader = leaders_of(self.dist, r) if r.policy in ("centralized", "dpe2") else []
        self.agents = [Agent(v, self.K) for v in range(self.M)]
        self.post = Post(graph, gamma, world)
        self.post.several = r.k > 1
        self.may: list[int] = []  # the arms that the agent which decides may pull
        self.tried: dict[tuple[int, int], list[int]] = {}  # by round and agent

    def play(self) -> None:
        for t in range(1, self.T + 1):
            there = [v for v in range(self.M) if self.world.up(v, t)]
            for v in range(self.M):
                if v not in there or v in self.world.liars:
                    self.choices.none(t, v)
            own: dict[int, list[Message]] = {}
            for v in there:
                if v in self.world.liars:
                    arm, reward, row = self.world.lie(self.means)
                    own[v] = [Message(v, t, arm, reward, tuple(row) if self.r.policy in WITH_ROWS else ())]
                elif (made := self.decide(t, v)) is not None:
                    own[v] = made
                else:
                    return
            for v in there:
                messages = own[v]
                if self.world.at == "origin":
                    messages = [self.corrupted(message, v, t) for message in messages]
                self.post.send(t, v, messages)
            for v in there:
                self.learn(t, v)
        self.choices.messages = self.post.sent

    def decide(self, t: int, v: int) -> list[Message] | None:
        """The messages of this round, if some are sent; None where rounding decides whether."""
        me, r, K, choices = self.agents[v], self.r, self.K, self.choices
        may = self.may = r.may(t, v, K)
        L = level(t, self.M, r)
        begin = [k for k in [(t - 1 + i) % K for i in range(K)] if k in may] if t <= K else []
        first = begin[0] if begin else None
        informed = r.prior is not None and all(min(n0, r.cap) >= 1 for _, n0, _ in r.prior[v])
        # The first arm, from an own one on, that nothing is known of.
        if r.start == "shared" and (t <= K or (r.allowed is None and r.k == 1 and r.forget is None)):
            order = [k for k in [(t - 1 + v + i) % K for i in range(K)] if k in may]
            begin = sorted(order, key=lambda k: self.known(me, k, L))
            first = None if self.known(me, begin[0], L) else begin[0]
        if informed:
            first = None
        follows = first is None and bool(self.leader) and self.follows(me, t)
        # Lazy estimators depend on when they are asked.
        asked = (t <= K and r.start == "shared") or (first is None and not (follows and r.quiet is None))
        asked = asked or (first is None and r.policy == "dpe2")
        found = self.estimates(me, L) if asked or r.estimator not in LAZY else [NOTHING] * K
        row = [(0.0, 0.0)] * K
        if first is not None:
            arm, ranking = choices.make(t, v, first), begin
        elif follows:
            row = [(mean, n) for mean, _, n in found]
            told = me.newest[self.leader[v]]
            copied = told.arm if r.policy == "centralized" else favourite(told.row)
            own = indices(me, found, L, r)
            if copied not in may and r.policy == "dpe2":
                own = [float(k == CHOICES["dpe2"](self, me, t, found)) for k in range(K)]
            wanted = copied if copied in may else [own[k] if k in may else -INF for k in range(K)]
            arm, ranking = choices.make(t, v, wanted), sorted(may, key=lambda k: -own[k])
        else:
            by_index = r.estimator in OWN_INDEX and not r.guard and r.policy not in ("dpe2", "thompson-kmp")
            row = [(index if by_index else mean, n) for mean, index, n in found]
            rule = CHOICES.get(r.policy)
            own = indices(me, found, L, r) if r.prior is None else with_prior(me, found, L, r)
            best = rule(self, me, t, found) if rule else own
            if isinstance(best, int):
                arm, ranking = choices.make(t, v, best), sorted(may, key=lambda k: -own[k])
            else:
                arm = choices.make(t, v, [best[k] if k in may else -INF for k in range(K)])
                ranking = sorted(may, key=lambda k: -best[k])
        self.tried[t, v] = [arm, *(k for k in ranking if k != arm)][: r.k]
        always = r.quiet is None or t <= K or bool(self.leader and self.leader[v] == v)
        if not always and not choices.free and two_favourites(found, self.world.perfect):
            choices.stop(t, v)
            return None
        sent = [k for k in self.tried[t, v] if always or tells(k, found, r.quiet or 0.0)]
        rows = tuple(row) if r.policy in WITH_ROWS else ()
        return [Message(v, t, k, float(self.table[t - 1, v, k]), rows) for k in sent]

    def known(self, me: Agent, k: int, L: float) -> bool:
        """Whether there is an estimate: too few origins make none."""
        if self.r.policy == "origin-median":
            return by_origins(me, k, L, self.M, self.r)[2] > 0
        if self.r.forget is not None:
            return remembered(me.log[k], me.taken, L, self.r, self.M)[2] > 0
        return bool(me.samples[k])

    def follows(self, me: Agent, t: int) -> bool:
        leader = self.leader[me.v]
        distance = self.dist[me.v][leader]
        if leader == me.v or t <= distance or leader not in me.newest:
            return False
        if self.r.policy == "dpe2" and favourite(me.newest[leader].row) < 0:
            return False
        return t - me.newest[leader].made <= distance + self.r.patience

    def estimates(self, me: Agent, L: float) -> list[Found]:
        r, budget = self.r, self.T * (self.near[me.v] + 1) / self.K
        if r.policy == "origin-median" or r.guard:
            return [by_origins(me, k, L, self.M, r) for k in range(self.K)]
        if r.forget is not None:
            last = level(self.T, self.M, r)
            return [remembered(log, me.taken, L, r, self.M, budget, last) for log in me.log]
        if r.estimator not in LAZY:
            return [estimate(x, L, r, budget, level(self.T, self.M, r)) for x in me.samples]
        found = [lazily(x, L, r, budget, me.worked_out[k]) for k, x in enumerate(me.samples)]
        me.worked_out = [at for _, at in found]
        return [each for each, _ in found]

    def corrupted(self, m: Message, *key: int) -> Message:
        world = self.world
        if not (world.rate > 0 and world.u(CORRUPT, *key) < world.rate):
            return m
        row = tuple((mean * world.scale + world.shift, n) for mean, n in m.row) if world.rows else m.row
        return replace(m, reward=m.reward * world.scale + world.shift, row=row)

    def learn(self, t: int, v: int) -> None:
        """The own sample, then what arrives."""
        me, r, world = self.agents[v], self.r, self.world
        for arm in self.tried.get((t, v), []) if v not in world.liars else []:
            me.add(t, v, arm, float(self.table[t - 1, v, arm]))
        for m in self.post.accept(t, v):
            mine = self.corrupted(m, v, m.origin, m.made) if world.at == "receiver" else m
            most = m.made * (self.near[m.origin] + 1)  # samples that its maker can have
            newer = m.origin not in me.newest or m.made > me.newest[m.origin].made
            if r.policy == "ht-hmucb" and m.origin != hub(self, v):
                newer = False  # rows of others do not count
            if newer and all(n <= most for _, n in m.row):
                me.newest[m.origin] = mine
            if r.cover is not None and m.origin not in self.mate[v]:
                continue
            kept = min(self.near) / self.near[v] if r.discard else 1.0
            if r.discard and not world.u(DISCARD, v, m.origin, m.made) < kept:
                continue
            me.held.append(mine)
        for m in sorted((m for m in me.held if m.made + r.hold - 1 <= t), key=lambda m: m.age):
            me.add(t, m.origin, m.arm, m.reward)
            if me.newest.get(m.origin) is m:
                me.heard_at[m.origin] = me.taken
            me.held.remove(m)


def remembered(log: list[tuple[int, float]], taken: int, L: float, r: Rules, M: int, *more: float) -> Found:
    """(mean, index, n) of the samples of an arm that are not forgotten."""
    assert r.forget is not None
    kind, value = r.forget
    if kind == "window":
        half = math.ceil(value / 2)
        begin = (max(taken - 1, 0) // half - 1) * half
        return estimate([x for number, x in log if number > begin], L, r, *more)
    if kind == "discount":
        n = total = 0.0
        last, tau = 0, clipping(r.p)[0]
        for number, x in log:
            n, total, last = n * value ** (number - last), total * value ** (number - last), number
            B = INF if r.estimator == "empirical" else (tau * r.u * (n + 1) / level(10**9, M, r)) ** (1 / r.p)
            n, total = n + 1, total + clip(x, -B, B)
        now = n * value ** (taken - last)
        return (total / n, total / n + radius(now, L, r), now) if now > 0.5 else NOTHING
    kept: list[float] = []
    up = down = m = s = c = 0.0
    for _, x in log:
        kept.append(x)
        if len(kept) == 64:
            m = sorted(kept)[32]
            s = 1.4826 * sorted(abs(y - m) for y in kept)[32]
            c = sum(cusum_step(y, m, s) for y in kept) / 64
        elif len(kept) > 64:
            z = cusum_step(x, m, s) - c
            up, down = max(0.0, up + z - 0.5), max(0.0, down - z - 0.5)
            if max(up, down) > 40:
                kept, up, down = [], 0.0, 0.0
    return estimate(kept, L, r, *more)


def cusum_step(x: float, m: float, s: float) -> float:
    return clip((x - m) / s, -2, 2) if s else 2.0 * ((x > m) - (x < m))


def two_favourites(found: list[Found], perfect: bool) -> bool:
    """Whether the two best means are so close that rounding decides; equal ones do so with faults only."""
    best = sorted(mean for mean, _, _ in found if mean < INF)[-2:]
    if len(best) < 2 or (perfect and best[0] == best[1]):
        return False
    return best[1] - best[0] < 1e-9 * max(abs(best[0]), abs(best[1]))


def tells(a: int, found: list[Found], theta: float) -> bool:
    """Whether a quiet agent sends its sample of arm a."""
    defined = [k for k, (mean, _, _) in enumerate(found) if mean < INF]
    if not defined:
        return True
    favourite = max(defined, key=lambda k: (found[k][0], -k))
    return a != favourite or found[a][2] <= theta * max(n for k, (_, _, n) in enumerate(found) if k != a)


def width(n: float, L: float, r: Rules) -> float:
    """The radius behind n samples of others."""
    return radius(n, L, r, r.u) if r.policy == "origin-median" or r.guard else radius(n, L, r)


def indices(me: Agent, found: list[Found], L: float, r: Rules) -> list[float]:
    if r.guard:
        return guarded_indices(me, found, L, r)
    return shared_indices(me, found, L, r) if r.policy in WITH_ROWS else [index for _, index, _ in found]


def shared_indices(me: Agent, found: list[Found], L: float, r: Rules) -> list[float]:
    """KMP: of each arm the row with the most samples behind it, own first, then the smallest origin."""
    best = []
    for k, (_, index, n) in enumerate(found):
        most = n
        for w in sorted(me.newest):
            value, count = me.newest[w].row[k]
            if count > most and me.taken - me.heard_at[w] < span(r):
                index, most = value if r.estimator in OWN_INDEX else value + width(count, L, r), count
        best.append(index)
    return best


def with_prior(me: Agent, found: list[Found], L: float, r: Rules) -> list[float]:
    """The indices of an agent that was born with an estimate of every arm."""
    assert r.prior is not None
    own = r.estimator in OWN_INDEX
    taken = sum(len(x) for x in me.samples)
    result = []
    for k, (mean, index, n) in enumerate(found):
        m0, n0, spread = r.prior[me.v][k]
        w = math.floor(min(n0, r.cap))
        held = mean  # of the samples that the agent has itself
        reach = (spread * math.sqrt(2 * L / w) if own else width(w, L, r)) if w else INF
        doubt = 1.0 if own or r.zeta is None or r.zeta > 1 else 1 / r.zeta
        if n and mean < INF and abs(mean - m0) > doubt * (index - mean + reach):
            me.dropped.add(k)
        for origin in sorted(me.newest) if r.policy == "kmp" else ():
            value, count = me.newest[origin].row[k]
            old = r.forget is not None and me.taken - me.heard_at[origin] >= span(r)
            if count > n and not old:
                mean, n = (mean if own else value), count
                index = value if own or value == INF else value + width(count, L, r)
        if not w or k in me.dropped:
            result.append(index)
            continue
        if own:
            both = m0 + reach
            if held < INF and index < INF:
                a, b = 1 / (index - held) ** 2, 1 / reach**2
                both = (a * held + b * m0) / (a + b) + 1 / math.sqrt(a + b)
        elif n and mean < INF:
            both = (w * m0 + n * mean) / (w + n) + width(w + n, L, r)
        else:
            both = m0 + reach
        middle = held if own else mean
        if index == INF:
            result.append(INF if n < taken // r.probe else both)
        else:
            result.append(max(both, (middle + index) / 2) if middle < INF else index)
    return result


def guarded_indices(me: Agent, found: list[Found], L: float, r: Rules) -> list[float]:
    """KMP among f adversaries: no more than the own index, nor the middle one of more than 2f others."""
    best = []
    for k, (_, index, _) in enumerate(found):
        rows = [m.row[k] for m in me.newest.values()]
        said = sorted(mean + width(n, L, r) for mean, n in rows if n > 0)
        best.append(min(index, said[len(said) // 2]) if len(said) > 2 * r.guard else index)
    return best


def by_origins(me: Agent, k: int, L: float, M: int, r: Rules) -> Found:
    """(estimate, index, count) of an arm, by the median over groups of origins."""
    f, spare = (r.guard, 1) if r.guard else (r.f, r.spare)
    sums: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for w, samples in me.by_origin[k].items():
        total = 0.0
        for i, (x, t) in enumerate(samples, 1):
            B = r.u ** (1 / r.p) * max(1.0, i / level(max(t, 2), M, r)) ** (1 / r.p)
            total += clip(x, -B, B)
        sums[w], sizes[w] = total, len(samples)
    if not sizes:
        return NOTHING
    own = INF
    if me.v in sizes:
        own = sums[me.v] / sizes[me.v] + width(sizes[me.v], L, r)
    origins = sorted(sizes, key=lambda w: (-sizes[w], w))
    if len(origins) <= 2 * f:
        return (sums[me.v] / sizes[me.v], own, sizes[me.v]) if me.v in sizes else NOTHING
    odd = len(origins) if len(origins) % 2 else len(origins) - 1
    G = min(2 * f + 1 + 2 * spare, odd)
    groups: list[list[int]] = [[] for _ in range(G)]
    for q, w in enumerate(origins):
        groups[q % G if q // G % 2 == 0 else G - 1 - q % G].append(w)
    counts = [sum(sizes[w] for w in group) for group in groups]
    means = [sum(sums[w] for w in group) / c for group, c in zip(groups, counts, strict=True)]
    n: float = sum(counts)
    if r.guard or r.count == "cautious":  # so many groups of the least size that can decide the median
        n = min(n, G * sorted(counts)[G // 2 - f])
    elif r.count == "trimmed":
        n = G / (G - f) * sum(sorted(counts)[: G - f])
    middle = sorted(means)[G // 2]
    return middle, min(own, middle + width(n, L, r)), n
