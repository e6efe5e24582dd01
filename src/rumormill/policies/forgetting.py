"""Forgetting: means of the newest samples only, for rewards that change.

A clock counts the samples that an agent takes in. A window keeps the newest of them, by two streams of which
the older is dropped; a discount multiplies counts and sums by phi per sample; a restart drops the samples of
an arm when a CUSUM over them raises an alarm. Definitions and bounds: docs/semantics.md, forgetting.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rumormill.arms import Moments
from rumormill.estimators import Estimator, OnlineMean
from rumormill.estimators.clipped import clip_budget
from rumormill.formulas import CUSUM_BEGIN, CUSUM_REFERENCE, cusum_alarms, discounted_sum
from rumormill.validate import between, refused, whole

Fresh = Callable[[], OnlineMean]
ALLOWED = '{window = W}, {discount = phi} or "restart"'


@dataclass(frozen=True)
class Forget:
    """Which samples are forgotten; one of the three."""

    window: int | None = None
    discount: float | None = None
    restart: bool = False

    @classmethod
    def of(cls, given: Any, estimator: Estimator) -> Forget | None:
        """From what a policy was given; refused in words."""
        if given is None or isinstance(given, Forget):
            made = given
        elif isinstance(given, str) and given == "restart":
            made = cls(restart=True)
        elif isinstance(given, Mapping) and len(given) == 1 and next(iter(given)) in ("window", "discount"):
            made = cls(**given)
        else:
            raise refused("forget", given, ALLOWED)
        if made is None:
            return None
        if made.window is not None:
            whole("forget.window", made.window, 2)
        elif made.discount is not None:
            between("forget.discount", made.discount, 0.5, 1.0 - 1e-9)
            if not estimator.can_discount:
                name = type(estimator).__name__
                raise refused("forget", given, f"{name} cannot be discounted; {{window = W}} or 'restart'")
        elif not made.restart:
            raise refused("forget", given, ALLOWED)
        return made

    @property
    def way(self) -> int:
        """Its number in the kernels: WINDOW 1, DISCOUNT 2, RESTART 3."""
        return 1 if self.window is not None else 2 if self.discount is not None else 3

    @property
    def span(self) -> int | None:
        """About how many samples are not forgotten; None without a limit."""
        if self.discount is not None:
            return math.ceil(1.0 / (1.0 - self.discount))
        return self.window


class SampleClock:
    """Counts the samples that an agent takes in."""

    def __init__(self) -> None:
        self.taken = 0


class ForgetfulMean(ABC):
    """The samples of one arm that are not forgotten; the same questions as an OnlineMean."""

    def __init__(self, clock: SampleClock, fresh: Fresh) -> None:
        self.clock, self.fresh = clock, fresh

    @property
    @abstractmethod
    def count(self) -> float:
        """How many samples count."""

    @abstractmethod
    def update(self, x: float) -> None:
        """The sample that the clock counted last."""

    @abstractmethod
    def mean(self, L: float) -> float:
        """The mean at level L."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """As plain data."""

    @abstractmethod
    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` described."""

    def _read(self, state: dict[str, Any]) -> OnlineMean:
        return type(self.fresh()).from_state(state)


class WindowMean(ForgetfulMean):
    """The newest half to whole window: the older of two streams, which began an epoch earlier."""

    def __init__(self, clock: SampleClock, fresh: Fresh, window: int) -> None:
        super().__init__(clock, fresh)
        self._half = (window + 1) // 2
        self._epoch = 0
        self._older, self._newer = fresh(), fresh()

    def _present(self) -> OnlineMean:
        """The stream that answers; streams of past epochs are dropped."""
        epoch = max(self.clock.taken - 1, 0) // self._half
        for _ in range(min(epoch - self._epoch, 2)):
            self._older, self._newer = self._newer, self.fresh()
        self._epoch = epoch
        return self._older

    @property
    def count(self) -> float:
        return self._present().count

    def update(self, x: float) -> None:
        self._present().update(x)
        self._newer.update(x)

    def mean(self, L: float) -> float:
        present = self._present()
        self._newer.settle(L)
        return present.mean(L)

    def index(self, L: float) -> float:
        return self._present().index(L)

    def state(self) -> dict[str, Any]:
        older = self._present().state()
        return {"epoch": self._epoch, "older": older, "newer": self._newer.state()}

    def load(self, state: dict[str, Any]) -> None:
        self._epoch = int(state["epoch"])
        self._older, self._newer = self._read(state["older"]), self._read(state["newer"])


class DiscountedMean(ForgetfulMean):
    """Counts and sums that shrink by a factor per sample that the agent takes in."""

    def __init__(
        self, clock: SampleClock, fresh: Fresh, discount: float, L: float, moments: Moments | None
    ) -> None:
        super().__init__(clock, fresh)
        self._discount, self._L = discount, L
        self._p = 1.0 if moments is None else moments.p
        self._budget = math.inf if moments is None else clip_budget(moments.u, moments.p)
        self._last, self._n, self._sum = 0, 0.0, 0.0

    def _weight(self) -> float:
        return math.pow(self._discount, self.clock.taken - self._last)

    @property
    def count(self) -> float:
        n = self._weight() * self._n
        return n if n > 0.5 else 0.0

    def update(self, x: float) -> None:
        weight = self._weight()
        self._n, self._sum = discounted_sum(self._n, self._sum, weight, x, self._L, self._budget, self._p)
        self._last = self.clock.taken

    def mean(self, L: float) -> float:
        del L
        return self._sum / self._n if self.count else math.inf

    def state(self) -> dict[str, Any]:
        return {"last": self._last, "n": self._n, "sum": self._sum}

    def load(self, state: dict[str, Any]) -> None:
        self._last, self._n, self._sum = int(state["last"]), float(state["n"]), float(state["sum"])


class RestartedMean(ForgetfulMean):
    """All samples since the last alarm of a CUSUM over them."""

    def __init__(self, clock: SampleClock, fresh: Fresh) -> None:
        super().__init__(clock, fresh)
        self._begin()
        self.restarts = 0

    def _begin(self) -> None:
        self._stream = self.fresh()
        self._cusum = [0.0] * (CUSUM_BEGIN + CUSUM_REFERENCE)

    @property
    def count(self) -> float:
        return self._stream.count

    def update(self, x: float) -> None:
        self._stream.update(x)
        if cusum_alarms(x, self._stream.count, self._cusum):
            self._begin()
            self.restarts += 1

    def mean(self, L: float) -> float:
        return self._stream.mean(L)

    def index(self, L: float) -> float:
        return self._stream.index(L)

    def state(self) -> dict[str, Any]:
        first, sums = self._cusum[CUSUM_BEGIN:][: self._stream.count], self._cusum[3:CUSUM_BEGIN]
        return {"stream": self._stream.state(), "first": first, "sums": sums, "restarts": self.restarts}

    def load(self, state: dict[str, Any]) -> None:
        self._begin()
        self._stream = self._read(state["stream"])
        for n, x in enumerate(state["first"], 1):
            cusum_alarms(float(x), n, self._cusum)
        self._cusum[3:CUSUM_BEGIN] = (float(x) for x in state["sums"])
        self.restarts = int(state["restarts"])
