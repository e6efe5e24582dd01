"""The rules written down a second time, as plainly as possible, from the definitions alone.

Nothing here is taken from the package: no online estimator, no message, no flooding. An agent at distance d
hears the sample of round t' at the end of round t' + d - 1; estimates are recomputed from stored lists.
`play` returns the actions these rules lead to. `follow` walks along given actions instead, and says for
each of them by how much it missed the best index: a difference that is only a floating-point tie shows as
a tiny gap, every other one as a large gap.
"""

import math
from dataclasses import dataclass

import networkx as nx
import numpy as np
from scipy.optimize import brentq

INF = math.inf


@dataclass(frozen=True)
class Rules:
    """One policy with all its parameters. cover: groups of agents, or None for no filter."""

    policy: str  # "decentralized" | "centralized" | "kmp" | "consensus" | "robust"
    eps: float = 1.0
    u: float = 1.0
    rho: float = 1.0
    gamma: int = 0
    estimator: str = "trimmed"  # "empirical" | "median" | "catoni"
    c: object = 1.0  # a number or "theory"
    zeta: float | None = None  # a plain factor on the radius, instead of c
    schedule: str = "paper"  # "anytime"
    cover: object = None
    leaders: tuple = ()
    eps_v: object = None  # of consensus: per agent or one number; None: by formula
    kappa: float | None = None

    @property
    def p(self):
        return 1 + self.eps

    @property
    def m(self):
        return self.u if self.estimator == "trimmed" else self.rho


# ---- estimators, as definitions over a list in order of arrival ------------------------------------------


def c_p(eps):
    p = 1 + eps
    return (eps / p) ** (p / 2) * ((1 - eps) / eps) ** (1 - p / 2) if eps < 1 else 0.5


def trimmed(x, L, r):
    return sum(v for i, v in enumerate(x, 1) if abs(v) ** r.p * L <= r.u * i) / len(x)


def empirical(x, L, r):
    return sum(x) / len(x)


def median_of_means(x, L, r):
    k = max(1, math.floor(min(1 + 8 * L, len(x) / 2)))
    N = len(x) // k
    return float(np.median([sum(x[g * N : (g + 1) * N]) / N for g in range(k)]))


def catoni(x, L, r):
    n, p, x = len(x), r.p, np.array(x)
    if r.eps == 1:
        if n <= 2 * L:
            return INF
        a = math.sqrt(2 * L * (n - 2 * L) / r.rho) / n
    else:
        a = (L / (n * r.eps * 2**r.eps * c_p(r.eps) * r.rho)) ** (1 / p)

    def total(theta):
        y = np.abs(a * (x - theta))
        return np.sum(np.sign(x - theta) * np.log1p(y + c_p(r.eps) * y**p))

    low, high = float(x.min()), float(x.max())
    return brentq(total, low, high, xtol=1e-300, rtol=1e-15) if low < high else low


ESTIMATORS = {"trimmed": trimmed, "empirical": empirical, "median": median_of_means, "catoni": catoni}


# ---- index -----------------------------------------------------------------------------------------------


def level(t, M, r):
    return 2 * math.log(t) if r.schedule == "paper" else math.log(M) + 3 * math.log(t)


def radius(n, L, r):
    """m^(1/p) (c L / n)^(eps/p); infinite where the estimator or its lemma does not reach."""
    eps, p = r.eps, r.p
    if r.estimator == "catoni" and eps == 1 and n <= 2 * L:
        return INF
    if r.zeta is not None:
        return r.zeta * r.m ** (1 / p) * (L / n) ** (eps / p)
    if r.c != "theory":
        return r.m ** (1 / p) * (r.c * L / n) ** (eps / p)
    if r.estimator == "trimmed":
        return 4 * r.m ** (1 / p) * (L / n) ** (eps / p)
    if r.estimator == "median":
        if n < 16 * L + 2:
            return INF
        return r.m ** (1 / p) * (16 * 12 ** (1 / eps) * (L + 1 / 8) / n) ** (eps / p)
    if r.estimator == "catoni" and eps == 1:
        return INF if n < 4 * L else r.m ** (1 / p) * (4 * L / n) ** (eps / p)
    if r.estimator == "catoni":
        factor = 1.1 * (2**eps * c_p(eps)) ** (1 / p) * p * eps ** (-eps / p)
        rad = factor * r.m ** (1 / p) * (L / n) ** (eps / p)
        return rad if rad <= (0.1 * p * r.rho) ** (1 / p) else INF
    raise ValueError("no theory constant")


def index(mean, n, L, r):
    """Of one arm: an estimate from n samples, plus its radius."""
    rad = radius(n, L, r)
    return INF if rad == INF else mean + rad


def consensus_index(s, n, t, M, eps_v, r):
    n_eff = M * n**2 / (n + eps_v)
    return s / n + (6 * r.rho * t ** (2 / 3) / n_eff**r.eps) ** (1 / r.p)


def consensus_parts(graph, r):
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


def play(table, graph, r):
    """The actions (T, M) of agents 0..M-1 under rewards table[round, agent, arm]."""
    return _run(table, graph, r, None)[0]


def follow(table, graph, r, actions):
    """(wished actions, gaps) when history is as in `actions`: the gap of a choice is how far its index
    lies below the best one, relative to the larger of the two; infinite where there was no choice."""
    return _run(table, graph, r, np.asarray(actions))


def _run(table, graph, r, forced):
    T, M, K = np.shape(table)
    wished, gaps = np.zeros((T, M), int), np.zeros((T, M))
    actions = np.zeros((T, M), int) if forced is None else forced
    gamma = 0 if r.policy in ("robust", "consensus") else r.gamma
    dist = {v: nx.single_source_shortest_path_length(graph, v) for v in range(M)}
    heard = [sorted((d, w) for w, d in dist[v].items() if d <= gamma) for v in range(M)]  # (0, v) is oneself
    mate = {v: set(group) for group in r.cover or () for v in group}
    samples = [[[] for _ in range(K)] for _ in range(M)]
    sent = {}  # (agent, round) -> [(mean, N)] per arm
    if r.policy == "centralized":
        leader = {}
        for v in range(M):
            options = [(1 - len(heard[w]), d, w) for d, w in heard[v] if d > 0 and w in r.leaders]
            leader[v] = v if v in r.leaders else min(options)[2]  # by degree in the power, distance, id
    if r.policy == "consensus":
        P, eps_v = consensus_parts(graph, r)
        s, n = np.zeros((M, K)), np.zeros((M, K))

    for t in range(1, T + 1):
        L = level(t, M, r)
        for v in range(M):
            delay = dist[v][leader[v]] if r.policy == "centralized" else 0
            if t <= K:
                wished[t - 1, v], best = t - 1, None
            elif delay and t > delay:
                wished[t - 1, v], best = actions[t - 1 - delay, leader[v]], None
            elif r.policy == "consensus":
                best = [consensus_index(s[v, k], n[v, k], t, M, eps_v[v], r) for k in range(K)]
            else:
                own = [(ESTIMATORS[r.estimator](x, L, r), len(x)) for x in samples[v]]
                used = list(own)
                if r.policy == "kmp":
                    sent[v, t] = own
                    for k in range(K):
                        # at the end of round t-1 the newest message of w is of round t-1-d+1 = t-d
                        rows = [(w, sent[w, t - d][k]) for d, w in heard[v] if d and (w, t - d) in sent]
                        for _, row in sorted(rows):
                            if row[1] > used[k][1]:
                                used[k] = row
                best = [index(mean, N, L, r) for mean, N in used]
            if best is not None:
                wished[t - 1, v] = max(range(K), key=lambda k: (best[k], -k))
            if forced is None:
                actions[t - 1, v] = wished[t - 1, v]
            elif actions[t - 1, v] != wished[t - 1, v]:
                gaps[t - 1, v] = INF if best is None else _gap(max(best), best[actions[t - 1, v]])
        for v in range(M):
            for d, w in heard[v]:
                made = t if d == 0 else t - d + 1
                if made >= 1 and (d == 0 or r.cover is None or w in mate[v]):
                    arm = actions[made - 1, w]
                    samples[v][arm].append(float(table[made - 1][w][arm]))
        if r.policy == "consensus":
            for v in range(M):
                k = actions[t - 1, v]
                s[v, k] += table[t - 1][v][k]
                n[v, k] += 1
            s, n = P @ s, P @ n
    return wished, gaps


def _gap(best, other):
    return 0.0 if best == other else (best - other) / max(abs(best), abs(other))
