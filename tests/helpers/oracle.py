"""The rules written down a second time, as plainly as possible, from the definitions alone.

Nothing here is taken from the package: no online estimator, no message, no flooding. An agent at distance d
hears the sample of round t' at the end of round t' + d - 1 (a slow or lossy channel is told by `late`); what
arrives together is ranked own sample first, then oldest first, then by the number of its maker; estimates are
recomputed from stored lists.
`play` returns the actions these rules lead to. `follow` walks along given actions instead, and says for
each of them by how much it missed the best index: a difference that is only a floating-point tie shows as
a tiny gap, every other one as a large gap.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

INF = math.inf

Actions = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """One policy with all its parameters. cover: groups of agents, or None for no filter."""

    policy: str  # "decentralized" | "centralized" | "kmp" | "consensus" | "robust"
    eps: float = 1.0
    u: float = 1.0
    rho: float = 1.0
    gamma: int = 0
    estimator: str = "trimmed"  # "empirical" | "median" | "catoni"
    c: float | str = 1.0  # a number or "theory"
    zeta: float | None = None  # a plain factor on the radius, instead of c
    schedule: str = "paper"  # "anytime"
    cover: Sequence[Sequence[int]] | None = None
    leaders: Sequence[int] = ()
    eps_v: float | Sequence[float] | None = None  # of consensus: per agent or one number; None: by formula
    kappa: float | None = None

    @property
    def p(self) -> float:
        return 1 + self.eps

    @property
    def m(self) -> float:
        return self.u if self.estimator == "trimmed" else self.rho


# ---- estimators, as definitions over a list in order of arrival ------------------------------------------


def c_p(eps: float) -> float:
    p = 1 + eps
    return (eps / p) ** (p / 2) * ((1 - eps) / eps) ** (1 - p / 2) if eps < 1 else 0.5


def trimmed(x: list[float], L: float, r: Rules) -> float:
    return sum(v for i, v in enumerate(x, 1) if abs(v) ** r.p * L <= r.u * i) / len(x)


def empirical(x: list[float], L: float, r: Rules) -> float:
    return sum(x) / len(x)


def median_of_means(x: list[float], L: float, r: Rules) -> float:
    k = max(1, math.floor(min(1 + 8 * L, len(x) / 2)))
    N = len(x) // k
    return float(np.median([sum(x[g * N : (g + 1) * N]) / N for g in range(k)]))


def catoni(samples: list[float], L: float, r: Rules) -> float:
    n, p, x = len(samples), r.p, np.array(samples)
    if r.eps == 1:
        if n <= 2 * L:
            return INF
        a = math.sqrt(2 * L * (n - 2 * L) / r.rho) / n
    else:
        a = (L / (n * r.eps * 2**r.eps * c_p(r.eps) * r.rho)) ** (1 / p)

    def total(theta: float) -> float:
        y = np.abs(a * (x - theta))
        return float(np.sum(np.sign(x - theta) * np.log1p(y + c_p(r.eps) * y**p)))

    low, high = float(x.min()), float(x.max())
    return float(brentq(total, low, high, xtol=1e-300, rtol=1e-15)) if low < high else low


ESTIMATORS: dict[str, Callable[[list[float], float, Rules], float]] = {
    "trimmed": trimmed,
    "empirical": empirical,
    "median": median_of_means,
    "catoni": catoni,
}


# ---- index -----------------------------------------------------------------------------------------------


def level(t: int, M: int, r: Rules) -> float:
    return 2 * math.log(t) if r.schedule == "paper" else math.log(M) + 3 * math.log(t)


def radius(n: int, L: float, r: Rules) -> float:
    """m^(1/p) (c L / n)^(eps/p); infinite where the estimator or its lemma does not reach."""
    eps, p = r.eps, r.p
    root: float = r.m ** (1 / p)
    rate: float = (L / n) ** (eps / p)
    if r.estimator == "catoni" and eps == 1 and n <= 2 * L:
        return INF
    if r.zeta is not None:
        return r.zeta * root * rate
    if r.c != "theory":
        return root * float((float(r.c) * L / n) ** (eps / p))
    if r.estimator == "trimmed":
        return 4 * root * rate
    if r.estimator == "median":
        if n < 16 * L + 2:
            return INF
        return root * float((16 * 12 ** (1 / eps) * (L + 1 / 8) / n) ** (eps / p))
    if r.estimator == "catoni" and eps == 1:
        return INF if n < 4 * L else root * float((4 * L / n) ** (eps / p))
    if r.estimator == "catoni":
        factor: float = 1.1 * (2**eps * c_p(eps)) ** (1 / p) * p * eps ** (-eps / p)
        rad = factor * root * rate
        return rad if rad <= float((0.1 * p * r.rho) ** (1 / p)) else INF
    raise ValueError("no theory constant")


def index(mean: float, n: int, L: float, r: Rules) -> float:
    """Of one arm: an estimate from n samples, plus its radius."""
    rad = radius(n, L, r)
    return INF if rad == INF else mean + rad


def consensus_index(s: float, n: float, t: int, M: int, eps_v: float, r: Rules) -> float:
    n_eff = M * n**2 / (n + eps_v)
    return float(s / n + (6 * r.rho * t ** (2 / 3) / n_eff**r.eps) ** (1 / r.p))


def consensus_parts(graph: nx.Graph, r: Rules) -> tuple[Floats, Floats]:
    """P = I - kappa/d_max L(G), and the eps_v of every agent from the eigenvectors of P."""
    M = len(graph)
    A = nx.to_numpy_array(graph, nodelist=range(M), weight=None)
    d_max = A.sum(0).max()
    kappa = d_max / (d_max + 1) if r.kappa is None else r.kappa
    P = np.eye(M) - (kappa / d_max * (np.diag(A.sum(0)) - A) if d_max else 0)
    if r.eps_v is not None:
        return P, np.broadcast_to(np.array(r.eps_v, float), M)
    lam, U = np.linalg.eigh(P)
    lam, U = lam[::-1], U[:, ::-1]  # the eigenvalue 1 first
    eps_v = np.zeros(M)
    for p in range(M):
        for j in range(1, M):
            b, ll = U[:, p] * U[:, j], lam[p] * lam[j]
            plus, minus = b[b > 0].sum(), b[b < 0].sum()
            for v in range(M):
                weight = (plus if b[v] >= 0 else -minus) if ll >= 0 else max(plus, -minus)
                a = weight * abs(b[v])
                eps_v[v] += M * abs(ll) / (1 - abs(ll)) * a
    return P, eps_v


# ---- the game --------------------------------------------------------------------------------------------


Late = Callable[[int, int, int], float]
"""late(a, b, s): how many rounds longer a bundle takes that a sends to b in round s; infinite if lost."""


def play(table: ArrayLike, graph: nx.Graph, r: Rules, late: Late | None = None) -> Actions:
    """The actions (T, M) of agents 0..M-1 under rewards table[round, agent, arm]."""
    return _run(np.asarray(table, float), graph, r, None, late)[0]


def follow(
    table: ArrayLike, graph: nx.Graph, r: Rules, actions: ArrayLike, late: Late | None = None
) -> tuple[Actions, Floats]:
    """(wished actions, gaps) when history is as in `actions`: the gap of a choice is how far its index
    lies below the best one, relative to the larger of the two; infinite where there was no choice."""
    return _run(np.asarray(table, float), graph, r, np.asarray(actions), late)


Sample = tuple[int, int]  # (round of origin, origin): sorted, the oldest comes first, then the smallest id


def arrivals(graph: nx.Graph, gamma: int, T: int, late: Late | None = None) -> list[list[list[Sample]]]:
    """[t][v]: the samples of others that v gets at the end of round t, in order of rank.

    Oldest first: what an agent knew when it chose ranks before what came of the choice. On a perfect channel
    the sample that w made in round t' comes at the end of round t' + d - 1, if d <= gamma.
    """
    come: list[list[list[Sample]]] = [[[] for _ in graph] for _ in range(T + 1)]
    for w in graph:
        hops = nx.single_source_shortest_path_length(graph, w, cutoff=gamma)
        for made in range(1, T + 1):
            if late is None:
                ends = {v: made + d - 1 for v, d in hops.items() if v != w}
            else:
                ends = flood(graph, gamma, T, w, made, late)
            for v, end in ends.items():
                if end <= T:
                    come[int(end)][v].append((made, w))
    return [[sorted(samples) for samples in row] for row in come]


def flood(graph: nx.Graph, gamma: int, T: int, w: int, made: int, late: Late) -> dict[int, float]:
    """When the message that w made in a round first reaches the others: passed on in the round after, once,
    and in round s only if s - made < gamma."""
    first: dict[int, float] = {w: made - 1}
    for s in range(made, min(T, made + gamma - 1) + 1):
        for a in [a for a, end in first.items() if end == s - 1]:
            for b in graph.neighbors(a):
                first[b] = min(first.get(b, INF), s + late(a, b, s))
    return {v: end for v, end in first.items() if v != w}


def leaders_of(dist: list[dict[int, int]], r: Rules) -> list[int]:
    """Of each agent: the leader within gamma of largest degree in the power; then nearest, then least id."""
    degree = [sum(1 <= d <= r.gamma for d in row.values()) for row in dist]
    chosen = []
    for v, row in enumerate(dist):
        options = [(-degree[w], d, w) for w, d in row.items() if 1 <= d <= r.gamma and w in r.leaders]
        chosen.append(v if v in r.leaders else min(options)[2])
    return chosen


def _run(
    table: Floats, graph: nx.Graph, r: Rules, forced: Actions | None, late: Late | None
) -> tuple[Actions, Floats]:
    T, M, K = table.shape
    wished, gaps = np.zeros((T, M), np.int64), np.zeros((T, M))
    actions = np.zeros((T, M), np.int64) if forced is None else forced
    gamma = 0 if r.policy in ("robust", "consensus") else r.gamma
    dist = [dict(nx.single_source_shortest_path_length(graph, v)) for v in range(M)]
    come = arrivals(graph, gamma, T, late)
    newest = np.zeros((M, M), int)  # [v, w]: of which round the newest message is that v has of w
    mate = {v: set(group) for group in r.cover or () for v in group}
    samples: list[list[list[float]]] = [[[] for _ in range(K)] for _ in range(M)]
    sent: dict[tuple[int, int], list[tuple[float, int]]] = {}  # (agent, round) -> (mean, N) per arm
    leader = leaders_of(dist, r) if r.policy == "centralized" else list(range(M))
    s, n = np.zeros((M, K)), np.zeros((M, K))
    P, eps_v = consensus_parts(graph, r) if r.policy == "consensus" else (np.eye(M), np.zeros(M))

    for t in range(1, T + 1):
        L = level(t, M, r)
        for v in range(M):
            delay = dist[v][leader[v]]
            best: list[float] | None = None
            if t <= K:
                wished[t - 1, v] = t - 1
            elif delay and t > delay and newest[v, leader[v]]:  # t - delay on a perfect channel
                wished[t - 1, v] = actions[newest[v, leader[v]] - 1, leader[v]]
            elif r.policy == "consensus":
                best = [consensus_index(s[v, k], n[v, k], t, M, eps_v[v], r) for k in range(K)]
            else:
                own = [(ESTIMATORS[r.estimator](x, L, r), len(x)) for x in samples[v]]
                used = list(own)
                if r.policy == "kmp":
                    sent[v, t] = own
                    for w in range(M):  # in the order of ids: of equal counts the smallest origin wins
                        rows = sent.get((w, newest[v, w]), own) if w != v else own
                        used = [rows[k] if rows[k][1] > used[k][1] else used[k] for k in range(K)]
                best = [index(mean, N, L, r) for mean, N in used]
            if best is not None:
                wished[t - 1, v] = best.index(max(best))
            if forced is None:
                actions[t - 1, v] = wished[t - 1, v]
            elif actions[t - 1, v] != wished[t - 1, v]:
                gaps[t - 1, v] = INF if best is None else _gap(max(best), best[actions[t - 1, v]])
        for v in range(M):
            for made, w in [(t, v), *come[t][v]]:
                newest[v, w] = max(newest[v, w], made)
                if w == v or r.cover is None or w in mate[v]:
                    arm = actions[made - 1, w]
                    samples[v][arm].append(float(table[made - 1, w, arm]))
        if r.policy == "consensus":
            for v in range(M):
                k = actions[t - 1, v]
                s[v, k] += table[t - 1, v, k]
                n[v, k] += 1
            s, n = P @ s, P @ n
    return wished, gaps


def _gap(best: float, other: float) -> float:
    return 0.0 if best == other else (best - other) / max(abs(best), abs(other))
