"""The arrays of a trial. Agents that keep samples are called learners; followers may keep none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill import formulas
from rumormill.default_rule import Beliefs
from rumormill.kernels.jit import kernel, part, step

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Mask = NDArray[np.float32]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

shrinkage = step(formulas.shrinkage)

# Kinds of estimator.
RUNNING, MEDIAN_OF_MEANS, CATONI = 0, 1, 2
CLIPPED, SELF_TUNED, MEDIAN_BOUND, ROBUST_MOSS, HUBER_SGD = 3, 4, 5, 6, 7
ORIGIN_MEDIAN = 8  # only in the kernel of lossy channels, which plays perfect ones too
DEFAULT = 9  # the beliefs of rm.Default()
# Which samples are forgotten; 0: none.
WINDOW, DISCOUNT, RESTART = 1, 2, 3
ANY = -1  # in Features: all but DEFAULT, all ways to forget, told apart while playing


class RewardLaw(NamedTuple):
    """Arm k pays loc[k] + scale[k] z; all arms share column 0 of the draws, or each has its own."""

    shared: bool
    loc: Floats
    scale: Floats


class Output(NamedTuple):
    """Results: regret of every agent at the checkpoints, and every action unless `actions` has no rows."""

    marks: Ints
    """The rounds of the checkpoints."""
    agent_regret: Floats
    actions: Ints
    messages: Ints
    """Sent so far, at the checkpoints; filled only where the number depends on decisions."""
    agent_rounds: Ints
    """Pulls so far, over all agents, at the checkpoints; filled only where agents may be absent."""


class Reach(NamedTuple):
    """Which learners receive which origins after how many hops; hop h is at index h - 1.

    A hop is stored as bitmasks (dense) or as a list of receivers per origin (sparse, CSR). Learners are
    numbered from 0.
    """

    gamma: int
    """The hop budget."""
    learners: Ids
    """The agent of each learner."""
    learner_of: Ids
    """The learner of each agent, or -1."""
    dense: Ids
    """Per hop, which of `words` it uses, or -1 for a list."""
    words: Words
    """[., word, origin]: bitmasks of the learners exactly so many hops away, 64 in a word."""
    by_origin: Words
    """[., origin, word]: the same, for KMP-UCB only."""
    ptr: Ints
    """[hop, origin]: where the receivers of an origin begin in `receivers` (empty for dense hops)."""
    receivers: Ids


class Sources(NamedTuple):
    """The origins that a learner receives, in arrival order: by hop, then by id."""

    ptr: Ints
    """[learner, hop]: the sources h hops away end there; at hop 0 they begin."""
    ids: Ids


class EstimatorConstants(NamedTuple):
    """Parameters of the means in kernels/means_sketch.py; each kind uses a few of them."""

    clip_budget: float
    """τ u (CLIPPED)."""
    C: float
    kappa: float
    omega: float
    guard: float
    top: int
    """How many of the largest samples a sketch keeps."""
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
    factor_root: float
    """The factor times u^(1/p)."""
    budgets: Floats
    """Per learner, T group / K."""
    edges: Floats
    """Upper edges of the histogram's bins."""
    store: int
    """Samples stored per arm (DEFAULT)."""
    slack: float
    """By how much n or L may grow before a root is computed again (CATONI)."""


class Rules(NamedTuple):
    """What does not change during a trial."""

    n_arms: int
    horizon: int
    kind: int
    trims: bool
    shares_rows: bool
    """KMP-UCB: per arm, use the estimate with most samples in reach."""
    u: float
    p: float
    rho: float
    exponent: float
    """The confidence radius shrinks as n^-exponent."""
    scale: Floats
    """Per round, the radius at n = 1."""
    L: Floats
    """Per round, ln(1/δ)."""
    least_n: Floats
    """Per round, an arm with fewer samples must be pulled."""
    powers: Floats
    """n^-exponent for small n."""
    by_table: bool
    """Indices come from sums and counts at once: `powers` has all counts, and there are many (RUNNING)."""
    leader_of: Ids
    """The agent whose actions an agent copies; -1 for agents that decide for themselves."""
    leader_distance: Ids
    gaps: Floats
    first_rounds: int
    """The number of initial rounds, in which arms are not decided: K, or 0 with a prior on all arms."""
    shared_start: bool
    quiet: float
    """θ of quiet messaging; negative: every sample is sent."""
    has_prior: bool
    width: float
    """Thompson draws about the rows with most samples, so wide (HUBER_SGD); 0: indices."""
    allowed: Flags
    """[1 or rounds, agent, arm]: which arms may be pulled; empty: all, and one is pulled."""
    forget: int = 0


class Features(NamedTuple):
    """What a game uses of the kernels, known before they are compiled."""

    kind: int
    extras: bool
    """A shared start, quiet messaging, a prior, or rankings."""
    forget: int = 0
    ranks: bool = False
    """Arms are ranked: some are not always allowed, or several are tried in a round."""

    @property
    def are_plain(self) -> bool:
        """Whether running sums are all there is."""
        return self.kind == RUNNING and not self.extras and not self.forget


class MessageRing(NamedTuple):
    """The samples of the last rounds, [slot, agent]; round t is in slot t mod slots.

    Where agents try k arms in a round: [slot, source], source = agent * k + place in its ranking. Places past
    the last arm that is allowed repeat the first one; they are neither sent nor counted.
    """

    arm: Ids
    x: Floats
    need: Floats
    """The rank from which the sample stays in a trimmed mean to the end; 0: at any rank. Its bin
    (MEDIAN_BOUND)."""
    power: Floats
    """|x|^p, where `need` is above 0 (trimmed mean)."""
    order: Ids
    """[slot, .]: agents sorted by arm, then id; those that do not send are left out."""
    start: Ids
    """[slot, arm]: where the agents of an arm begin in `order`."""
    sent: Flags
    """Whether the sample was sent."""


class Calendar(NamedTuple):
    """Samples that leave a trimmed mean before the end: a linked list per round, in reused entries."""

    head: Ids
    after: Ids
    place: Ints
    """arm * learners + learner."""
    x: Floats
    spare: Ints
    """[first free entry or -1, entries ever used]."""


class SentRows(NamedTuple):
    """Means and counts of all arms that agents send (KMP-UCB): [slot, arm, agent]."""

    mean: Floats
    n: Floats
    top: Ids
    """[slot, arm, .]: all agents by count, largest first, ties by id (for dense hops)."""
    updated: Ids
    """[slot, arm, .]: agents whose count grew since the round before, `n_updated` of them (sparse hops)."""
    n_updated: Ids
    left: Words
    """Bitmask of the receivers without a row yet, while rows are delivered by count (dense hops)."""


class IndexBounds(NamedTuple):
    """What bounds of the UCB index are computed from: [arm, learner] and, in `first`, [learner]."""

    power: Floats
    """n^-exponent at a count not far below the present one, and in `inverse` one over that count. What arms
    are ranked by, where they are; in `inverse`, in a start."""
    inverse: Floats
    first: Floats
    """The largest index, of estimators that compute their own."""


class State(NamedTuple):
    """What every trial changes. Two-dimensional arrays are [arm, learner] unless said otherwise."""

    n: Floats
    """Samples received."""
    total: Floats
    """Sum of those in the mean (RUNNING)."""
    mean: Floats
    best_mean: Floats
    """The estimates with most samples in reach (KMP-UCB)."""
    best_n: Floats
    received_n: Floats
    """The largest count ever received of an arm, its origin, and how many hops away that is (KMP-UCB)."""
    received_from: Ids
    received_hop: Ids
    changed: Flags
    """Per arm, whether any n changed since the last decision."""
    sure_x: Floats
    """Per arm, a sample of at most this size stays to the end in every learner's mean."""
    action: Ids
    """Per learner."""
    bounds: IndexBounds
    pulls: Ints
    """[agent, arm]."""
    mark: Ints
    """[index of the next checkpoint]."""
    starts: Flags
    """Per learner, whether it pulls an arm without samples (shared start)."""


class DrawState(NamedTuple):
    """Thompson draws (DEFAULT, or a width): [learner]."""

    keys: Words
    """Of a trial, and in `now` those of the round."""
    now: Words
    u: Floats
    """Uniforms of one arm, or draws."""
    best: Floats
    """The largest draw."""
    tails: Floats
    """The most that a draw in the tails of the normal law may be."""
    total: Floats
    """Samples of all arms."""
    level: Floats
    """ln(1 + N), of an N not far below the present one, in `level_at`."""
    level_at: Floats
    short: Floats
    """At least what any arm misses of its share."""
    forced: Ids
    """The arm to pull whatever is drawn, or -1."""


class SketchState(NamedTuple):
    """Means that keep a few numbers per arm and learner; what a kind does not use is empty."""

    upper: Floats
    """The index, of estimators that compute their own."""
    top: Floats
    """[arm, learner, .]: the largest samples (CLIPPED, SELF_TUNED)."""
    filled: Ids
    rest: Floats
    squares: Floats
    centre: Floats
    """The centre (SELF_TUNED), or the current iterate (HUBER_SGD)."""
    pilot: Floats
    room: Floats
    """Workspace to sort a pilot."""
    counts: Ids
    """[arm, learner, bin] (MEDIAN_BOUND)."""
    place: Ids
    """[mean or index, arm, learner]: a bin, and in `below` how many samples are below it."""
    below: Ids
    level: Floats
    """The level of the next samples (ROBUST_MOSS); 1 where nothing was clipped (CLIPPED); the size up
    to which a sample changes sums alone (DEFAULT); the reach of a step, 0: none yet (HUBER_SGD)."""
    clip: Floats
    """Where samples are clipped (ROBUST_MOSS), the scale (HUBER_SGD)."""
    arms: Ids
    """What a learner receives in a round: arms, and in `xs` the samples (or their bins)."""
    xs: Floats
    draws: DrawState
    beliefs: Beliefs
    """[arm, learner], [learner, arm, .] and, of `now`, [., learner] (DEFAULT); `n` is that of State."""


class PriorArrays(NamedTuple):
    """Priors, [arm, learner]; empty where there are none."""

    probe: float
    doubt: float
    """What radii are multiplied by before they contradict a prior."""
    mean: Floats
    weight: Floats
    """In samples; 0 once it is dropped."""
    spread: Floats
    taken: Floats
    """[learner]: fresh samples of all arms."""
    upper: Floats
    """The index of fresh samples and prior together."""


class ForgetState(NamedTuple):
    """Samples that are not forgotten. Means and counts of `State` are those as of the last decision."""

    streams: Any
    """A Memory with means of its own, [arm, column]: a column per learner, then one more of each (WINDOW)."""
    span: float
    """W: received rows are used until so many more samples were taken in."""
    discount: float
    L: float
    """Of clipped samples, with the budget τ u or +inf (DISCOUNT)."""
    budget: float
    taken: Floats
    """[learner]: samples taken in."""
    present: Ints
    """[learner]: the column of the stream that answers, the older one."""
    last: Floats
    """[arm, learner]: the number of its newest sample (DISCOUNT)."""
    heard_at: Floats
    """[learner, origin]: samples taken in when its newest row came (KMP-UCB)."""
    near_ptr: Ints
    near: Ids
    """Whose rows a learner may hear, ascending: near[near_ptr[j] : near_ptr[j + 1]] (KMP-UCB)."""
    cusum: Floats
    """[arm, learner, .]: centre, scale, offset, both sums, the first samples (RESTART)."""


class GeneralState(NamedTuple):
    """What running sums on a perfect channel do not need: other estimators, quiet messaging, faults."""

    constants: EstimatorConstants
    sources: Sources
    reach: Reach
    """Of sources, where agents try several arms in a round."""
    always_sends: Flags
    """Per agent: leaders are never quiet."""
    copies: Ints
    """[hop, agent]: messages that agents so many hops away send of one message (quiet messaging)."""
    n_sent: Ints
    """[messages sent so far]."""
    needs_mean: Flags
    """Per learner, whether its means are used in this round; on a perfect channel always."""
    known: Floats
    """[arm, learner]: for what `mean` holds, with `groups`: size and number of groups, or n and L."""
    groups: Floats
    pool: Floats
    """Samples (CATONI), or their prefix sums hi and lo (MEDIAN_OF_MEANS), list after list."""
    pool_start: Ints
    scratch: Floats
    sketches: SketchState
    prior: PriorArrays
    forget: Any
    """ForgetState, or () where nothing is forgotten."""


class RunningSums(NamedTuple):
    """The part of the state that a delivery changes: fewer arguments compile faster."""

    n: Floats
    total: Floats
    changed: Flags


class Trimming(NamedTuple):
    """The part of the rules that trimming uses."""

    u: float
    p: float
    L: Floats


class Memory(NamedTuple):
    """What a trial keeps between two blocks of rounds."""

    state: State
    ring: MessageRing
    calendar: Calendar
    rows: SentRows
    general: GeneralState
    """Empty for running sums on a perfect channel without other features; parts of it are, too."""


@kernel
def raise_to(exponent: float, values: Floats) -> None:
    """Replace numbers by their powers, with the bits of Python's; numpy's are others."""
    for i in range(values.shape[0]):
        values[i] **= exponent


@part
def compute_regret(pulls: Ints, gaps: Floats, regret: Floats) -> None:
    """The regret so far of every agent of `pulls`."""
    for v in range(pulls.shape[0]):
        total = 0.0
        for arm in range(gaps.shape[0]):
            total += pulls[v, arm] * gaps[arm]
        regret[v] = total


@part
def record_actions(t: int, arms: Ids, actions: Ints) -> None:
    """Store the arms of round t, if actions are kept."""
    if actions.shape[0] > 0:
        for v in range(arms.shape[0]):
            actions[t - 1, v] = arms[v]


@part
def record(t: int, mark: Ints, pulls: Ints, gaps: Floats, output: Output) -> None:
    """If round t is the next checkpoint, store every agent's regret so far."""
    if t == output.marks[mark[0]]:
        compute_regret(pulls, gaps, output.agent_regret[mark[0]])
        mark[0] = min(mark[0] + 1, output.marks.shape[0] - 1)
