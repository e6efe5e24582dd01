"""The rules beyond the paper written down a second time: unknown tails, rivals, quiet talk, a shared start.

As in `oracle.py`, nothing is taken from the package and everything is recomputed from stored lists, from the
definitions alone. `play` returns the actions these rules lead to and the messages they cost; `follow` walks
along given actions instead and says of each by how much it missed the best index.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

INF = math.inf
Samples = list[float]
Floats = NDArray[np.float64]
Actions = NDArray[np.int64]
Found = tuple[float, float, int]
"""The mean, the index and the number of samples of an arm."""


@dataclass(frozen=True)
class Rules:
    """One policy with all its parameters. `options` are those of the estimator."""

    policy: str
    # "decentralized" | "centralized" | "kmp" | "robust" | "consensus" | "coop2" | "gossip" | "dducb"
    eps: float = 1.0
    u: float = 1.0
    rho: float = 1.0
    gamma: int = 0
    estimator: str = "clipped"
    # "clipped" | "empirical" | "trimmed" | "selftuned" | "median" | "moss" | "huber" | "catonibound" | "mr"
    options: dict[str, Any] = field(default_factory=dict)
    c: Any = None  # a number or "theory"
    zeta: float = 1.0
    schedule: str = "paper"
    cover: Any = None
    leaders: tuple[int, ...] = ()
    quiet: float | None = None
    start: str = "round-robin"
    radius: str = "printed"  # of consensus
    eps_v: Any = 0.0
    sigma: float | None = None
    gamma_c: float = 1.01
    eta: float = 2.0
    accelerated: bool = True
    own: bool = True

    @property
    def p(self) -> float:
        return 1 + self.eps


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


# ---- F1: the clipped mean --------------------------------------------------------------------------------


def lemma_b(s: float, p: float) -> float:
    eps = p - 1
    near: float = (math.exp(s) - 1 - s) / s**p
    far: float = ((1 - math.exp(-s)) * p / eps) ** (-eps) / p
    return max(near, far)


def best_s(p: float) -> float:
    """The s with the smallest b, by golden section on ln b, rounded to four digits."""
    low, high = 0.05, 3.0
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if math.log(lemma_b(a, p)) < math.log(lemma_b(b, p)):
            high = b
        else:
            low = a
    return round((low + high) / 2, 4)


@lru_cache
def clipping(p: float) -> tuple[float, float]:
    """(τ, c) of the lemma."""
    eps, s = p - 1, best_s(p)
    b = lemma_b(s, p)
    return s**p * eps * b, p ** (p / eps) * b ** (1 / eps) / eps


def clipped_mean(x: Samples, L: float, r: Rules, last: float) -> float:
    tau, _ = clipping(r.p)
    B = (tau * r.u * len(x) / L) ** (1 / r.p) if L > 0 else INF
    # The sketch keeps 128 samples, or as many as can exceed B at the last L; below them nothing is clipped.
    room = max(128, math.ceil(last / tau + math.sqrt(2 * last * last / tau) + last / 3))
    if len(x) >= room:
        B = max(B, sorted(map(abs, x))[-room])
    return sum(clip(v, -B, B) for v in x) / len(x)


def classical(x: Samples, L: float, r: Rules, last: float) -> tuple[float, float]:
    """(mean, index) of a mean with the radius of SEMANTICS: factor ζ, number c or theory's."""
    if r.estimator == "clipped":
        mean, m, theory = clipped_mean(x, L, r, last), r.u, clipping(r.p)[1]
    elif r.estimator == "trimmed":
        kept = [v for i, v in enumerate(x, 1) if abs(v) ** r.p * L <= r.u * i]
        mean, m, theory = sum(kept) / len(x), r.u, 4 ** (r.p / r.eps)
    else:
        mean, m, theory = sum(x) / len(x), r.rho, None
    return mean, mean + radius(len(x), L, r, m, theory)


def radius(n: int, L: float, r: Rules, m: float, theory: float | None) -> float:
    if r.c is None:
        by_factor: float = r.zeta * m ** (1 / r.p) * (L / n) ** (r.eps / r.p)
        return by_factor
    c = theory if r.c == "theory" else r.c
    assert c is not None
    by_constant: float = m ** (1 / r.p) * (c * L / n) ** (r.eps / r.p)
    return by_constant


# ---- C1, C2, E1, E3: means that bring their own index; each gives (mean, index) --------------------------


def threshold(y: Samples, c: float) -> float | None:
    """The M > 0 with sum of min(y²/M², 1) = c, or None."""
    a = sorted(map(abs, y), reverse=True)
    if sum(v > 0 for v in a) <= c:
        return None
    for j in range(len(a)):  # j samples above M
        if j < c:
            M = math.sqrt(math.fsum(v * v for v in a[j:]) / (c - j))
            if a[j] <= M and (j == 0 or a[j - 1] >= M):
                return M
    # rounding at an edge: the sum is exactly c at one of the samples
    return min(a, key=lambda M: abs(sum(min(v * v / M**2, 1) for v in a) - c) if M > 0 else INF)


def self_tuned(
    x: Samples,
    L: float,
    r: Rules,
    C: float = 2.0,
    kappa: float = 1.0,
    omega: float = 16.0,
    guard: float = 4.0,
    pilot: int = 15,
) -> tuple[float, float]:
    n = len(x)
    if n < pilot or n == 0:
        return INF, INF
    centre = float(np.median(x[:pilot])) if pilot else 0.0
    if n <= guard * L:
        return INF, INF
    y = [v - centre for v in x]
    M = threshold(y, kappa * L)
    if M is None:
        return INF, INF
    mean = centre + sum(clip(v, -M, omega * M) for v in y) / n
    return mean, mean + C * M * L / n


def median_bound(x: Samples, L: float, r: Rules, scale: float = 1.0) -> tuple[float, float]:
    n = len(x)
    A, B = math.asinh(1e6), 4096
    h = 2 * A / B
    bins = sorted(clip(math.floor((math.asinh(v / scale) + A) / h), 0, B - 1) for v in x)
    edge = [scale * math.sinh((b + 1) * h - A) for b in bins]
    j = math.ceil(n / 2 + math.sqrt(n * L / 2))
    index = edge[j - 1] if j <= n and sorted(x)[j - 1] <= 1e6 * scale else INF  # nothing is above the grid
    return edge[math.ceil(n / 2) - 1], index


def robust_moss(
    x: Samples,
    L: float,
    r: Rules,
    budget: float,
    a: float = 1.1,
    eta: float = 2.2,
    zeta: float | None = None,
) -> tuple[float, float]:
    """budget: T group / K."""
    u, p, n = r.u ** (1 / r.p), r.p, len(x)

    def phi(k: float) -> float:
        return max(math.log(budget / k), 1) / k

    total, power = 0.0, a
    for i, v in enumerate(x, 1):
        while power <= i:
            power *= a
        B = u * phi(power) ** (-1 / p)
        total += clip(v, -B, B)
    factor = 1 + eta if zeta is None else zeta
    return total / n, total / n + factor * u * phi(n) ** (r.eps / p)


def huber_sgd(
    x: Samples, L: float, r: Rules, scale: float | None = None, lam: float = 3.0, coeff: float = 1.0
) -> tuple[float, float]:
    n, theta = len(x), 0.0
    if scale is None:
        if n < 15:
            return INF, INF
        theta = float(np.median(x[:15]))
        sizes = np.abs(np.array(x) - theta)
        scale = 1.4826 * float(np.median(sizes[:15]))
        if scale == 0:  # eight of them are the same: the mean distance, once one differs
            seen = next((i for i in range(15, n + 1) if sizes[:i].any()), n)
            scale = math.sqrt(math.pi / 2) * float(sizes[:seen].mean())
    for i, v in enumerate(x, 1):
        theta += clip(v - theta, -lam * scale, lam * scale) / i
    return theta, theta + coeff * scale * math.sqrt(L / n)


# ---- F2, E2: bounds over all samples, worked out again when n (or L) has grown by 2 % ---------------------


def catoni_bound(x: Samples, L: float, r: Rules) -> tuple[float, float]:
    """By brackets around a sign change, from the definition."""
    eps, p, n, data = r.eps, r.p, len(x), np.array(x)
    C = 0.5 if eps == 1 else (eps / p) ** (p / 2) * ((1 - eps) / eps) ** (1 - p / 2)
    lam = (L / (n * eps * C * r.rho)) ** (1 / p)
    reach = p * C ** (1 / p) * eps ** (-eps / p) * r.rho ** (1 / p) * (L / n) ** (eps / p)
    if L == 0:
        return sum(x) / n, sum(x) / n
    largest = (1 / (p * C)) ** (1 / eps)

    def left(theta: float) -> float:
        y = np.minimum(lam * (data - theta), largest)
        phi = -np.log(1 - y + C * np.abs(y) ** p)
        return float(phi.sum()) + n * math.log(1 + C * r.rho * lam**p) + L

    width = 1.0
    while left(max(x) + width) > 0:
        width *= 2
    index = float(brentq(left, min(x), max(x) + width, xtol=1e-13, rtol=1e-14))
    return index - reach, index


def mr_mean(x: Samples, r: Rules, p: float | None = None, c: float = 1.0, **_: Any) -> float:
    p, n = r.p if p is None else p, len(x)
    q = (2 - p) / (p - 1)
    b = 0.5 if p == 2 else (2 * q ** (1 - 2 / p) + q ** (2 - 2 / p)) ** (-p / 2)
    y = [v / (c * n ** (1 / p)) for v in x]
    total = sum(math.copysign(math.log(1 + abs(v) + b * abs(v) ** p), v) for v in y)
    return float(c / n ** (1 - 1 / p) * total)


def mr_bonus(n: int, r: Rules, budget: float, p: float | None = None, c: float = 1.0) -> float:
    p = r.p if p is None else p
    bonus: float = c * max(math.log(budget / n), 0) / n ** (1 - 1 / p)
    return bonus


LAZY = ("catonibound", "mr")


def lazily(
    x: Samples, L: float, r: Rules, budget: float, last: tuple[int, float] | None
) -> tuple[Found, tuple[int, float] | None]:
    """What an estimator says that was last worked out at `last` = (n, L), and where it is now."""
    n = len(x)
    if n == 0:
        return (INF, INF, 0), None
    if r.estimator == "mr":
        if last is None or n < 50 or n > 1.02 * last[0]:
            last = n, L
        mean = mr_mean(x[: last[0]], r, **r.options)
        return (mean, mean + mr_bonus(n, r, budget, **r.options), n), last
    if last is None or n > 1.02 * last[0] or 1.02 * last[1] < L:
        last = n, L
    return (*catoni_bound(x[: last[0]], last[1], r), n), last


OWN: dict[str, Any] = {
    "selftuned": self_tuned,
    "median": median_bound,
    "moss": robust_moss,
    "huber": huber_sgd,
}


def estimate(x: Samples, L: float, r: Rules, budget: float, last: float) -> Found:
    """(mean, index, n) of one arm; +∞ without samples. last: the largest L that will be asked for."""
    if not x:
        return INF, INF, 0
    if r.estimator in OWN:
        extra = {"budget": budget} if r.estimator == "moss" else {}
        return (*OWN[r.estimator](x, L, r, **extra, **r.options), len(x))
    return (*classical(x, L, r, last), len(x))


def level(t: int, M: int, r: Rules) -> float:
    return 2 * math.log(t) if r.schedule == "paper" else math.log(M) + 3 * math.log(t)


# ---- the game with messages ------------------------------------------------------------------------------


def play(table: Floats, graph: nx.Graph, r: Rules) -> tuple[Actions, int]:
    """(actions, messages over links) of agents 0..M-1 under rewards table[round, agent, arm]."""
    wished, _, sent = _run(table, graph, r, None)
    return wished, sent


def follow(table: Floats, graph: nx.Graph, r: Rules, actions: Actions) -> tuple[Actions, Floats, int]:
    """(wished actions, gaps, messages) when history is as in `actions`."""
    return _run(table, graph, r, np.asarray(actions))


def _run(table: Floats, graph: nx.Graph, r: Rules, forced: Actions | None) -> tuple[Actions, Floats, int]:
    averaging = {"consensus", "coop2", "gossip", "dducb"}
    return (_average if r.policy in averaging else _tell)(table, graph, r, forced)


class _Choices:
    """Wished actions and by how much the forced ones miss them."""

    def __init__(self, T: int, M: int, forced: Actions | None) -> None:
        self.wished, self.gaps = np.zeros((T, M), int), np.zeros((T, M))
        self.actions = np.zeros((T, M), int) if forced is None else forced
        self.free = forced is None

    def make(self, t: int, v: int, best: int | list[float]) -> None:
        """best: indices to choose from, or the one arm there is."""
        arm = best if isinstance(best, int) else max(range(len(best)), key=lambda k: (best[k], -k))
        self.wished[t - 1, v] = arm
        if self.free:
            self.actions[t - 1, v] = arm
        elif self.actions[t - 1, v] != arm:
            self.gaps[t - 1, v] = INF
            if not isinstance(best, int):
                self.gaps[t - 1, v] = _gap(max(best), best[self.actions[t - 1, v]])


def _gap(best: float, other: float) -> float:
    return 0.0 if best == other else (best - other) / max(abs(best), abs(other))


def _tell(table: Floats, graph: nx.Graph, r: Rules, forced: Actions | None) -> tuple[Actions, Floats, int]:
    T, M, K = np.shape(table)
    dist = {v: nx.single_source_shortest_path_length(graph, v) for v in range(M)}
    longest = max(max(each.values()) for each in dist.values())
    gamma = 0 if r.policy == "robust" else min(r.gamma, longest)  # more hops would reach nobody else
    heard = [sorted((-d, w) for w, d in dist[v].items() if 0 < d <= gamma) for v in range(M)]
    mate = {v: set(group) for group in r.cover or () for v in group}
    samples: list[list[Samples]] = [[[] for _ in range(K)] for _ in range(M)]
    told: dict[tuple[int, int], bool] = {}
    rows: dict[tuple[int, int], list[tuple[float, int]]] = {}
    choices, messages = _Choices(T, M, forced), 0
    last: dict[tuple[int, int], tuple[int, float] | None] = {}
    leader = {}
    if r.policy == "centralized":
        for v in range(M):
            options = [(-len(heard[w]), -d, w) for d, w in heard[v] if w in r.leaders]
            leader[v] = v if v in r.leaders else min(options)[2]

    for t in range(1, T + 1):
        L = level(t, M, r)
        for v in range(M):
            budget = T * (len(heard[v]) + 1) / K
            unknown = [(t - 1 + v + i) % K for i in range(K) if not samples[v][(t - 1 + v + i) % K]]
            first = unknown[0] if unknown and r.start == "shared" else t - 1 if t <= K else None
            if r.start == "shared" and not unknown:
                first = None
            delay = dist[v][leader[v]] if leader else 0
            follows = first is None and 0 < delay < t
            if r.estimator not in LAZY:
                found = [estimate(x, L, r, budget, level(T, M, r)) for x in samples[v]]
            elif (t <= K and r.start == "shared") or (first is None and not (follows and r.quiet is None)):
                asked = [lazily(x, L, r, budget, last.get((v, k))) for k, x in enumerate(samples[v])]
                found = [each for each, _ in asked]
                last.update({(v, k): at for k, (_, at) in enumerate(asked)})
            else:
                found = [(INF, INF, len(x)) for x in samples[v]]  # nobody asks
            rows[v, t] = [(0.0, 0)] * K
            if first is not None:
                choices.make(t, v, first)
            elif follows:
                choices.make(t, v, int(choices.actions[t - 1 - delay, leader[v]]))
            else:
                choices.make(t, v, _indices(found, L, t, v, heard, rows, told, r))
            a, t0 = choices.actions[t - 1, v], t
            told[v, t] = r.quiet is None or t <= K or leader.get(v) == v or _tells(a, found, r.quiet)
            if (
                gamma and told[v, t]
            ):  # sent on by everybody at distance 0..gamma-1, as long as there are rounds
                messages += sum(graph.degree(w) for w, d in dist[v].items() if d < gamma and t0 + d <= T)
        for v in range(M):
            for d, w in [(0, v), *heard[v]]:
                made = t + d + 1 if d else t
                if made >= 1 and (w == v or (told[w, made] and (r.cover is None or w in mate[v]))):
                    arm = choices.actions[made - 1, w]
                    samples[v][arm].append(float(table[made - 1][w][arm]))
    return choices.wished, choices.gaps, messages


def _indices(
    found: list[Found],
    L: float,
    t: int,
    v: int,
    heard: list[list[tuple[int, int]]],
    rows: dict[tuple[int, int], list[tuple[float, int]]],
    told: dict[tuple[int, int], bool],
    r: Rules,
) -> list[float]:
    if r.policy != "kmp":
        return [index for _, index, _ in found]
    # A row is (mean, n), or (index, n) where the estimator brings its own index.
    own = [(index if r.estimator in (*OWN, *LAZY) else mean, n) for mean, index, n in found]
    rows[v, t] = own
    used = list(own)
    for k in range(len(own)):
        for w, d in sorted((w, -minus) for minus, w in heard[v]):
            newest = next((s for s in range(t - d, 0, -1) if told[w, s]), None)
            if newest is not None and rows[w, newest][k][1] > used[k][1]:
                used[k] = rows[w, newest][k]
    if r.estimator in (*OWN, *LAZY):
        return [index for index, _ in used]
    m, theory = {
        "clipped": (r.u, clipping(r.p)[1]),
        "trimmed": (r.u, 4 ** (r.p / r.eps)),
        "empirical": (r.rho, None),
    }[r.estimator]
    return [mean + radius(n, L, r, m, theory) for mean, n in used]


def _tells(a: int, found: list[Found], theta: float) -> bool:
    defined = [k for k, (mean, _, _) in enumerate(found) if mean < INF]
    if not defined:
        return True
    favourite = max(defined, key=lambda k: (found[k][0], -k))
    return a != favourite or found[a][2] <= theta * max(n for k, (_, _, n) in enumerate(found) if k != a)


# ---- averaging -------------------------------------------------------------------------------------------


def mixing(graph: nx.Graph) -> Floats:
    M = len(graph)
    A = nx.to_numpy_array(graph, nodelist=range(M), weight=None)
    d_max = A.sum(0).max()
    kappa = d_max / (d_max + 1)
    return np.eye(M) - (kappa / d_max * (np.diag(A.sum(0)) - A) if d_max else 0)


def _average(table: Floats, graph: nx.Graph, r: Rules, forced: Actions | None) -> tuple[Actions, Floats, int]:
    T, M, K = np.shape(table)
    P, choices = mixing(graph), _Choices(T, M, forced)
    eps_v = np.broadcast_to(np.array(r.eps_v, float), M)
    if r.policy == "dducb":
        _dducb(table, P, r, choices)
    else:
        s, n = np.zeros((M, K)), np.zeros((M, K))
        for t in range(1, T + 1):
            for v in range(M):
                best = [_averaged_index(s[v, k], n[v, k], t, M, eps_v[v], r) for k in range(K)]
                choices.make(t, v, t - 1 if t <= K else best)
            for v in range(M):
                k = choices.actions[t - 1, v]
                x = float(table[t - 1][v][k])
                if r.policy == "gossip":
                    B = (clipping(r.p)[0] * r.u * (M * n[v, k] + 1) / (2 * math.log(max(t, 2)))) ** (1 / r.p)
                    x = clip(x, -B, B)
                s[v, k] += x
                n[v, k] += 1
            s, n = P @ s, P @ n
    return choices.wished, choices.gaps, T * 2 * graph.number_of_edges()


def sigma_of(r: Rules) -> Any:
    return r.rho ** (1 / r.p) if r.sigma is None else r.sigma


def _averaged_index(s: float, n: float, t: int, M: int, eps_v: float, r: Rules) -> Any:
    if n == 0:
        return INF
    if r.policy == "coop2":
        f = math.sqrt(math.log(t - 1))
        G = 1 - 2**2 / 16
        reach = math.sqrt(2 * r.gamma_c / G * (n + f) / (M * n) * math.log(t - 1) / n)
        return s / n + r.zeta * sigma_of(r) * reach
    if r.policy == "gossip":
        n_eff = M * n**2 / (n + math.sqrt(math.log(t)))
        return s / n + r.zeta * r.u ** (1 / r.p) * (2 * math.log(t) / n_eff) ** (r.eps / r.p)
    n_eff = M * n**2 / (n + eps_v)
    if r.radius == "printed":
        return s / n + r.zeta * (6 * r.rho * t ** (2 / 3) / n_eff**r.eps) ** (1 / r.p)
    if r.radius == "variance":
        return s / n + r.zeta * math.sqrt(6 * r.rho * t ** (2 / 3) / n_eff)
    return s / n + r.zeta * r.rho ** (1 / r.p) * math.sqrt(2 * 1.01 / 0.75 * math.log(t - 1) / n_eff)


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


def _dducb(table: Floats, P: Floats, r: Rules, choices: _Choices) -> None:
    T, M, K = np.shape(table)
    lam, C = stage_length(P, r.accelerated)
    plain = not r.accelerated or lam < 1e-9
    sigma = r.zeta * sigma_of(r)
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
