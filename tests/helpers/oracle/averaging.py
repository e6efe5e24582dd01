"""Agents that average sums and counts with their neighbours."""

import math

import networkx as nx
import numpy as np

from helpers.oracle.estimators import clip, clipping
from helpers.oracle.families import normal
from helpers.oracle.rules import INF, Choices, Floats, Rules, World


def mixing(graph: nx.Graph, kappa: float | None = None) -> Floats:
    """P = I - kappa/d_max L(G)."""
    M = len(graph)
    A = nx.to_numpy_array(graph, nodelist=range(M), weight=None)
    d_max = A.sum(0).max()
    kappa = d_max / (d_max + 1) if kappa is None else kappa
    return np.eye(M) - (kappa / d_max * (np.diag(A.sum(0)) - A) if d_max else 0)


def consensus_parts(graph: nx.Graph, r: Rules) -> tuple[Floats, Floats]:
    """P, and the eps_v of every agent: given, or from the eigenvectors of P."""
    M, P = len(graph), mixing(graph, r.kappa)
    if r.eps_v is not None or r.policy != "consensus":
        return P, np.broadcast_to(np.array(r.eps_v or 0.0, float), M)
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


def average(table: Floats, graph: nx.Graph, r: Rules, world: World, choices: Choices) -> None:
    """The game of agents that average."""
    T, M, K = table.shape
    P, eps_v = consensus_parts(graph, r)
    choices.messages = T * 2 * graph.number_of_edges()
    if r.policy == "dducb":
        assert world.perfect
        dducb(table, P, r, choices)
        return
    s, n = np.zeros((M, K)), np.zeros((M, K))
    for t in range(1, T + 1):
        there = [v for v in range(M) if world.up(v, t)]
        for v in range(M):
            if v not in there:
                choices.none(t, v)
            elif t <= K:
                choices.make(t, v, min(r.may(t, v, K), key=lambda k: (k - t + 1) % K))
            else:
                values = [averaged_index(s[v, k], n[v, k], t, M, eps_v[v], r) for k in range(K)]
                if r.policy == "decentralized-ts":
                    values = [drawn(s[v, k], n[v, k], t, M, r, normal(world, v, t, k)) for k in range(K)]
                choices.make(t, v, [values[k] if k in r.may(t, v, K) else -INF for k in range(K)])
        for v in there:
            k = choices.actions[t - 1, v]
            x = float(table[t - 1, v, k])
            if r.policy in ("robust-gossip", "decentralized-ts"):
                B = (clipping(r.p)[0] * r.u * (M * n[v, k] + 1) / (2 * math.log(max(t, 2)))) ** (1 / r.p)
                x = clip(x, -B, B)
            s[v, k] += x
            n[v, k] += 1
        now = P if world.perfect else present(P, graph, t, there, world)
        s, n = now @ s, now @ n


def present(P: Floats, graph: nx.Graph, t: int, there: list[int], world: World) -> Floats:
    """A neighbour that is not received leaves its weight with the own value: P stays symmetric."""
    now: Floats = np.eye(len(P))
    for a, b in graph.edges:
        if a in there and b in there and world.link(a, b, t) and not world.lost(a, b, t):
            now[a, b] = now[b, a] = P[a, b]
            now[a, a] -= P[a, b]
            now[b, b] -= P[a, b]
    return now


def drawn(s: float, n: float, t: int, M: int, r: Rules, Z: float) -> float:
    """Thompson sampling on averages."""
    if n == 0:
        return INF
    n_eff = M * n**2 / (n + math.sqrt(math.log(t)))
    return float(s / n + r.factor * r.u ** (1 / r.p) * n_eff ** (-r.eps / r.p) * Z)


def sigma_of(r: Rules) -> float:
    return float(r.rho ** (1 / r.p)) if r.sigma is None else r.sigma


def averaged_index(s: float, n: float, t: int, M: int, eps_v: float, r: Rules) -> float:
    if n == 0:
        return INF
    if r.policy == "coop-ucb2":
        f = math.sqrt(math.log(t - 1))
        G = 1 - 2**2 / 16
        reach = math.sqrt(2 * r.gamma_c / G * (n + f) / (M * n) * math.log(t - 1) / n)
        return float(s / n + r.factor * sigma_of(r) * reach)
    if r.policy == "robust-gossip":
        n_eff = M * n**2 / (n + math.sqrt(math.log(t)))
        return float(s / n + r.factor * r.u ** (1 / r.p) * (2 * math.log(t) / n_eff) ** (r.eps / r.p))
    n_eff = M * n**2 / (n + eps_v)
    if r.radius == "printed":
        return float(s / n + r.factor * math.sqrt(6 * r.rho * t ** (2 / 3) / M * (n + eps_v) / n**2))
    if r.radius == "moment":
        return float(s / n + r.factor * (6 * r.rho * t ** (2 / 3) / n_eff**r.eps) ** (1 / r.p))
    reach = math.sqrt(2 * 1.01 / 0.75 * math.log(t - 1) / n_eff)
    return float(s / n + r.factor * r.rho ** (1 / r.p) * reach)


def stage_length(P: Floats, accelerated: bool) -> tuple[float, int]:
    """(λ, C) of the delayed rounds."""
    M, e = len(P), 1 / 22
    lam = float(np.sort(np.abs(np.linalg.eigvalsh(P)))[-2]) if M > 1 else 0.0
    if lam < 1e-9:
        return lam, 1
    C = (
        math.log(2 * M / e) / math.sqrt(2 * math.log(1 / lam))
        if accelerated
        else math.log(M / e) / math.log(1 / lam)
    )
    return lam, max(1, math.ceil(C))


def dducb(table: Floats, P: Floats, r: Rules, choices: Choices) -> None:
    T, M, K = table.shape
    lam, C = stage_length(P, r.accelerated)
    plain = not r.accelerated or lam < 1e-9
    sigma = r.factor * sigma_of(r)
    for t in range(1, min(K, T) + 1):
        for v in range(M):
            choices.make(t, v, t - 1)
    if T <= K:
        return
    Z = np.zeros((2, M, K))  # sums, counts
    for t in range(1, K + 1):
        for v in range(M):
            k = choices.actions[t - 1, v]
            Z[0, v, k] += table[t - 1][v][k]
            Z[1, v, k] += 1
    use, mix, fresh, done = Z / M, Z.copy(), np.zeros_like(Z), np.zeros_like(Z)
    before, w, rr, seen = np.zeros_like(Z), [1.0, 1 / lam if lam > 0 else INF], 0, [K] * M
    arm_of = [0] * M
    for t in range(K + 1, T + 1):
        for v in range(M):
            if r.own or rr == 0:
                best = [
                    use[0, v, k] / use[1, v, k]
                    + sigma * math.sqrt(2 * r.eta * math.log(max(seen[v], 2)) / (M * use[1, v, k]))
                    for k in range(K)
                ]
                choices.make(t, v, best)
            else:
                choices.make(t, v, int(arm_of[v]))
            k = arm_of[v] = choices.actions[t - 1, v]
            x = float(table[t - 1][v][k])
            if r.own:
                use[0, v, k] += x / M
                use[1, v, k] += 1 / M
                seen[v] += 1
            fresh[0, v, k] += x
            fresh[1, v, k] += 1
        if rr == 0 or plain:
            after = P @ mix
        else:
            if len(w) <= rr + 1:
                w.append(2 * w[rr] / lam - w[rr - 1])
            after = 2 * w[rr] / (lam * w[rr + 1]) * (P @ mix) - w[rr - 1] / w[rr + 1] * before
        before, mix = mix, after
        rr += 1
        if rr == C:
            done = done + mix
            use = done.copy()
            use[1] = np.maximum(use[1], 1e-9)
            mix, fresh, before, rr = fresh, np.zeros_like(Z), np.zeros_like(Z), 0
            seen = [(t - C) * M] * M
