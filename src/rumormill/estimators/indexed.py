"""Means that bring their own index: no radius with m, c or zeta is added to them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from rumormill.arms.moments import Moments
from rumormill.errors import InputError
from rumormill.estimators.base import Estimator, OnlineMean, Terms, Theory, check_level


@dataclass(frozen=True, kw_only=True)
class IndexedEstimator(Estimator):
    """An estimator whose streams answer `index(L)`; `mean(L)` is the estimate that the index is built on."""

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
    """T group / K, the samples of an arm that a fair share would give; `group` replaces that of the terms."""
    if terms.horizon is None:
        name = type(estimator).__name__
        raise InputError(f"{name} needs to know the number of rounds: give the seat a horizon")
    return terms.horizon * (terms.group if group is None else group) / terms.n_arms
