"""Networks kept at hand in this process, with the plans and outcomes that others can use again.

Cells come one by one, in any order, from any thread; the points of a sweep mostly share their networks, and
a clique cover or an eigenbasis is dear. Nothing here changes a result: it is only found sooner.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from rumormill.engine import Contender, Trial, prepare
from rumormill.experiments.spec.building import build_network, build_policy, build_world, is_fresh
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.graphs import Network
from rumormill.policies import Plan, Policy

# Networks kept beyond one per worker: the next sweep points of a trial use them again.
SPARE = 4

_blas_lock = threading.Lock()
_blas_users: list[Any] = []


class Site:
    """A network and the plans (cliques, leaders, weights) worked out on it so far."""

    def __init__(self, build: Callable[[], Network]) -> None:
        self._build = build
        self._network: Network | None = None
        self._plans: dict[Hashable, Plan] = {}
        self._lock = threading.RLock()
        self.trials: dict[str, Trial] = {}
        """Outcomes of policies that an axis leaves as they are: the next points take them from here."""

    @property
    def network(self) -> Network:
        with self._lock:
            if self._network is None:
                self._network = self._build()
            return self._network

    def plan_of(self, part: PolicyPart) -> Plan | None:
        """What a policy worked out here before; None if it has not yet."""
        with self._lock:
            return self._plans.get(_spec_key(part))

    def contender(self, spec: Spec, part: PolicyPart) -> Contender:
        """The policy made ready; what it shares with another one (or another sweep point) is done once."""
        policy = build_policy(spec, part)
        with self._lock:
            keys = _keys(policy, part)
            plan = next((self._plans[key] for key in keys if key in self._plans), None)
            # `quiet`: that a slow engine has to do is said once per run, not here.
            contender = prepare(
                policy, self.network, spec.n_arms, world=build_world(spec), plan=plan, quiet=True
            )
            self._plans.update(dict.fromkeys(keys, contender.plan))
            return contender


def _spec_key(part: PolicyPart) -> str:
    return repr((part.type, sorted(part.settings.items(), key=repr)))


def _keys(policy: Policy, part: PolicyPart) -> list[Hashable]:
    """Under what a plan is kept: what the policy says, and what the spec says."""
    keys: list[Hashable] = [_spec_key(part)]
    key = policy.plan_key()
    try:
        hash(key)
    except TypeError:  # an own policy with a list among its parameters
        return keys
    return [key, *keys]


class Sites:
    """The networks at hand, the least lately used of them given up first."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, Site] = OrderedDict()
        self._lock = threading.Lock()
        self._workers: set[int] = set()

    def at(self, spec: Spec, trial: int) -> Site:
        """The place of a trial; another point with the same network finds it prepared."""
        number = trial if is_fresh(spec) else 0
        key = repr((spec.network, spec.seed, spec.folder, number))
        with self._lock:
            self._workers.add(threading.get_ident())
            site = self._sites.setdefault(key, Site(lambda: build_network(spec, number)))
            self._sites.move_to_end(key)
            while len(self._sites) > max(len(self._workers), os.cpu_count() or 1) + SPARE:
                self._sites.popitem(last=False)
        return site

    def clear(self) -> None:
        """Give all of them up."""
        with self._lock:
            self._sites.clear()
            self._workers.clear()


AT_HAND = Sites()


def contenders(spec: Spec, trial: int) -> list[Contender]:
    """All policies of a spec without a sweep, made ready for the network of a trial."""
    site = AT_HAND.at(spec, trial)
    return [site.contender(spec, part) for part in spec.policies]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Workers run side by side already: threads of the linear algebra would only wait for each other.

    It also makes the last digits of eigenvectors independent of the number of cores. The limit is one of
    the process: whoever comes first sets it, whoever leaves last lifts it.
    """
    from threadpoolctl import threadpool_limits

    with _blas_lock:
        _blas_users.append(threadpool_limits(1, user_api="blas") if not _blas_users else None)
    try:
        yield
    finally:
        with _blas_lock:
            if len(_blas_users) == 1:
                _blas_users[0].restore_original_limits()
                _blas_users.clear()
            else:
                _blas_users.pop()
