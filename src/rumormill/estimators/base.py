"""Abstract classes of robust means: the estimator, its online form, the constants of its lemma.

Storage of samples: all of them in arrival order, or a sketch of the largest ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.errors import DataError, InputError
from rumormill.formulas import sketch_add, sketch_clipsum, sketch_root
from rumormill.validate import LARGEST_REWARD, NamedArguments


@dataclass(frozen=True)
class Theory:
    """Constants of a concentration lemma.

    With probability at least 1 - exp(-L), mean - mu <= m^(1/p) (c (L + shift) / n)^(eps/p);
    the same holds for mu - mean.
    """

    c: float
    shift: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is known when a stream starts. In a game all fields are set."""

    moments: Moments | None = None
    last_L: float = math.inf
    """Largest L of any query, which bounds what has to be stored."""
    horizon: int | None = None
    n_arms: int = 1
    group: int = 1
    """How many agents' samples the stream may get, the own included."""


class OnlineMean(ABC):
    """Online estimate of one stream of samples; the abstract class of all streams.

    L = ln(1/delta) is an argument of every query and must not decrease.

    Examples
    --------
    >>> import rumormill as rm
    >>> stream = rm.TrimmedMean().online(rm.Moments(eps=0.5, u=2.0, rho=1.5))
    >>> for x in (1.0, 0.5, 900.0):
    ...     stream.update(x)
    >>> stream.count, stream.mean(2.0)
    (3, 0.5)

    References
    ----------
    docs/semantics.md: the robust means and their radii.
    """

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of samples so far, stored or not."""

    @abstractmethod
    def update(self, x: float) -> None:
        """Add the next sample, in arrival order."""

    def extend(self, xs: Sequence[float]) -> None:
        """Add further samples, in arrival order."""
        for x in xs:
            self.update(x)

    @abstractmethod
    def mean(self, L: float) -> float:
        """The estimate at confidence L; +inf where the estimator is not defined."""

    def settle(self, L: float) -> object:
        """Take in samples that wait for the next question, as a question at L would."""
        return L

    def index(self, L: float) -> float:
        """The UCB index at L, of an estimator that computes its own; +inf: pull the arm."""
        raise TypeError(f"{type(self).__name__} has no index of its own: its radius comes from a Radius")

    def merge(self, other: Self) -> None:
        """Append the samples of another stream. Not every estimator allows it."""
        raise TypeError(f"{type(self).__name__} cannot be merged")

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The state as plain numbers, strings and lists; `from_state` restores it."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The stream that `state()` described."""


class Estimator(metaclass=NamedArguments):
    """Robust mean estimator; the abstract class of all estimators. A frozen description without state.

    `of` is the definition over a list of samples, `online` starts a stream that computes the same one sample
    at a time, `theory` has the constants of the concentration lemma. A user-defined estimator is a frozen
    dataclass; a spec names it as "module:Class".

    Examples
    --------
    >>> import rumormill as rm
    >>> estimator = rm.MedianOfMeans()
    >>> estimator.of([1.0, 2.0, 3.0, 1000.0], L=1.0, moments=rm.Moments(eps=0.5, u=2.0, rho=1.5))
    251.5
    >>> estimator.has_lemma, estimator.needs_moments, estimator.bounded_memory
    (True, True, False)

    References
    ----------
    docs/semantics.md: the robust means and their radii.
    """

    # Facts about the estimator. Where one depends on a parameter, the subclass has a property of that name.
    has_lemma: bool = True
    """Whether `theory` is backed by a concentration lemma; a baseline has none."""
    brings_index: bool = False
    """Whether streams compute `index(L)` themselves; the policy then takes neither c nor zeta."""
    needs_moments: bool = True
    """Whether moment bounds are required."""
    needs_horizon: bool = False
    """Whether the number of rounds is required."""
    bounded_memory: bool = False
    """Whether a stream stores far fewer values than it has samples; a node accepts no other estimator."""
    can_discount: bool = False
    """Whether its samples can be summed with weights that shrink; `clips`: each clipped on arrival."""
    clips: bool = True
    symmetric_only: bool = False
    """Whether the guarantee holds only for laws that are symmetric about their mean."""
    slack: float = 0.0
    """Relative growth of n or L after which the estimate is recomputed; 0: at every call."""

    @abstractmethod
    def moment(self, moments: Moments) -> float:
        """The bound m that enters the radius: u or rho."""

    @abstractmethod
    def theory(self, moments: Moments) -> Theory:
        """The constants of the concentration lemma."""

    @abstractmethod
    def valid(self, n: float, L: float, moments: Moments) -> bool:
        """Whether the concentration lemma covers n samples at confidence L."""

    def defined(self, n: float, L: float, moments: Moments) -> bool:
        """Whether the estimate itself exists for n samples (discounted: any number) at confidence L."""
        return n > 0

    @abstractmethod
    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        """The definition, over samples in arrival order; +inf where it is not defined."""

    def of_rows(self, samples: NDArray[np.float64], L: float, moments: Moments) -> NDArray[np.float64]:
        """The definition for every row of an array, up to rounding; vectorised where that is faster."""
        return np.array([self.of(row, L, moments) for row in samples.tolist()])

    def lemma_covers(self, c: float, moments: Moments) -> bool:
        """Whether the lemma holds for the radius with a number c, at every n and L."""
        return False

    @abstractmethod
    def online(self, moments: Moments, *, last_L: float = float("inf")) -> OnlineMean:
        """A new stream. No query exceeds last_L, which bounds what has to be stored."""

    def stream_for(self, terms: Terms) -> OnlineMean:
        """A new stream for a game; estimators that need more than moments read it from the terms."""
        return self.online(require_moments(self, terms.moments), last_L=terms.last_L)


def require_moments(estimator: Estimator, moments: Moments | None) -> Moments:
    """The moments; refused if there are none."""
    if moments is None:
        raise InputError(f"{type(estimator).__name__} needs moment bounds: give moments=")
    return moments


def check_level(L: float) -> None:
    """Refuse a confidence level that is no ln(1/delta) of a probability."""
    if not L >= 0:
        raise InputError(f"L = {L!r} is not allowed: L = ln(1/delta) is a number >= 0")


def check_sample(x: float) -> float:
    """The sample as a float; refused if not finite or too large."""
    x = float(x)
    if not -LARGEST_REWARD <= x <= LARGEST_REWARD:
        raise InputError(
            f"sample {x!r} is not allowed: samples are finite and at most {LARGEST_REWARD:g} in size; drop, "
            "repair or rescale it before"
        )
    return x


def check_same_kind(stream: OnlineMean, other: object) -> None:
    """Refuse to merge streams of two kinds."""
    if type(other) is not type(stream):
        raise InputError(
            f"a {type(other).__name__} cannot be merged into a {type(stream).__name__}: "
            "give two streams of one kind"
        )


def theory_power(base: float, exponent: float, moments: Moments) -> float:
    """base ** exponent for a theory constant, which explodes as eps goes to 0."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        raise InputError(
            f"eps = {moments.eps!r} is too small for c = 'theory': the constant {base:g}^{exponent:g} "
            "exceeds every float; give a number c or a factor zeta"
        ) from None


def check_kind(state: dict[str, Any], kind: str) -> None:
    """Refuse the state of another kind of stream."""
    if state.get("kind") != kind:
        raise DataError(
            f"state of kind {state.get('kind')!r} cannot be read as {kind!r}: use the class that wrote it"
        )


@dataclass(frozen=True, kw_only=True)
class OwnIndexEstimator(Estimator):
    """An estimator whose streams compute `index(L)`; `mean(L)` is the estimate that the index is built on."""

    brings_index = True
    has_lemma = False

    def moment(self, moments: Moments) -> float:
        raise self._no_radius()

    def theory(self, moments: Moments) -> Theory:
        raise self._no_radius()

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return False

    def _no_radius(self) -> InputError:
        name = type(self).__name__
        return InputError(f"{name} brings its own index: it takes neither c nor zeta; see its own parameters")

    def online(self, moments: Moments | None, *, last_L: float = math.inf) -> OnlineMean:
        return self.stream_for(Terms(moments=moments, last_L=last_L))

    @abstractmethod
    def stream_for(self, terms: Terms) -> OnlineMean:
        """A fresh stream."""

    def of(self, samples: Sequence[float], L: float, moments: Moments | None) -> float:
        """The mean of a fresh stream that took the samples."""
        return self._fed(samples, L, Terms(moments=moments)).mean(L)

    def index_of(self, samples: Sequence[float], L: float, terms: Terms | None = None) -> float:
        """The index of a fresh stream that took the samples."""
        return self._fed(samples, L, Terms() if terms is None else terms).index(L)

    def _fed(self, samples: Sequence[float], L: float, terms: Terms) -> OnlineMean:
        check_level(L)
        stream = self.stream_for(terms)
        for x in samples:
            stream.update(x)
        return stream


def fair_share(estimator: Estimator, terms: Terms, group: int | None) -> float:
    """T group / K, the number of samples per arm if all arms were pulled equally often."""
    if terms.horizon is None:
        name = type(estimator).__name__
        raise InputError(f"{name} needs to know the number of rounds: give the seat a horizon")
    return terms.horizon * (terms.group if group is None else group) / terms.n_arms


# A value over all samples is kept until their number (or L) has grown by 2 %: some 50 ln(n) evaluations.
SLACK = 0.02


class StoredSamples:
    """All samples in arrival order, in an array that doubles when it is full."""

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self.count = len(samples)
        self._room = np.empty(max(64, self.count))
        self._room[: self.count] = samples

    @property
    def values(self) -> NDArray[np.float64]:
        """The samples."""
        return self._room[: self.count]

    def add(self, x: float) -> None:
        """Append one sample."""
        self._reserve(self.count + 1)
        self._room[self.count] = x
        self.count += 1

    def extend(self, other: StoredSamples) -> None:
        """Append the samples of another store."""
        n = self.count + other.count
        self._reserve(n)
        self._room[self.count : n] = other.values
        self.count = n

    def _reserve(self, n: int) -> None:
        if n > len(self._room):
            wider = np.empty(2 * n)
            wider[: self.count] = self.values
            self._room = wider


class StoreAllMean(OnlineMean):
    """Stream of an estimator that stores every sample."""

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self._samples = StoredSamples(samples)

    @property
    @abstractmethod
    def parameters(self) -> dict[str, float]:
        """What two streams must have in common to be merged."""

    @property
    def count(self) -> int:
        return self._samples.count

    def update(self, x: float) -> None:
        self._samples.add(check_sample(x))

    def merge(self, other: Self) -> None:
        """Append the other stream."""
        check_same_kind(self, other)
        if self.parameters != other.parameters:
            names = ", ".join(self.parameters)
            mine, others = (tuple(each.parameters.values()) for each in (self, other))
            raise InputError(
                f"streams with ({names}) = {mine} and {others} cannot be merged: both must have the same"
            )
        self._samples.extend(other._samples)


def outgrown(now: float, last: float, slack: float = SLACK) -> bool:
    """Whether n or L has grown by more than the slack since the last computation."""
    return now > (1.0 + slack) * last


class TopSketch:
    """Clipped sums for any threshold, O(1) amortised per sample, bounded memory.

    Stores the m samples of largest |y| (m is `room`) and the sums of y and y² over all others. A clipped sum
    is exact for every threshold above the least stored sample; so is the M that solves sum min(y²/M², 1) = c,
    while c < m. Mergeable, and independent of the arrival order up to rounding.
    """

    def __init__(self, room: int) -> None:
        self.count = 0
        self._top = [0.0] * room
        self._filled = 0
        self._rest = 0.0
        self._squares = 0.0

    def add(self, y: float) -> None:
        """Add one sample."""
        self.count += 1
        self._filled, self._rest, self._squares = sketch_add(
            self._top, self._filled, y, self._rest, self._squares
        )

    def clipsum(self, low: float, high: float) -> float:
        """The sum of all samples clipped to [-low, high]."""
        return sketch_clipsum(self._top, self._filled, self._rest, low, high)

    def trimmed(self, level: float) -> tuple[float, float]:
        """The sums of y and y² over all |y| <= level; a full sketch trims nothing up to its least sample."""
        if self._filled == len(self._top):
            level = max(level, abs(self._top[-1]))
        kept = [y for y in self._top[: self._filled] if abs(y) <= level]
        return self._rest + sum(kept), self._squares + sum(y * y for y in kept)

    def root(self, c: float) -> float:
        """The M > 0 with sum min(y²/M², 1) = c; 0 if no more than c samples differ from zero."""
        return sketch_root(self._top, self._filled, self._squares, c)

    def merge(self, other: TopSketch) -> None:
        """Add the samples of another sketch with the same centre and room."""
        count = self.count + other.count
        self._rest += other._rest
        self._squares += other._squares
        for y in other._top[: other._filled]:
            self.add(y)
        self.count = count

    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "room": len(self._top),
            "count": self.count,
            "top": self._top[: self._filled],
            "rest": self._rest,
            "squares": self._squares,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TopSketch:
        """The sketch that `state()` described."""
        sketch = cls(int(state["room"]))
        listed = [float(y) for y in state["top"]]
        sketch._top[: len(listed)] = listed
        sketch._filled = len(listed)
        sketch.count = int(state["count"])
        sketch._rest, sketch._squares = float(state["rest"]), float(state["squares"])
        return sketch
