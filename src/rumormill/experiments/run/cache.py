"""Networks of this process, with the plans and outcomes that other cells can use again.

Cells come one by one, in any order, from any thread; the points of a sweep mostly share their networks, and
a clique cover or an eigenbasis is expensive. Caching changes no result.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rumormill.engine import Contender, Trial, prepare
from rumormill.experiments.plan import SweepPoint
from rumormill.experiments.spec.schema import PolicyPart
from rumormill.graphs import Network
from rumormill.policies import Plan, Policy

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Networks kept beyond one per worker: the next sweep points of a trial use them again.
SPARE = 4

_blas_lock = threading.Lock()
_blas_users: list[Any] = []


class PreparedNetwork:
    """A network and the plans (cliques, leaders, weights) computed on it so far."""

    def __init__(self, build: Callable[[], Network]) -> None:
        self._build = build
        self._network: Network | None = None
        self._plans: dict[Hashable, Plan] = {}
        self._lock = threading.RLock()
        self.trials: dict[str, Trial] = {}
        """Outcomes of policies that an axis leaves unchanged: the next points take them from here."""

    @property
    def network(self) -> Network:
        """The network, built on first use."""
        with self._lock:
            if self._network is None:
                self._network = self._build()
            return self._network

    def plan_of(self, part: PolicyPart) -> Plan | None:
        """The plan that a policy computed here before; None if it has not yet."""
        with self._lock:
            return self._plans.get(_spec_key(part))

    def contender(self, point: SweepPoint, part: PolicyPart) -> Contender:
        """The policy made ready; a plan that it shares with another policy or point is computed once."""
        policy = point.policy(part)
        with self._lock:
            keys = _keys(policy, part)
            plan = next((self._plans[key] for key in keys if key in self._plans), None)
            # `quiet`: the notice about the reference engine is given once per run, not here.
            contender = prepare(
                policy, self.network, point.spec.n_arms, world=point.world, plan=plan, quiet=True
            )
            self._plans.update(dict.fromkeys(keys, contender.plan))
            return contender


def _spec_key(part: PolicyPart) -> str:
    """Type and settings of a policy as a key."""
    return repr((part.type, sorted(part.settings.items(), key=repr)))


def _keys(policy: Policy, part: PolicyPart) -> list[Hashable]:
    """The keys of a plan: the policy's own, and that of the spec."""
    keys: list[Hashable] = [_spec_key(part)]
    key = policy.plan_key()
    try:
        hash(key)
    except TypeError:  # an own policy with a list among its parameters
        return keys
    return [key, *keys]


class NetworkCache:
    """Prepared networks; the least recently used are dropped first."""

    def __init__(self) -> None:
        self._networks: OrderedDict[str, PreparedNetwork] = OrderedDict()
        self._lock = threading.Lock()
        self._workers: set[int] = set()

    def at(self, point: SweepPoint, trial: int) -> PreparedNetwork:
        """The network of a trial; another point with the same network finds it prepared."""
        spec, number = point.spec, point.network_trial(trial)
        key = repr((spec.network, spec.seed, spec.folder, number))
        with self._lock:
            self._workers.add(threading.get_ident())
            found = self._networks.setdefault(key, PreparedNetwork(lambda: point.network(number)))
            self._networks.move_to_end(key)
            while len(self._networks) > max(len(self._workers), os.cpu_count() or 1) + SPARE:
                self._networks.popitem(last=False)
        return found

    def clear(self) -> None:
        """Drop all of them."""
        with self._lock:
            self._networks.clear()
            self._workers.clear()


NETWORK_CACHE = NetworkCache()


def contenders(point: SweepPoint, trial: int) -> list[Contender]:
    """All policies of a point, made ready for the network of a trial."""
    prepared = NETWORK_CACHE.at(point, trial)
    return [prepared.contender(point, part) for part in point.spec.policies]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the linear algebra to one thread: workers run in parallel already.

    It also makes the last digits of eigenvectors independent of the number of cores. The limit is one of
    the process: the first user sets it, the last one lifts it.
    """
    with _blas_lock:
        _blas_users.append(None if _blas_users else _blas(len(sys.modules)).limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _blas_lock:
            if len(_blas_users) == 1:
                _blas_users[0].restore_original_limits()
                _blas_users.clear()
            else:
                _blas_users.pop()


@lru_cache(maxsize=1)
def _blas(modules: int) -> ThreadpoolController:
    """The libraries that are loaded; looked for again only after an import, as that takes a millisecond."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
