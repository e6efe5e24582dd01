"""What is played: a policy with its parameters, and the faults of the channel."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

INF = math.inf
Floats = NDArray[np.float64]
Actions = NDArray[np.int64]
Samples = list[float]
Found = tuple[float, float, float]
"""Of an arm: the mean, the index and the number of samples."""

AVERAGING = ("consensus", "coop-ucb2", "robust-gossip", "dducb", "decentralized-ts")


@dataclass(frozen=True)
class Rules:
    """One policy with all its parameters; policies and estimators are named as in the catalogue."""

    policy: str
    eps: float = 1.0
    u: float = 1.0
    rho: float = 1.0
    gamma: int = 0
    estimator: str = "trimmed"
    options: dict[str, Any] = field(default_factory=dict)  # of the estimator
    c: float | str | None = None  # a number or "theory"
    zeta: float | None = None  # a factor on the radius, instead of c; 1 if neither is given
    schedule: str = "paper"  # "anytime"
    start: str = "round-robin"  # "shared"
    quiet: float | None = None
    cover: Sequence[Sequence[int]] | None = None  # decentralized: groups of agents, None for no filter
    hold: int = 1
    discard: bool = False
    leaders: Sequence[int] = ()  # centralized
    patience: float = 32
    guard: int = 0  # kmp: adversaries it must withstand
    f: int = 1  # origin-median
    spare: int = 1
    count: str = "all"
    # By agent and arm (m0, samples, spread); arms with too few samples are pulled once in `probe` samples.
    prior: Sequence[Sequence[tuple[float, float, float]]] | None = None
    cap: int = 30
    probe: int = 100
    forget: tuple[str, float] | None = None  # ("window", W), ("discount", phi), ("restart", 0)
    radius: str = "printed"  # consensus
    eps_v: float | Sequence[float] | None = None  # per agent or one number; None: by formula
    kappa: float | None = None
    sigma: float | None = None  # coop-ucb2, dducb
    gamma_c: float = 1.01
    eta: float = 2.0
    accelerated: bool = True
    own: bool = True
    extra: dict[str, Any] = field(default_factory=dict)  # settings of one of the other families
    allowed: Any = None  # true by round, agent and arm
    k: int = 1  # arms that are tried in a round

    def __post_init__(self) -> None:
        assert self.c is None or self.zeta is None

    @property
    def p(self) -> float:
        return 1 + self.eps

    def may(self, t: int, v: int, K: int) -> list[int]:
        """The arms that agent v may pull in round t."""
        return [k for k in range(K) if self.allowed is None or self.allowed[t - 1][v][k]]

    @property
    def factor(self) -> float:
        return 1.0 if self.zeta is None else self.zeta


def span(r: Rules) -> float:
    """About how many samples are not forgotten."""
    if r.forget is None or r.forget[0] == "restart":
        return INF
    return r.forget[1] if r.forget[0] == "window" else math.ceil(1 / (1 - r.forget[1]))


def level(t: int, M: int, r: Rules) -> float:
    t = int(min(t, span(r)))
    return 2 * math.log(t) if r.schedule == "paper" else math.log(M) + 3 * math.log(t)


# ---- keyed uniforms --------------------------------------------------------------------------------------

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
LOSS, DELAY, CORRUPT, DISCARD, CHURN, THOMPSON = 1, 2, 3, 4, 5, 6


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


def geometric(u: float, q: float) -> int:
    """⌊ln(1 - u) / ln(1 - q)⌋"""
    return 0 if q == 1 else math.floor(math.log(1 - u) / math.log(1 - q))


# ---- faults ----------------------------------------------------------------------------------------------

Late = Callable[[int, int, int], float]
"""late(a, b, s): the extra rounds that a bundle takes from a to b in round s; infinite if lost."""


@dataclass(frozen=True)
class World:
    """The fault model. Everything at its default: no faults."""

    p: float = 1.0
    per: str = "link"  # "copy"
    symmetric: bool = False
    delay: int | tuple[str, float, int] = 0  # D, or ("geometric", q, D)
    bundles: Late | None = None  # a channel of one's own, in place of p and delay
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

    @property
    def perfect(self) -> bool:
        return self == World(seed=self.seed)

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

    def lost(self, a: int, b: int, s: int, origin: int = 0, made: int = 0) -> bool:
        ends = (min(a, b), max(a, b)) if self.symmetric else (a, b)
        key = (*ends, s) if self.per == "link" else (*ends, origin, made)
        return self.p < 1 and self.u(LOSS, *key) >= self.p

    def late(self, a: int, b: int, s: int) -> float:
        if self.bundles is not None:
            return self.bundles(a, b, s)
        if self.delay == 0:
            return 0
        u = self.u(DELAY, a, b, s)
        if isinstance(self.delay, int):
            return math.floor(u * (self.delay + 1))
        _, q, longest = self.delay
        return min(longest, geometric(u, q))

    def lie(self, means: Sequence[float]) -> tuple[int, float, list[tuple[float, float]]]:
        """What an adversary sends: arm, reward, row per arm."""
        worst, best = int(np.argmin(means)), int(np.argmax(means))
        if self.attack == "slander":
            arm, reward = best, -5.0
        else:
            arm, reward = worst, 1e3 if self.attack == "flood" else max(means) + 1
        bad, good = (-5.0, 5.0) if self.attack == "slander" else (5.0, -5.0)
        row = [(bad if k == arm else good, 1e9) for k in range(len(means))]
        return arm, reward if self.size is None else self.size, row


# ---- choices ---------------------------------------------------------------------------------------------

UNSURE = -2  # in place of an action, where rounding decides what is sent


class Choices:
    """Wished actions and by how much the forced ones miss them."""

    def __init__(self, T: int, M: int, forced: Actions | None) -> None:
        self.wished, self.gaps = np.zeros((T, M), int), np.zeros((T, M))
        self.actions = np.zeros((T, M), int) if forced is None else forced
        self.free = forced is None
        self.messages: int | None = None  # over links; None if rounding decided what was sent

    def make(self, t: int, v: int, best: int | list[float]) -> int:
        """best: indices to choose from, or the one arm there is. Returns the arm that is played."""
        arm = best if isinstance(best, int) else max(range(len(best)), key=lambda k: (best[k], -k))
        self.wished[t - 1, v] = arm
        if self.free:
            self.actions[t - 1, v] = arm
        elif self.actions[t - 1, v] != arm:
            self.gaps[t - 1, v] = INF
            if not isinstance(best, int):
                self.gaps[t - 1, v] = _gap(max(best), best[self.actions[t - 1, v]])
        return int(self.actions[t - 1, v])

    def none(self, t: int, v: int) -> None:
        """No choice in this round."""
        self.wished[t - 1, v] = -1
        if self.free:
            self.actions[t - 1, v] = -1
        elif self.actions[t - 1, v] != -1:
            self.gaps[t - 1, v] = INF

    def stop(self, t: int, v: int) -> None:
        """From here on rounding decides: one tie, and nothing that could be compared."""
        self.wished[t - 1 :], self.gaps[t - 1 :] = self.actions[t - 1 :], 0.0
        self.wished[t - 1, v] = UNSURE


def _gap(best: float, other: float) -> float:
    return 0.0 if best == other else (best - other) / max(abs(best), abs(other))
