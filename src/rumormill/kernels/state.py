"""The arrays a trial works on. Agents that keep samples are called learners; not everybody must."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill import formulas
from rumormill.kernels.jit import kernel, part, step

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.float32]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

shrinkage = step(formulas.shrinkage)
radius_scale = part(formulas.radius_scale)
factor_scale = part(formulas.factor_scale)

# Kinds of estimator.
RUNNING, MEDIAN_OF_MEANS, CATONI = 0, 1, 2
CLIPPED, SELF_TUNED, MEDIAN_BOUND, ROBUST_MOSS, HUBER_SGD = 3, 4, 5, 6, 7
ORIGIN_MEDIAN = 8  # in imperfect worlds, the perfect one among them


class Law(NamedTuple):
    """Arm k pays loc[k] + scale[k] z; all arms share column 0 of the draws, or each has its own."""

    shared: bool
    loc: Floats
    scale: Floats


class Output(NamedTuple):
    """Where a trial writes: regret of every agent at the marks, and every action unless it has no rows."""

    marks: Ints
    agent_regret: Floats
    actions: Ints
    messages: Ints
    """Sent so far, at the marks; filled only where it depends on what agents decide."""
    agent_rounds: Ints
    """Pulls so far, over all agents, at the marks; filled only where not everybody always pulls."""


class Hearing(NamedTuple):
    """Who hears whom after how many hops; hop h is at index h - 1. Learners are numbered from 0."""

    gamma: int
    learners: Ids
    """The agent behind each learner."""
    learner_of: Ids
    """The learner of each agent, or -1."""
    dense: Ids
    """Per hop, which of `words` it uses, or -1 for the sparse form."""
    words: Words
    """[., word, origin]: a bit for every learner that is exactly so many hops away, 64 in a word."""
    by_origin: Words
    """[., origin, word]: the same, for KMP-UCB only."""
    ptr: Ints
    """[hop, origin]: where the hearers of an origin begin in `hearers` (empty for dense hops)."""
    hearers: Ids
    source_ptr: Ints
    """[learner, hop]: its sources h hops away, sorted by id, end there; at hop 0 they begin."""
    sources: Ids


class Tuning(NamedTuple):
    """Parameters of the means in kernels/means_sketch.py; each kind uses a few of them."""

    clip_budget: float
    """τ u (CLIPPED)."""
    C: float
    kappa: float
    omega: float
    guard: float
    pilot: int
    """Samples kept until the centre or the scale is known."""
    scale: float
    """Of the histogram (MEDIAN_BOUND), or of the rewards where it is given (HUBER_SGD)."""
    lam: float
    coeff: float
    growth: float
    """The base a of the levels (ROBUST_MOSS)."""
    root: float
    """u^(1/p)."""
    reach: float
    """The factor times u^(1/p)."""
    budgets: Floats
    """Per learner, T group / K."""
    edges: Floats
    """Upper edges of the histogram's bins."""
    slack: float
    """By how much n or L may grow before a root is worked out again (CATONI)."""


class Rules(NamedTuple):
    """What does not change during a trial."""

    n_arms: int
    horizon: int
    kind: int
    trims: bool
    shares_rows: bool
    """KMP-UCB: arm by arm, use the best informed estimate in reach."""
    u: float
    p: float
    rho: float
    exponent: float
    """The radius shrinks as n^-exponent."""
    scale: Floats
    """Per round, the radius at n = 1."""
    L: Floats
    """Per round, ln(1/δ)."""
    least_n: Floats
    """Per round, with fewer samples an arm must be pulled."""
    powers: Floats
    """n^-exponent for small n."""
    leader_of: Ids
    """Whom an agent copies; -1 for agents that decide for themselves."""
    leader_distance: Ids
    gaps: Floats
    shared_start: bool
    quiet: float
    """θ of quiet talk; negative: everything is told."""
    always_tells: Flags
    """Per agent: leaders are never quiet."""
    copies: Ints
    """[hop, agent]: messages that agents so many hops away send of one message (quiet talk)."""
    tuning: Tuning


class Ring(NamedTuple):
    """The samples of the last rounds, [slot, agent]; round t is in slot t mod slots."""

    arm: Ids
    x: Floats
    need: Floats
    """The rank from which the sample surely stays to the end; 0: whatever its rank (trimmed mean). Its bin
    (MEDIAN_BOUND)."""
    power: Floats
    """|x|^p, where `need` is above 0 (trimmed mean)."""
    order: Ids
    """[slot, .]: agents sorted by arm, then id."""
    start: Ids
    """[slot, arm]: where the agents of an arm begin in `order`."""
    told: Flags
    """Whether anybody hears of it. Those who do not tell are not in `order`."""


class Calendar(NamedTuple):
    """Samples that leave a trimmed mean before the end: a chain per round, through reused places."""

    head: Ids
    after: Ids
    place: Ints
    """arm * learners + learner."""
    x: Floats
    spare: Ints
    """[first free place or -1, places ever used]."""


class Rows(NamedTuple):
    """What agents tell of all arms (KMP-UCB): [slot, arm, agent]."""

    mean: Floats
    n: Floats
    top: Ids
    """[slot, arm, .]: all agents, those who know most first, equal ones by id (for dense hops)."""
    news: Ids
    """[slot, arm, .]: who knows more than a round ago; so many as `n_news` says (for sparse hops)."""
    n_news: Ids
    left: Words
    """Who has not heard anybody yet, while one row after the other is told (for dense hops)."""


class Bounds(NamedTuple):
    """What indices are estimated from: [arm, learner] and, in `first`, [learner]."""

    power: Floats
    """n^-exponent at a count not far below the present one, and in `inverse` one over that count."""
    inverse: Floats
    first: Floats
    """The largest index, of estimators that bring their own."""


class State(NamedTuple):
    """What a trial changes. Two-dimensional arrays are [arm, learner] unless said otherwise."""

    n: Floats
    """Samples that came in."""
    total: Floats
    """Sum of those in the mean (RUNNING)."""
    mean: Floats
    known: Floats
    """For what `mean` holds, with `groups`: size and number of groups, or n and L (stored samples)."""
    groups: Floats
    best_mean: Floats
    """The best informed estimates in reach (KMP-UCB)."""
    best_n: Floats
    heard_n: Floats
    """The largest count ever heard of an arm, from whom, and how many hops away that agent is (KMP-UCB)."""
    heard_from: Ids
    heard_hop: Ids
    pool: Floats
    """Samples (CATONI), or their prefix sums hi and lo (MEDIAN_OF_MEANS), list after list."""
    pool_start: Ints
    changed: Flags
    """Per arm, whether any n changed since the last decision."""
    sure_x: Floats
    """Per arm, a sample of at most this size stays to the end in every learner's mean."""
    action: Ids
    """Per learner."""
    bounds: Bounds
    pulls: Ints
    """[agent, arm]."""
    mark: Ints
    """[the next checkpoint]."""
    scratch: Floats
    begins: Flags
    """Per learner, whether it pulls an arm it has not heard of (shared start)."""
    asks: Flags
    """Per learner, whether it looks at its means in this round; without an imperfect world all do."""
    sent: Ints
    """[messages sent so far] (quiet talk)."""


class Streams(NamedTuple):
    """Means that keep a few numbers per arm and learner; what a kind does not use is empty."""

    upper: Floats
    """The index, of estimators that bring their own."""
    top: Floats
    """[arm, learner, .]: the largest samples (CLIPPED, SELF_TUNED)."""
    filled: Ids
    rest: Floats
    squares: Floats
    centre: Floats
    """The centre (SELF_TUNED), or where the walk is (HUBER_SGD)."""
    pilot: Floats
    room: Floats
    """Where a pilot is put in order."""
    counts: Ids
    """[arm, learner, bin] (MEDIAN_BOUND)."""
    place: Ids
    """[mean or index, arm, learner]: a bin, and in `below` how many samples are below it."""
    below: Ids
    level: Floats
    """The level of the next samples (ROBUST_MOSS); 1 where nothing was clipped (CLIPPED)."""
    clip: Floats
    """Where samples are clipped (ROBUST_MOSS), the scale (HUBER_SGD)."""
    arms: Ids
    """What a learner gets in a round: arms, and in `xs` the samples (or their bins)."""
    xs: Floats


class Sums(NamedTuple):
    """The part of the state that a delivery touches: a call counts the references of all it is given."""

    n: Floats
    total: Floats
    changed: Flags


class Trimming(NamedTuple):
    """The part of the rules by which a sample stays or leaves."""

    u: float
    p: float
    L: Floats


class Memory(NamedTuple):
    """All that a trial writes to between two blocks."""

    state: State
    ring: Ring
    calendar: Calendar
    rows: Rows
    streams: Streams


@kernel
def fill_powers(powers: Floats, exponent: float) -> None:
    """powers[n] = n^-exponent."""
    powers[0] = np.inf
    for n in range(1, powers.shape[0]):
        powers[n] = shrinkage(float(n), exponent)


@kernel
def fill_radius_scales(
    scales: Floats, levels: Floats, root: float, c: float, shift: float, exponent: float
) -> None:
    """The radius at n = 1 of every level, with a constant c."""
    for t in range(levels.shape[0]):
        scales[t] = radius_scale(levels[t], root, c, shift, exponent)


@kernel
def fill_factor_scales(scales: Floats, levels: Floats, root: float, zeta: float, exponent: float) -> None:
    """The radius at n = 1 of every level, with a factor zeta."""
    for t in range(levels.shape[0]):
        scales[t] = factor_scale(levels[t], root, zeta, exponent)


@part
def record(t: int, mark: Ints, pulls: Ints, gaps: Floats, output: Output) -> None:
    """If round t is the next checkpoint, note every agent's regret so far."""
    if t != output.marks[mark[0]]:
        return
    for v in range(pulls.shape[0]):
        regret = 0.0
        for arm in range(gaps.shape[0]):
            regret += pulls[v, arm] * gaps[arm]
        output.agent_regret[mark[0], v] = regret
    mark[0] = min(mark[0] + 1, output.marks.shape[0] - 1)
