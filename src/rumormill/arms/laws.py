"""Reward laws in closed form: Gaussian, log-normal, two-point, Bernoulli, empirical, Student t, Pareto."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Arm, integrate, require_finite, require_positive
from rumormill.errors import InputError
from rumormill.validate import eps as check_eps
from rumormill.validate import inside, rewards_in_range


@dataclass(frozen=True, kw_only=True)
class Gaussian(Arm):
    """The normal law with mean loc and standard deviation scale.

    Parameters
    ----------
    loc : float, default 0.0
        Mean, in the unit of rewards
    scale : float, default 1.0
        Standard deviation, in the unit of rewards

    Examples
    --------
    >>> import rumormill as rm
    >>> round(rm.Gaussian(loc=3.0, scale=2.0).moment(2), 9)
    13.0

    References
    ----------
    Johnson, Kotz and Balakrishnan (1994), "Continuous univariate distributions".
    """

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_finite("Gaussian", loc=self.loc)
        require_positive("Gaussian", scale=self.scale)

    def at_mean(self, mean: float) -> Gaussian:
        return replace(self, loc=mean)

    @property
    def mean(self) -> float:
        return float(self.loc)

    @property
    def tail_index(self) -> float:
        return math.inf

    @property
    def sub_gaussian_scale(self) -> float:
        return float(self.scale)

    def standard(self) -> tuple[Arm, float, float]:
        return Gaussian(), float(self.loc), float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        draws = rng.standard_normal(size)
        draws *= self.scale
        draws += self.loc
        return draws

    def _moment(self, p: float, center: float) -> float:
        from scipy.special import hyp1f1

        shift = (self.loc - center) / self.scale
        centred = 2 ** (p / 2) * math.gamma((1 + p) / 2) / math.sqrt(math.pi)
        return float(self.scale**p * centred * hyp1f1(-p / 2, 0.5, -(shift**2) / 2))


@dataclass(frozen=True, kw_only=True)
class LogNormal(Arm):
    """shift + exp(N) with N Gaussian of mean mu and standard deviation sigma.

    All moments are finite, but grow so fast that samples of moderate size look heavy-tailed.

    Parameters
    ----------
    mu : float, default 0.0
        The mean of the logarithm.
    sigma : float, default 1.0
        The standard deviation of the logarithm.
    shift : float, default 0.0
        Added to every draw.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.LogNormal(sigma=1.0).at_mean(2.0).mean
    2.0

    References
    ----------
    Johnson, Kotz and Balakrishnan (1994), "Continuous univariate distributions".
    """

    mu: float = 0.0
    sigma: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        require_finite("LogNormal", mu=self.mu, shift=self.shift)
        require_positive("LogNormal", sigma=self.sigma)

    def at_mean(self, mean: float) -> LogNormal:
        return replace(self, shift=mean - replace(self, shift=0.0).mean)

    @property
    def mean(self) -> float:
        try:
            return self.shift + math.exp(self.mu + self.sigma**2 / 2)
        except OverflowError:
            raise InputError(f"the mean of {self!r} is beyond the largest float: lower mu or sigma") from None

    @property
    def tail_index(self) -> float:
        return math.inf

    def standard(self) -> tuple[Arm, float, float]:
        return LogNormal(sigma=float(self.sigma)), float(self.shift), math.exp(self.mu)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        draws = rng.standard_normal(size)
        draws *= self.sigma
        np.exp(draws, out=draws)
        draws *= math.exp(self.mu)
        draws += self.shift
        return draws

    def _moment(self, p: float, center: float) -> float:
        scale = math.exp(self.mu)
        root = (center - self.shift) / scale
        if root == 0:
            return math.exp(p * self.mu + (p * self.sigma) ** 2 / 2)

        def integrand(n: float) -> float:
            grown = math.exp(self.sigma * n)
            return float(abs(grown - root) ** p * math.exp(-(n**2) / 2) / math.sqrt(2 * math.pi))

        # The mass lies around n = 0 (the constant's part) and n = p sigma (the exponential's part).
        peak = p * self.sigma
        corners = {-13.0, 0.0, peak, peak + 13.0}
        if root > 0:
            kink = math.log(root) / self.sigma
            corners |= {kink} if -13 < kink < peak + 13 else set()
        ordered = sorted(corners)
        size = integrand(0.0) + integrand(peak)
        total = sum(integrate(integrand, low, high, size=size) for low, high in pairwise(ordered))
        return float(scale**p * total)


@dataclass(frozen=True, kw_only=True)
class TwoPoint(Arm):
    """`high` with the given probability, else `low`.

    Parameters
    ----------
    low : float, default 0.0
        The smaller value.
    high : float, default 1.0
        The larger value.
    probability : float
        The probability of the larger value.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.TwoPoint(probability=0.25, high=4.0).mean
    1.0

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), theorem 2: the arms of the lower bound.
    """

    low: float = 0.0
    high: float = 1.0
    probability: float

    def __post_init__(self) -> None:
        require_finite("TwoPoint", low=self.low, high=self.high)
        if not self.low < self.high:
            raise InputError(
                f"TwoPoint: low = {self.low!r}, high = {self.high!r} is not allowed: low must be below high"
            )
        inside("TwoPoint: probability", self.probability, 0, 1)

    def at_mean(self, mean: float) -> TwoPoint:
        by = mean - self.mean
        return replace(self, low=self.low + by, high=self.high + by)

    @property
    def mean(self) -> float:
        return self.low * (1 - self.probability) + self.high * self.probability

    @property
    def tail_index(self) -> float:
        return math.inf

    @property
    def sub_gaussian_scale(self) -> float:
        """The smallest there is (Kearns and Saul 1998): (high - low) √((1 - 2q)/(2 ln((1 - q)/q)))."""
        q = self.probability
        proxy = 0.25 if abs(q - 0.5) < 1e-6 else (1 - 2 * q) / (2 * math.log((1 - q) / q))
        return float((self.high - self.low) * math.sqrt(proxy))

    def standard(self) -> tuple[Arm, float, float]:
        return TwoPoint(probability=float(self.probability)), float(self.low), float(self.high - self.low)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return np.where(rng.random(size) < self.probability, float(self.high), float(self.low))

    def _moment(self, p: float, center: float) -> float:
        low, high = abs(self.low - center) ** p, abs(self.high - center) ** p
        return float(low * (1 - self.probability) + high * self.probability)


@dataclass(frozen=True, kw_only=True)
class Bernoulli(TwoPoint):
    """Two fixed values, of which the mean decides the probability: clicks, successes, rare prizes.

    `at_mean` keeps the values and changes the probability, so that arms of different means differ in shape:
    of `TwoPoint`, moved, a single reward would tell the mean.

    Parameters
    ----------
    low : float, default 0.0
        The smaller value.
    high : float, default 1.0
        The larger value.
    probability : float, default 0.5
        The probability of the larger value.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Bernoulli(high=10.0).at_mean(0.5).probability
    0.05

    References
    ----------
    Johnson, Kemp and Kotz (2005), "Univariate discrete distributions".
    """

    probability: float = 0.5

    def at_mean(self, mean: float) -> Bernoulli:
        if not self.low < mean < self.high:
            raise InputError(
                f"Bernoulli: mean = {mean!r} is not allowed: between low = {self.low!r} and "
                f"high = {self.high!r}"
            )
        return replace(self, probability=(mean - self.low) / (self.high - self.low))


def two_point_pair(gap: float, eps: float) -> tuple[TwoPoint, TwoPoint]:
    """The two laws of the lower bound for heavy tails, which no policy can distinguish quickly.

    With g = (2 gap)^(1/eps) both put the rest of their mass on 0 and some on 1/g: the first g^(1+eps)
    (mean 2 gap, E|X|^(1+eps) = 1), the second g^(1+eps) - gap g (mean gap, E|X|^(1+eps) = 1/2).
    The lower bound itself is stated for gaps below 1/4; the laws exist below 1/2.

    Parameters
    ----------
    gap : float
        Difference of the two means, in (0, 1/2).
    eps : float
        Order of the bounded moment minus one, in (0, 1].

    Returns
    -------
    (TwoPoint, TwoPoint)
        The better and the worse law.

    Examples
    --------
    >>> import rumormill as rm
    >>> better, worse = rm.two_point_pair(gap=0.125, eps=1.0)
    >>> better.mean, worse.mean, better.moment(2)
    (0.25, 0.125, 1.0)

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), theorem 2.
    """
    inside("gap", gap, 0, 0.5)
    check_eps("eps", eps)
    g = (2 * gap) ** (1 / eps)
    if not g ** (1 + eps) > 0:
        raise InputError(f"gap = {gap!r} with eps = {eps!r} is too small for floats: raise one of them")
    # g^(1+eps) = 2 gap g, and half of it remains for the second law.
    better = TwoPoint(low=0.0, high=1 / g, probability=2 * gap * g)
    worse = TwoPoint(low=0.0, high=1 / g, probability=gap * g)
    return better, worse


@dataclass(frozen=True, eq=False)
class Empirical(Arm):
    """Draws with replacement from given data; its mean and moments are those of the data.

    Parameters
    ----------
    data : Sequence[float] | NDArray[np.float64]
        Values to draw from, in the unit of rewards; finite, at least one

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Empirical([1.0, 2.0, 6.0]).mean
    3.0

    References
    ----------
    docs/advice.md: replays of a log.
    """

    data: Sequence[float] | NDArray[np.float64]

    def __post_init__(self) -> None:
        try:
            data = np.array(self.data, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"Empirical: the data are not numbers ({error})") from None
        if data.ndim != 1 or data.size == 0:
            raise InputError(
                f"Empirical: data of shape {data.shape} are not allowed: give a list of at least one number"
            )
        bad = np.flatnonzero(~np.isfinite(data))
        if bad.size:
            raise InputError(f"Empirical: data[{bad[0]}] = {data[bad[0]]} is not finite: drop or repair it")
        rewards_in_range(float(np.abs(data).max()), "Empirical: a value")
        data.flags.writeable = False
        object.__setattr__(self, "data", data)

    def at_mean(self, mean: float) -> Empirical:
        return Empirical(np.asarray(self.data) + (mean - self.mean))

    def __repr__(self) -> str:
        return f"Empirical({len(self.data)} values, mean {self.mean:.6g})"

    @property
    def mean(self) -> float:
        return float(np.mean(self.data))

    @property
    def tail_index(self) -> float:
        return math.inf

    @property
    def sub_gaussian_scale(self) -> float:
        """Half the range (Hoeffding's lemma)."""
        return float(np.max(self.data) - np.min(self.data)) / 2

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        data = np.asarray(self.data, dtype=np.float64)
        return data[rng.integers(data.size, size=size)]

    def _moment(self, p: float, center: float) -> float:
        return float(np.mean(np.abs(np.asarray(self.data) - center) ** p))


@dataclass(frozen=True, kw_only=True)
class StudentT(Arm):
    """loc + scale T with T of Student's law with df degrees of freedom (any number above 0).

    E|X|^p is finite for p < df; for df <= 1 there is no mean.

    Parameters
    ----------
    df : float
        The degrees of freedom, above 1: the tail index.
    loc : float, default 0.0
        The mean.
    scale : float, default 1.0
        Factor on T, in the unit of rewards

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.StudentT(df=2.5).tail_index
    2.5

    References
    ----------
    Johnson, Kotz and Balakrishnan (1994), "Continuous univariate distributions".
    """

    df: float
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_positive("StudentT", df=self.df, scale=self.scale)
        require_finite("StudentT", loc=self.loc)

    def at_mean(self, mean: float) -> StudentT:
        return replace(self, loc=mean)

    @property
    def mean(self) -> float:
        if self.df <= 1:
            raise InputError(f"a Student law with df = {self.df!r} has no mean: choose df above 1")
        return float(self.loc)

    @property
    def tail_index(self) -> float:
        return float(self.df)

    def standard(self) -> tuple[Arm, float, float]:
        return StudentT(df=float(self.df)), float(self.loc), float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        draws = rng.standard_t(self.df, size)
        draws *= self.scale
        draws += self.loc
        return draws

    def _moment(self, p: float, center: float) -> float:
        from scipy.special import poch

        df, shift = self.df, abs(self.loc - center) / self.scale
        centred = df ** (p / 2) * math.gamma((1 + p) / 2) / math.sqrt(math.pi) / poch((df - p) / 2, p / 2)
        peak = poch(df / 2, 0.5) / math.sqrt(df * math.pi)
        total = float(centred)
        if shift:
            # E|T + shift|^p - E|T|^p, folded on the positive half line: it converges faster than
            # either moment alone.
            def difference(x: float) -> float:
                density = peak * math.exp(-(df + 1) / 2 * math.log1p(x**2 / df))
                return float((abs(x + shift) ** p + abs(x - shift) ** p - 2 * x**p) * density)

            def in_log(y: float) -> float:
                return difference(math.exp(y)) * math.exp(y)

            # The difference falls like x^(-2) at least, and 1e-20 of it is left beyond the last corner.
            size = centred + shift**p
            corners = sorted({1.0, shift, 2 * shift, 1e10 * max(1.0, shift)})
            total += integrate(difference, 0.0, corners[0], size=size)
            for low, high in pairwise(corners):
                total += integrate(in_log, math.log(low), math.log(high), size=size)
        return float(self.scale**p * total)


@dataclass(frozen=True, kw_only=True)
class Pareto(Arm):
    """shift + scale V, where V >= 1 and P(V > x) = x^(-tail).

    E|X|^p is finite for p < tail; for tail <= 1 there is no mean. The mean is
    shift + scale tail / (tail - 1); `Pareto.with_mean` chooses the shift for a wanted mean.

    Parameters
    ----------
    tail : float
        The tail index, above 1.
    scale : float, default 1.0
        The smallest value, before the shift.
    shift : float, default 0.0
        Added to every draw.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Pareto.with_mean(0.5, tail=3.0).shift
    -1.0

    References
    ----------
    Johnson, Kotz and Balakrishnan (1994), "Continuous univariate distributions".
    """

    tail: float
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        require_positive("Pareto", tail=self.tail, scale=self.scale)
        require_finite("Pareto", shift=self.shift)

    def at_mean(self, mean: float) -> Pareto:
        return replace(self, shift=mean - replace(self, shift=0.0).mean)

    @classmethod
    def with_mean(cls, mean: float, *, tail: float, scale: float = 1.0) -> Self:
        """The Pareto law that is shifted so as to have the given mean."""
        require_finite("Pareto", mean=mean)
        return cls(tail=tail, scale=scale, shift=mean - cls(tail=tail, scale=scale).mean)

    @property
    def mean(self) -> float:
        if self.tail <= 1:
            raise InputError(f"a Pareto law with tail = {self.tail!r} has no mean: choose tail above 1")
        return self.shift + self.scale * self.tail / (self.tail - 1)

    @property
    def tail_index(self) -> float:
        return float(self.tail)

    def standard(self) -> tuple[Arm, float, float]:
        return Pareto(tail=float(self.tail)), float(self.shift), float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        draws = rng.standard_exponential(size)
        draws /= self.tail
        np.exp(draws, out=draws)
        draws *= self.scale
        draws += self.shift
        return draws

    def _moment(self, p: float, center: float) -> float:
        root = (center - self.shift) / self.scale
        return float(self.scale**p * _pareto_moment(p, self.tail, root))


def _pareto_moment(p: float, tail: float, root: float) -> float:
    """E|V - root|^p for P(V > x) = x^(-tail), x >= 1."""
    if root == 0:
        return tail / (tail - p)
    if root <= 1:
        # w = 1/V turns it into tail ∫ (1 - root w)^p w^(tail-p-1) dw over (0, 1).
        return tail * integrate(
            lambda w: math.pow(1 - root * w, p), 0, 1, weight="alg", wvar=(tail - p - 1, 0)
        )
    from scipy.special import beta

    # Above the root in closed form, below it with x = ln V.
    above = float(root ** (p - tail) * beta(tail - p, p + 1))

    def below(x: float) -> float:
        return math.pow(abs(root - math.exp(x)), p) * math.exp(-tail * x)

    return tail * (above + integrate(below, 0, math.log(root), size=above + root**p / tail))
