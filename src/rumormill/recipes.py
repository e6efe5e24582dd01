"""Recipes: what to report for a request to a model provider, as one number with a unit and an objective.

A node compares means of what is reported. Each recipe says which mean that is; `unit` and `objective` go
into the mesh file, from where the dashboard, metrics and verdicts have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rumormill.errors import InputError
from rumormill.validate import between, is_number, positive, refused, whole

LARGEST = 1e9


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """Seconds to the first token, plus the price, plus what a failure costs.

    Minimises E[min(time to first token, timeout)] + λ E[dollars] + failure · P(failure) + retry · E[retries].
    A request without a token before the time-out is censored: only that it took longer is known. It counts as
    a failure after `timeout` seconds, so no value exceeds timeout + λ · dollars + failure + retries · retry.

    Parameters
    ----------
    timeout : float
        Seconds after which the gateway ends the request.
    seconds_per_dollar : float, default 0.0
        λ, the seconds of waiting that are worth one dollar.
    failure : float, optional
        Seconds that a failure costs beside the time until it was seen; by default `timeout`. If the gateway
        tries again elsewhere and every attempt is a decision, about the time that an attempt takes.
    retry : float, default 0.0
        Seconds for each retry that the same decision needed.

    Examples
    --------
    >>> recipe = FirstToken(timeout=30.0, seconds_per_dollar=50.0, failure=2.0)
    >>> recipe.value(0.4, dollars=0.002)
    0.5
    >>> recipe.value(0.25, failed=True)  # refused after a quarter of a second
    2.25
    >>> recipe.value(None)  # no token before the time-out
    32.0
    >>> recipe.unit, recipe.objective
    ('s', 'minimise')

    References
    ----------
    docs/routing.md: how to choose λ.
    """

    unit: ClassVar[str] = "s"
    objective: ClassVar[Literal["minimise", "maximise"]] = "minimise"
    timeout: float
    seconds_per_dollar: float = 0.0
    failure: float | None = None
    retry: float = 0.0

    def __post_init__(self) -> None:
        positive("timeout", self.timeout)
        between("seconds_per_dollar", self.seconds_per_dollar, 0.0, LARGEST)
        between("failure", 0.0 if self.failure is None else self.failure, 0.0, LARGEST)
        between("retry", self.retry, 0.0, LARGEST)

    def value(
        self, seconds: float | None, *, dollars: float = 0.0, failed: bool = False, retries: int = 0
    ) -> float:
        """The cost of one request, in seconds.

        - `seconds`: until the first token, or until the failure was seen; None if neither came in time.
        - `dollars`: the price of the request, 0 if unknown.
        - `failed`: whether it ended without an answer.
        - `retries`: how often it was tried again under the same decision.
        """
        late = seconds is None or seconds >= self.timeout
        waited = self.timeout if seconds is None else min(_at_least_0("seconds", seconds), self.timeout)
        failure = self.timeout if self.failure is None else self.failure
        return (
            waited
            + self.seconds_per_dollar * _at_least_0("dollars", dollars)
            + (failure if failed or late else 0.0)
            + self.retry * whole("retries", retries, 0)
        )


@dataclass(frozen=True, kw_only=True)
class TokenRate:
    """Tokens per second of the answer.

    Maximises the mean over requests of tokens / seconds: every request counts the same, however long its
    answer is. (Tokens per second of a whole day are another mean: long answers count more there.) A failure
    is a rate of 0.

    Parameters
    ----------
    from_first_token : bool, default False
        Count seconds from the first token on, not from the request: speed of reading, without the wait.

    Examples
    --------
    >>> TokenRate().value(120, seconds=3.0, first_token=1.0)
    40.0
    >>> TokenRate(from_first_token=True).value(120, seconds=3.0, first_token=1.0)
    60.0
    >>> TokenRate().value(0, seconds=1.5, failed=True)
    0.0
    >>> TokenRate.unit, TokenRate.objective
    ('tokens/s', 'maximise')

    References
    ----------
    docs/routing.md: what to optimise.
    """

    unit: ClassVar[str] = "tokens/s"
    objective: ClassVar[Literal["minimise", "maximise"]] = "maximise"
    from_first_token: bool = False

    def value(self, tokens: int, *, seconds: float, first_token: float = 0.0, failed: bool = False) -> float:
        """The rate of one request, in tokens per second.

        - `tokens`: of the answer.
        - `seconds`: from the request to the last token.
        - `first_token`: seconds from the request to the first token.
        - `failed`: whether it ended without an answer.
        """
        whole("tokens", tokens, 0)
        began = _at_least_0("first_token", first_token) if self.from_first_token else 0.0
        took = _at_least_0("seconds", seconds) - began
        if failed or tokens == 0:
            return 0.0
        if took <= 0.0:
            raise InputError(f"seconds = {seconds} is not allowed: {tokens} tokens need more than {began} s")
        return tokens / took


@dataclass(frozen=True, kw_only=True)
class QualityScore:
    """A score of the answer between 0 and 1, less price and time.

    Maximises E[score] − a E[dollars] − b E[seconds]. The score is yours: a test that passed, a grader, a
    thumb. It may come a day later: report it when it is known. A failure scores 0 and still costs.

    Parameters
    ----------
    points_per_dollar : float, default 0.0
        a, the points of quality that one dollar is worth.
    points_per_second : float, default 0.0
        b, the points of quality that one second is worth.

    Examples
    --------
    >>> recipe = QualityScore(points_per_dollar=10.0)
    >>> recipe.value(0.9, dollars=0.01)
    0.8
    >>> recipe.value(0.0, dollars=0.01, failed=True)
    -0.1
    >>> recipe.unit, recipe.objective
    ('points', 'maximise')

    References
    ----------
    docs/routing.md: what to optimise.
    """

    unit: ClassVar[str] = "points"
    objective: ClassVar[Literal["minimise", "maximise"]] = "maximise"
    points_per_dollar: float = 0.0
    points_per_second: float = 0.0

    def __post_init__(self) -> None:
        between("points_per_dollar", self.points_per_dollar, 0.0, LARGEST)
        between("points_per_second", self.points_per_second, 0.0, LARGEST)

    def value(
        self, score: float, *, dollars: float = 0.0, seconds: float = 0.0, failed: bool = False
    ) -> float:
        """The net quality of one request, in points.

        - `score`: 0 to 1.
        - `dollars`, `seconds`: what the request cost and how long it took.
        - `failed`: whether it ended without an answer.
        """
        between("score", score, 0.0, 1.0)
        return (
            (0.0 if failed else float(score))
            - self.points_per_dollar * _at_least_0("dollars", dollars)
            - self.points_per_second * _at_least_0("seconds", seconds)
        )


def _at_least_0(name: str, value: float) -> float:
    if not (is_number(value) and value >= 0):
        raise refused(name, value, "a finite number >= 0")
    return float(value)
