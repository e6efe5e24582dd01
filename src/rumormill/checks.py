"""Conformance: run these over an own policy or estimator, as the tests do over every built-in one.

>>> import rumormill as rm
>>> rm.checks.check_policy(rm.KMPUCB(gamma=2))
>>> rm.checks.check_estimator(rm.MedianOfMeans())
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rumormill.arms import AlphaStable, Arm, Bandit, Gaussian, Moments, RewardSource
from rumormill.engine.reference import Game, checked_batch, seats
from rumormill.errors import ContractError, InputError
from rumormill.estimators import Estimator
from rumormill.graphs import Network, Topology
from rumormill.policies import Agent, Policy, Seat, as_policy, policy_name, seated
from rumormill.protocol import Carrier, Channel, Message, PerfectCarrier
from rumormill.seeds import Role, root_seed, stream_seed
from rumormill.text import shown

_HORIZON = 40


def check_policy(policy: Any) -> None:
    """Raise ContractError, naming the broken promise, unless agents of the policy:

    - choose arms in range and send only `Message`s that carry their sender's id or were heard before;
    - repeat themselves exactly with the same seed (all randomness comes from the seat);
    - keep their state to themselves (two games played in turns do not disturb each other);
    - do not mind the order in which the messages of a round come, nor copies of them;
    - know nothing that a real node would not: neither the seat nor the agent leads to the bandit, its means,
      the network or another agent;
    - go on identically from their state, if they offer `state()` (plain data) and `restore(state)`;
    - work alone, and on a network in two parts (a policy may refuse the latter with an InputError).
    """
    made = as_policy(policy)
    bandit = Bandit([AlphaStable(alpha=1.7, loc=loc) for loc in (0.1, 0.8, 0.4)])
    for network in (Network.path(4), Network.star(5), Network.complete(3)):
        trial = _TrialGame(made, bandit, network)
        trial.require_ignorance()
        plain = trial.play(PerfectCarrier())
        trial.require_same(plain, trial.play(PerfectCarrier()), "did not repeat itself with the same seed")
        trial.require_same(plain, trial.play(_Copying()), "acted differently when messages came twice")
        trial.require_same(plain, trial.play(_Reversed()), "minded the order of messages within a round")
        trial.require_same(plain, trial.play_resumed(), "does not go on identically from its state")
        for actions in trial.play_in_turns():
            trial.require_same(plain, actions, "shares state between two games")
    _TrialGame(made, bandit, Network.complete(1)).play(PerfectCarrier())
    two_parts = Network.from_edges([(0, 1), (2, 3)])
    try:
        _TrialGame(made, bandit, two_parts).play(PerfectCarrier())
    except InputError:
        return


class _Copying(PerfectCarrier):
    """Delivers everything twice."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return 2 * super().deliver(t, receiver)


class _Reversed(PerfectCarrier):
    """Delivers the last message first."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return super().deliver(t, receiver)[::-1]


@dataclass(frozen=True)
class _TrialGame:
    policy: Policy
    bandit: Bandit
    network: Network

    @property
    def name(self) -> str:
        return policy_name(self.policy)

    def seats(self) -> list[Seat]:
        plan = self.policy.plan(self.network)
        seed = stream_seed(root_seed(5), Role.AGENTS)
        return seats(self.policy, plan, self.bandit, self.network, _HORIZON, seed)

    def game(self, carrier: Carrier) -> Game:
        agents = [_Honest(seated(self.policy, seat), seat.agent) for seat in self.seats()]
        stream = self.bandit.stream(root_seed(3), self.network.n_agents, _HORIZON)
        return Game(agents, self.network, stream, carrier, _HORIZON)

    def play(self, carrier: Carrier) -> NDArray[np.int64]:
        game = self.game(carrier)
        return np.array([game.play_round(t).arms for t in range(1, _HORIZON + 1)])

    def play_resumed(self) -> NDArray[np.int64]:
        """Half of the game, then the rest with fresh agents that were given the state of the first ones."""
        game, half = self.game(PerfectCarrier()), _HORIZON // 2
        rows = []
        for t in range(1, _HORIZON + 1):
            if t == half:
                game.replace_agents([self._resumed(agent, v) for v, agent in enumerate(game.agents)])
            rows.append(game.play_round(t).arms)
        return np.array(rows)

    def _resumed(self, agent: Any, v: int) -> Any:
        if not (
            callable(getattr(agent.inner, "state", None)) and callable(getattr(agent.inner, "restore", None))
        ):
            return agent
        try:
            state = json.loads(json.dumps(agent.inner.state()))
        except (TypeError, ValueError):
            raise ContractError(f"the state() of {self.name}'s agents is not plain data") from None
        fresh = seated(self.policy, self.seats()[v])
        fresh.restore(state)  # type: ignore[attr-defined]
        return agent.around(fresh)

    def play_in_turns(self) -> list[NDArray[np.int64]]:
        """Two copies of the game, a round of one, then a round of the other."""
        games = [self.game(PerfectCarrier()), self.game(PerfectCarrier())]
        rows = [[game.play_round(t).arms for game in games] for t in range(1, _HORIZON + 1)]
        return [np.array([row[i] for row in rows]) for i in range(2)]

    def require_ignorance(self) -> None:
        """Nothing that can be reached from a seat or an agent knows more than a real node would."""
        places = self.seats()
        agents = [seated(self.policy, seat) for seat in places]
        for seat, agent in zip(places, agents, strict=True):
            others = [id(each) for each in (*agents, *places) if each is not agent and each is not seat]
            for start, path, found in (*_reachable(seat, "seat"), *_reachable(agent, "agent")):
                what = self._secret(found, others)
                if what is not None and found is not start:
                    raise ContractError(f"{self.name} lets agent {seat.agent} see {what}, through {path}")

    def _secret(self, found: Any, others: list[int]) -> str | None:
        if isinstance(found, Network | Topology):
            return "the network"
        if isinstance(found, Arm) or (not isinstance(found, type) and isinstance(found, RewardSource)):
            return "the bandit"
        if isinstance(found, Channel):
            return "the channel"
        if id(found) in others:
            return "another agent"
        if isinstance(found, np.ndarray | list | tuple) and len(np.shape(_plain(found))) == 1:
            values = _plain(found)
            if len(values) == self.bandit.n_arms and np.array_equal(values, self.bandit.means):
                return "the means"
        return None

    def require_same(self, one: NDArray[np.int64], two: NDArray[np.int64], fault: str) -> None:
        if not np.array_equal(one, two):
            t, v = np.argwhere(one != two)[0]
            raise ContractError(f"{self.name} {fault}: agent {v}, round {t + 1} on {self.network!r}")


def _plain(values: Any) -> NDArray[np.float64]:
    """A sequence as numbers; as nothing where it is none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty((0, 0))


def _reachable(start: Any, name: str) -> Iterator[tuple[Any, str, Any]]:
    """Everything that can be reached from an object through attributes, items, closures and bound methods.

    Modules, classes and the globals of functions are skipped: they are shared by all.
    """
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(name, start)]
    while waiting:
        path, found = waiting.pop()
        if id(found) in seen or isinstance(found, type | ModuleType | str | bytes | int | float | None):
            continue
        seen.add(id(found))
        yield start, path, found
        waiting += _inside(path, found)


def _inside(path: str, found: Any) -> list[tuple[str, Any]]:
    if isinstance(found, dict):
        return [(f"{path}[{shown(key, 20)}]", value) for key, value in found.items()]
    if isinstance(found, list | tuple | set | frozenset):
        return [(f"{path}[{i}]", value) for i, value in enumerate(found)]
    if isinstance(found, MethodType):
        return [(f"{path}.__self__", found.__self__), (f"{path}.__func__", found.__func__)]
    inside: list[tuple[str, Any]] = []
    if isinstance(found, FunctionType):
        inside += [(f"{path}'s closure", cell.cell_contents) for cell in found.__closure__ or ()]
        inside += [(f"{path}'s defaults", found.__defaults__), (f"{path}'s defaults", found.__kwdefaults__)]
    if isinstance(found, np.ndarray):
        return (
            [(f"{path}[{i}]", value) for i, value in enumerate(found.flat)] if found.dtype == object else []
        )
    slots = [name for cls in type(found).__mro__ for name in getattr(cls, "__slots__", ())]
    names = [*getattr(found, "__dict__", {}), *(name for name in slots if not name.startswith("__"))]
    return inside + [(f"{path}.{name}", getattr(found, name, None)) for name in names]


class _Honest:
    """Passes every call on, and refuses messages that the agent cannot truthfully send."""

    def __init__(self, agent: Agent, v: int) -> None:
        self._agent = agent
        self._v = v
        self._heard: set[Message] = set()
        self._own: dict[int, tuple[int, float]] = {}  # round -> (arm, reward)

    @property
    def inner(self) -> Agent:
        return self._agent

    def around(self, agent: Agent) -> _Honest:
        """The same watch over an agent that takes the place of the first."""
        watch = _Honest(agent, self._v)
        watch._heard, watch._own = self._heard, self._own
        return watch

    def choose(self, t: int) -> int:
        return self._agent.choose(t)

    def observe(self, t: int, arm: int, reward: float) -> None:
        self._own[t] = (arm, reward)
        self._agent.observe(t, arm, reward)

    def outgoing(self, t: int) -> Sequence[Message]:
        batch = checked_batch(self._agent.outgoing(t), self._v, t)
        for message in batch:
            if message.origin == self._v:
                saw = self._own.get(message.round)
                if saw != (message.arm, message.reward):
                    raise ContractError(f"agent {self._v} sent {message} in round {t} but saw {saw}")
            elif message not in self._heard:
                raise ContractError(f"agent {self._v} sent {message} in round {t}, which it never heard")
        return batch

    def receive(self, messages: Sequence[Message]) -> None:
        self._heard.update(messages)
        self._agent.receive(messages)


def check_estimator(estimator: Estimator) -> None:
    """Raise ContractError, naming the broken promise, unless the estimator's

    - online form equals its definition along heavy-tailed streams as L grows (or, with a `slack`, that of a
      moment ago: neither n nor L may have grown by more than the slack since);
    - `count` counts every sample; `state()` is plain data, and the stream goes on identically from it;
    - `merge`, if offered, equals the one stream that saw both;
    - sign is right: the mean of negated samples is the negated mean (an estimator that brings its own index
      may treat the two sides differently; its index is never below its mean, and no number without one);
    - constants are positive, and validity implies definedness;
    - state stays small as samples arrive, if it says `bounded_memory`.
    """
    if not isinstance(estimator, Estimator):
        raise InputError(f"estimator = {shown(estimator)} is not an estimator: try rm.TrimmedMean()")
    name = type(estimator).__name__
    if estimator.bounded_memory and not stays_small(estimator):
        raise ContractError(f"{name} says bounded_memory, but its state grows with every sample")
    rng = np.random.default_rng(11)
    for law, moments in (
        (AlphaStable(alpha=1.5, loc=0.7), Moments(eps=0.4, u=9.0, rho=8.5)),
        (Gaussian(loc=-0.3, scale=2.0), Moments(eps=1.0, u=4.1, rho=4.0)),
    ):
        samples = law.sample(rng, 400).tolist()
        _check_stream(name, estimator, samples, moments, lambda t: 2 * math.log(t))
        _check_stream(name, estimator, samples, moments, lambda t: 3 * math.log(t) + math.log(7))
        _check_state(name, estimator, samples, moments)
        _check_merge(name, estimator, samples, moments)
        if estimator.brings_index:
            _check_index(name, estimator, samples, moments)
        else:
            _check_radius(name, estimator, samples, moments)


def stays_small(estimator: Estimator) -> bool:
    """Whether the state after 4,096 samples takes less than one number per sample."""
    online = estimator.online(Moments(eps=0.5, u=1.0, rho=1.0), last_L=100.0)
    for i in range(1, 4097):
        online.update((i * 7919 % 1009 - 504) / 100.0)
        if i % 256 == 0:
            online.mean(math.log(i))
    return len(msgspec.msgpack.encode(online.state())) < 32_000


def _check_radius(name: str, estimator: Estimator, samples: Sequence[float], moments: Moments) -> None:
    L = 3.0
    _require_close(
        name,
        estimator.of([-x for x in samples], L, moments),
        -estimator.of(samples, L, moments),
        "changes with the sign of the samples",
    )
    if not estimator.moment(moments) > 0:
        raise ContractError(f"{name}.moment() is not positive")
    if not _theory_constant(estimator, moments) > 0:
        raise ContractError(f"{name}.theory() gives a constant c that is not positive")
    for n, level in ((1, 0.5), (5, 2.0), (400, 10.0)):
        if estimator.valid(n, level, moments) and not estimator.defined(n, level, moments):
            raise ContractError(f"{name} claims validity for n = {n}, L = {level}, where it is not defined")


def _theory_constant(estimator: Estimator, moments: Moments) -> float:
    """The constant c of the lemma; 1 for an estimator without one."""
    try:
        return estimator.theory(moments).c
    except InputError:
        return 1.0


def _check_index(name: str, estimator: Estimator, samples: Sequence[float], moments: Moments) -> None:
    stream = estimator.online(moments, last_L=9.0)
    for L in (1.0, 2.0, 4.0, 9.0):
        for x in samples:
            stream.update(x)
        mean, index = stream.mean(L), stream.index(L)
        if not index >= mean:
            raise ContractError(f"{name} has the index {index} below its mean {mean} (L = {L})")
        if not math.isfinite(index):
            raise ContractError(f"{name} has no index yet at {stream.count} samples (L = {L})")


def _check_stream(
    name: str,
    estimator: Estimator,
    samples: Sequence[float],
    moments: Moments,
    schedule: Callable[[int], float],
) -> None:
    online = estimator.online(moments, last_L=schedule(len(samples)))
    most = 1.0 + estimator.slack
    recent: list[tuple[int, float, float]] = []  # n, L and what the definition says there
    for t, x in enumerate(samples, 1):
        online.update(x)
        if online.count != t:
            raise ContractError(f"{name} counts {online.count} samples after {t}")
        L = schedule(t)
        recent = [one for one in recent if t <= most * one[0] and most * one[1] >= L]
        recent.append((t, L, estimator.of(samples[:t], L, moments)))
        got = online.mean(L)
        expected = min((one[2] for one in recent), key=lambda value: abs(value - got))
        _require_close(name, got, expected, f"online differs from its definition at sample {t}")


def _check_state(name: str, estimator: Estimator, samples: Sequence[float], moments: Moments) -> None:
    online = estimator.online(moments)
    half = len(samples) // 2
    for x in samples[:half]:
        online.update(x)
    online.mean(1.0)
    try:
        state = json.loads(json.dumps(online.state()))
    except (TypeError, ValueError):
        raise ContractError(f"{name}.state() is not plain data") from None
    resumed = type(online).from_state(state)
    for x in samples[half:]:
        online.update(x)
        resumed.update(x)
    for L in (2.0, 4.0, 9.0):
        if (online.mean(L), online.count) != (resumed.mean(L), resumed.count):
            raise ContractError(f"{name} does not go on identically from its state (L = {L})")


def _check_merge(name: str, estimator: Estimator, samples: Sequence[float], moments: Moments) -> None:
    first, second, whole = (estimator.online(moments) for _ in range(3))
    half = len(samples) // 3
    for x in samples[:half]:
        first.update(x)
    for x in samples[half:]:
        second.update(x)
    for x in samples:
        whole.update(x)
    try:
        first.merge(second)
    except (TypeError, InputError):
        return  # the law does not allow it, and says so
    if first.count != whole.count:
        raise ContractError(f"{name} merged counts {first.count} samples, not {whole.count}")
    _require_close(name, first.mean(5.0), whole.mean(5.0), "merged differs from the stream that saw both")


def _require_close(name: str, got: float, expected: float, fault: str) -> None:
    if not (got == expected or abs(got - expected) <= 1e-10 * max(abs(expected), 1e-3)):
        raise ContractError(f"{name} {fault}: {got!r} instead of {expected!r}")
