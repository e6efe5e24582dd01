"""An imperfect world written down a second time: lost, late and false messages, agents that come and go.

As in `oracle.py`, nothing is taken from the package. Messages are really carried from agent to agent, one
at a time, and everything that may happen to one is asked of a keyed uniform when it happens. Estimates are
recomputed from stored lists in every round. `play` returns the actions (-1: not there, or a liar), `follow`
walks along given actions and says of each by how much it missed the best index.

Where the rules leave a choice, this is the one taken:
- an agent that was away passes on, when it is back, what it accepted before, if it is not too old by then;
- held samples whose time came while the agent was away are added at the end of its next round, oldest first;
- lost copies with `symmetric` share the key of both directions, as bundles do;
- a liar's action is -1 in every round; it lies from round 1 on, rows included, and only while it is there;
- corruption happens to messages of liars as to all others; of rows only the means change;
- where a row tells of more samples than its maker can have, no row of the message is believed; its sample is;
- an isolated agent makes the least number of hearers 0: with RCL-LF nobody then uses what it hears.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from helpers import oracle_reality as reality
from helpers.oracle import median_of_means
from helpers.oracle_reality import (
    Actions,
    Floats,
    Found,
    _averaged_index,
    _Choices,
    _tells,
    clip,
    clipping,
    level,
)

INF = math.inf

# ---- 0.1: keyed uniforms ---------------------------------------------------------------------------------

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
LOSS, DELAY, CORRUPT, DISCARD, CHURN = 1, 2, 3, 4, 5


def mix(z: int) -> int:
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 % WORD
    z ^= z >> 27
    z = z * 0x94D049BB133111EB % WORD
    z ^= z >> 31
    return z


def uniform(seed: int, purpose: int, *key: int) -> float:
    h = mix((seed + GOLDEN * purpose) % WORD)
    for x in key:
        h = mix(h ^ ((x * GOLDEN + 0x632BE59BD9B4E019) % WORD))
    return (h >> 11) * 2.0**-53


def channel_seed(rng: int, trial: int = 0) -> int:
    return int(np.random.SeedSequence(rng, spawn_key=(trial, 4)).generate_state(1, np.uint64)[0])


# ---- the world -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """What goes wrong. Everything at its default: nothing."""

    p: float = 1.0
    per: str = "link"  # "copy"
    symmetric: bool = False
    delay: int | tuple[str, float, int] = 0  # D, or ("geometric", q, D)
    absences: tuple[tuple[int, int, int], ...] = ()  # (agent, first, last)
    outages: tuple[tuple[int, int, int, int], ...] = ()  # (a, b, first, last)
    churn: tuple[float, float] | None = None  # mean lengths of up and down spells
    rate: float = 0.0  # of corruption
    shift: float = 0.0
    scale: float = 1.0
    at: str = "origin"  # "receiver"
    rows: bool = False
    liars: tuple[int, ...] = ()
    attack: str = "promote"  # "slander" | "flood"
    size: float | None = None
    seed: int = 0  # of the channel

    def u(self, purpose: int, *key: int) -> float:
        return uniform(self.seed, purpose, *key)

    def up(self, v: int, t: int) -> bool:
        if any(agent == v and first <= t <= last for agent, first, last in self.absences):
            return False
        if self.churn is None:
            return True
        end, spell = 0, 0
        while True:
            mean = self.churn[spell % 2]
            end += 1 + geometric(self.u(CHURN, v, spell), 1 / mean)
            if t <= end:
                return spell % 2 == 0
            spell += 1

    def link(self, a: int, b: int, s: int) -> bool:
        return not any({a, b} == {x, y} and first <= s <= last for x, y, first, last in self.outages)

    def lost(self, a: int, b: int, s: int, origin: int, made: int) -> bool:
        ends = (min(a, b), max(a, b)) if self.symmetric else (a, b)
        key = (*ends, s) if self.per == "link" else (*ends, origin, made)
        return self.u(LOSS, *key) >= self.p

    def late(self, a: int, b: int, s: int) -> int:
        u = self.u(DELAY, a, b, s)
        if isinstance(self.delay, int):
            return math.floor(u * (self.delay + 1))
        _, q, longest = self.delay
        return min(longest, geometric(u, q))

    def lie(self, means: Sequence[float]) -> "tuple[int, float, list[tuple[float, int]]]":
        """What a liar says: arm, reward, row per arm."""
        worst, best = int(np.argmin(means)), int(np.argmax(means))
        if self.attack == "slander":
            arm, reward = best, -5.0
        else:
            arm, reward = worst, 1e3 if self.attack == "flood" else max(means) + 1
        bad, good = (-5.0, 5.0) if self.attack == "slander" else (5.0, -5.0)
        row = [(bad if k == arm else good, 10**9) for k in range(len(means))]
        return arm, reward if self.size is None else self.size, row


def geometric(u: float, q: float) -> int:
    """⌊ln(1 - u) / ln(1 - q)⌋"""
    return 0 if q == 1 else math.floor(math.log(1 - u) / math.log(1 - q))


UNSURE = -2  # in place of an action, where rounding decides what is told


@dataclass(frozen=True)
class Message:
    origin: int
    made: int
    arm: int
    reward: float
    row: tuple[tuple[float, int], ...] = ()  # (mean, N) of every arm


# ---- the rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules(reality.Rules):
    """As before, with the policy "origins" (B1), the estimator "groups" (median of means), and:"""

    patience: float = 32
    hold: int = 1
    discard: bool = False
    guard: int = 0  # KMP: liars it must withstand
    f: int = 1
    spare: int = 1
    count: str = "all"


def find(x: list[float], L: float, r: Rules, budget: float, last: float) -> Found:
    """(mean, index, n) of one arm; +∞ without samples."""
    if x and r.estimator == "groups":
        mean = median_of_means(x, L, r)  # type: ignore[arg-type]
        return mean, mean + reality.radius(len(x), L, r, r.rho, None), len(x)
    return reality.estimate(x, L, r, budget, last)


def play(table: Floats, graph: nx.Graph, r: Rules, world: World, means: Sequence[float] = ()) -> Actions:
    """The actions (T, M) of agents 0..M-1 under rewards table[round, agent, arm]."""
    return _run(table, graph, r, world, means, None)[0]


def follow(
    table: Floats, graph: nx.Graph, r: Rules, world: World, means: Sequence[float], actions: Actions
) -> tuple[Actions, Floats]:
    """(wished actions, gaps) when history is as in `actions`."""
    return _run(table, graph, r, world, means, np.asarray(actions))


def _run(
    table: Floats,
    graph: nx.Graph,
    r: Rules,
    world: World,
    means: Sequence[float],
    forced: Actions | None,
) -> tuple[Actions, Floats]:
    table = np.asarray(table, float)
    choices = _Choices(len(table), len(graph), forced)
    if r.policy in ("consensus", "coop2", "gossip"):
        _average(table, graph, r, world, choices)
    else:
        _tell(table, graph, r, world, means, choices)
    return choices.wished, choices.gaps


# ---- agents that tell each other -------------------------------------------------------------------------


class Agent:
    """What one agent knows."""

    def __init__(self, v: int, n_arms: int) -> None:
        self.v = v
        self.samples: list[list[float]] = [[] for _ in range(n_arms)]  # by arm, in order of rank
        # By arm and origin, for B1: the samples with the rounds of their arrival.
        self.by_origin: list[dict[int, list[tuple[float, int]]]] = [{} for _ in range(n_arms)]
        self.known: set[tuple[int, int]] = set()  # (origin, round) of all messages accepted
        self.to_relay: list[Message] = []
        self.held: list[Message] = []
        self.newest: dict[int, Message] = {}  # by origin, of the newest origin round

    def add(self, t: int, origin: int, arm: int, reward: float) -> None:
        self.samples[arm].append(reward)
        self.by_origin[arm].setdefault(origin, []).append((reward, t))


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


def _tell(
    table: Floats, graph: nx.Graph, r: Rules, world: World, means: Sequence[float], choices: _Choices
) -> None:
    T, M, K = table.shape
    gamma = 0 if r.policy == "robust" else r.gamma
    dist = hops(graph)
    near = [sum(1 <= d <= gamma for d in row.values()) for row in dist]  # |N_γ(v)|
    mate = {v: set(group) for group in r.cover or () for v in group}
    leader = leaders_of(dist, r) if r.policy == "centralized" else []
    agents = [Agent(v, K) for v in range(M)]
    flying: list[tuple[int, int, Message]] = []  # (end of which round, receiver, message)

    for t in range(1, T + 1):
        L = level(t, M, r)
        there = [v for v in range(M) if world.up(v, t)]
        spoken: dict[int, Message | None] = {}  # what each says of this round
        for v in range(M):
            if v not in there or v in world.liars:
                _leave(choices, t, v)
        for v in there:
            if v in world.liars:
                arm, reward, row = world.lie(means)
                spoken[v] = Message(v, t, arm, reward, tuple(row) if r.policy == "kmp" else ())
                continue
            me = agents[v]
            if r.policy == "origins" or r.guard:
                found = [_by_groups(me, k, L, M, r) for k in range(K)]
            else:
                found = [find(x, L, r, T * (near[v] + 1) / K, level(T, M, r)) for x in me.samples]
            if t <= K:
                choices.make(t, v, t - 1)
            elif leader and leader[v] != v and _still_led(me, t, leader[v], dist[v][leader[v]], r):
                choices.make(t, v, me.newest[leader[v]].arm)
            elif r.guard:
                choices.make(t, v, _guarded_indices(me, found, L, r))
            elif r.policy == "kmp":
                choices.make(t, v, _shared_indices(me, found, L, r))
            else:
                choices.make(t, v, [index for _, index, _ in found])
            arm = int(choices.actions[t - 1, v])
            always = r.quiet is None or t <= K or bool(leader and leader[v] == v)
            tells = always or _tells(arm, found, r.quiet)  # type: ignore[arg-type]
            if not always and not choices.free and _two_favourites(found):
                # Whether this is told is a matter of rounding: from here on the game is another one.
                choices.wished[t - 1 :], choices.gaps[t - 1 :] = choices.actions[t - 1 :], 0.0
                choices.wished[t - 1, v] = UNSURE
                return
            row = [(mean, n) if t > K else (0.0, 0) for mean, _, n in found] if r.policy == "kmp" else []
            spoken[v] = Message(v, t, arm, float(table[t - 1, v, arm]), tuple(row)) if tells else None

        for a in there:  # everybody speaks, and passes on what it accepted
            bundle = [m for m in agents[a].to_relay if t - m.made < gamma]
            agents[a].to_relay = []
            own = spoken[a]
            if own is not None and gamma > 0:
                bundle.append(_corrupted(own, world, (a, t)) if world.at == "origin" else own)
            for b in graph.neighbors(a):
                if world.link(a, b, t):
                    end = t + world.late(a, b, t)
                    flying += [(end, b, m) for m in bundle if not world.lost(a, b, t, m.origin, m.made)]

        for v in there:
            me = agents[v]
            if v not in world.liars:
                arm = int(choices.actions[t - 1, v])
                me.add(t, v, arm, float(table[t - 1, v, arm]))
            for m in sorted((m for end, b, m in flying if (end, b) == (t, v)), key=_age):
                if m.origin == v or (m.origin, m.made) in me.known:
                    continue
                me.known.add((m.origin, m.made))
                me.to_relay.append(m)
                mine = _corrupted(m, world, (v, m.origin, m.made)) if world.at == "receiver" else m
                most = m.made * (near[m.origin] + 1)  # samples that its maker can have
                newer = m.origin not in me.newest or m.made > me.newest[m.origin].made
                if newer and all(n <= most for _, n in m.row):
                    me.newest[m.origin] = mine
                if r.cover is not None and m.origin not in mate[v]:
                    continue
                if r.discard and not world.u(DISCARD, v, m.origin, m.made) < min(near) / near[v]:
                    continue
                me.held.append(mine)
            for m in sorted((m for m in me.held if m.made + r.hold - 1 <= t), key=_age):
                me.add(t, m.origin, m.arm, m.reward)
                me.held.remove(m)
        flying = [(end, b, m) for end, b, m in flying if end > t]  # who was away has missed it


def _two_favourites(found: list[Found]) -> bool:
    """Whether the two best means are so close that rounding decides."""
    best = sorted(mean for mean, _, _ in found if mean < INF)[-2:]
    return len(best) == 2 and best[1] - best[0] < 1e-9 * max(abs(best[0]), abs(best[1]))


def _leave(choices: _Choices, t: int, v: int) -> None:
    """No choice in this round."""
    choices.wished[t - 1, v] = -1
    if choices.free:
        choices.actions[t - 1, v] = -1
    elif choices.actions[t - 1, v] != -1:
        choices.gaps[t - 1, v] = INF


def _age(m: Message) -> tuple[int, int]:
    return m.made, m.origin


def _corrupted(m: Message, world: World, key: tuple[int, ...]) -> Message:
    if not world.u(CORRUPT, *key) < world.rate:
        return m
    row = tuple((mean * world.scale + world.shift, n) for mean, n in m.row) if world.rows else m.row
    return Message(m.origin, m.made, m.arm, m.reward * world.scale + world.shift, row)


def _still_led(me: Agent, t: int, leader: int, distance: int, r: Rules) -> bool:
    return leader in me.newest and t - me.newest[leader].made <= distance + r.patience


def _shared_indices(me: Agent, found: list[Found], L: float, r: Rules) -> list[float]:
    """KMP: of each arm the mean with the most samples behind it, own first, then the smallest origin."""
    indices = []
    for k, (mean, index, n) in enumerate(found):
        best_mean, most = mean, n
        for w in sorted(me.newest):
            told_mean, told = me.newest[w].row[k]
            if told > most:
                best_mean, most = told_mean, told
        indices.append(index if most == n else best_mean + width(most, L, r))
    return indices


def width(n: float, L: float, r: Rules) -> float:
    """The radius behind n samples."""
    if r.policy == "origins" or r.guard:
        return reality.radius(n, L, r, r.u, None)  # type: ignore[arg-type]
    m, theory = {
        "clipped": (r.u, clipping(r.p)[1]),
        "trimmed": (r.u, 4 ** (r.p / r.eps)),
        "empirical": (r.rho, None),
        "groups": (r.rho, None),
    }[r.estimator]
    return reality.radius(n, L, r, m, theory)  # type: ignore[arg-type]


def _guarded_indices(me: Agent, found: list[Found], L: float, r: Rules) -> list[float]:
    """KMP among f liars: no more than the own samples say, nor than the middle one of more than 2f others."""
    indices = []
    for k, (_, index, _) in enumerate(found):
        rows = [m.row[k] for m in me.newest.values()]
        said = sorted(mean + width(n, L, r) for mean, n in rows if n > 0)
        indices.append(min(index, said[len(said) // 2]) if len(said) > 2 * r.guard else index)
    return indices


def _by_groups(me: Agent, k: int, L: float, M: int, r: Rules) -> Found:
    """B1: (estimate, index, count) of an arm, by the median over groups of origins."""
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
        return INF, INF, 0
    own = INF
    if me.v in sizes:
        own = sums[me.v] / sizes[me.v] + width(sizes[me.v], L, r)
    origins = sorted(sizes, key=lambda w: (-sizes[w], w))
    if len(origins) <= 2 * f:
        return (sums[me.v] / sizes[me.v], own, sizes[me.v]) if me.v in sizes else (INF, INF, 0)
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
    return middle, min(own, middle + width(n, L, r)), n  # type: ignore[return-value]


# ---- agents that average ---------------------------------------------------------------------------------


def _average(table: Floats, graph: nx.Graph, r: Rules, world: World, choices: _Choices) -> None:
    """A neighbour that is not heard leaves its weight with the own value: P stays symmetric."""
    T, M, K = table.shape
    P = reality.mixing(graph)
    eps_v = np.broadcast_to(np.array(r.eps_v, float), M)
    s, n = np.zeros((M, K)), np.zeros((M, K))
    for t in range(1, T + 1):
        there = [v for v in range(M) if world.up(v, t)]
        for v in range(M):
            if v not in there:
                _leave(choices, t, v)
            elif t <= K:
                choices.make(t, v, t - 1)
            else:
                choices.make(
                    t, v, [float(_averaged_index(s[v, k], n[v, k], t, M, eps_v[v], r)) for k in range(K)]
                )
        for v in there:
            k = choices.actions[t - 1, v]
            x = float(table[t - 1, v, k])
            if r.policy == "gossip":
                B = (clipping(r.p)[0] * r.u * (M * n[v, k] + 1) / (2 * math.log(max(t, 2)))) ** (1 / r.p)
                x = clip(x, -B, B)
            s[v, k] += x
            n[v, k] += 1
        now: NDArray[np.float64] = np.eye(M)
        for a, b in graph.edges:
            if a in there and b in there and world.link(a, b, t) and not world.lost(a, b, t, 0, 0):
                now[a, b] = now[b, a] = P[a, b]
                now[a, a] -= P[a, b]
                now[b, b] -= P[a, b]
        s, n = now @ s, now @ n
