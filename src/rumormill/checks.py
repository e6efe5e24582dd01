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

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import AlphaStable, Bandit, Gaussian, Moments
from rumormill.engine import Role, reference, root_seed, stream_seed
from rumormill.engine.trial import make_agents
from rumormill.errors import ContractError, InputError
from rumormill.estimators import Estimator
from rumormill.graphs import Network
from rumormill.policies import Agent, OwnPolicy, Policy, Problem
from rumormill.protocol import Channel, Message, PerfectChannel

_HORIZON = 40


def check_policy(policy: Policy | OwnPolicy) -> None:
    """Raise ContractError, naming the broken promise, unless agents of the policy:

    - choose arms in range and send only `Message`s that carry their sender's id or were heard before;
    - repeat themselves exactly with the same seed (all randomness comes from the seat);
    - keep their state to themselves (two games played in turns do not disturb each other);
    - do not mind the order in which the messages of a round come, nor copies of them;
    - work alone, and on a network in two parts (a policy may refuse the latter with an InputError).
    """
    bandit = Bandit([AlphaStable(alpha=1.7, loc=loc) for loc in (0.1, 0.8, 0.4)])
    for network in (Network.path(4), Network.star(5), Network.complete(3)):
        game = _Game(policy, bandit, network)
        plain = game.play(PerfectChannel())
        game.require_same(plain, game.play(PerfectChannel()), "did not repeat itself with the same seed")
        game.require_same(plain, game.play(_Copying()), "acted differently when messages came twice")
        game.require_same(plain, game.play(_Reversed()), "minded the order of messages within a round")
        for actions in game.play_in_turns():
            game.require_same(plain, actions, "shares state between two games")
    _Game(policy, bandit, Network.complete(1)).play(PerfectChannel())
    two_parts = Network.from_edges([(0, 1), (2, 3)])
    try:
        _Game(policy, bandit, two_parts).play(PerfectChannel())
    except InputError:
        return


class _Copying(PerfectChannel):
    """Delivers everything twice."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return 2 * super().deliver(t, receiver)


class _Reversed(PerfectChannel):
    """Delivers the last message first."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return super().deliver(t, receiver)[::-1]


@dataclass(frozen=True)
class _Game:
    policy: Policy | OwnPolicy
    bandit: Bandit
    network: Network

    @property
    def name(self) -> str:
        return getattr(self.policy, "__name__", type(self.policy).__name__)

    def agents(self) -> list[Agent]:
        problem = Problem(self.bandit, self.network, _HORIZON)
        plan = self.policy.plan(self.network) if isinstance(self.policy, Policy) else None
        inner = make_agents(self.policy, problem, plan, stream_seed(root_seed(5), Role.AGENTS))
        return [_Honest(agent, v) for v, agent in enumerate(inner)]

    def play(self, channel: Channel) -> NDArray[np.int64]:
        problem = Problem(self.bandit, self.network, _HORIZON)
        stream = self.bandit.stream(root_seed(3), self.network.n_agents, _HORIZON)
        trial = reference.play(
            problem, self.agents(), stream, channel, np.array([_HORIZON]), keep_actions=True
        )
        assert trial.actions is not None
        return trial.actions

    def play_in_turns(self) -> list[NDArray[np.int64]]:
        """Two copies of the game, a round of one, then a round of the other."""
        games = [self._rounds(), self._rounds()]
        rows = [[next(game) for game in games] for _ in range(_HORIZON)]
        return [np.array([row[i] for row in rows]) for i in range(2)]

    def _rounds(self) -> Iterator[list[int]]:
        agents, channel = self.agents(), PerfectChannel()
        stream = self.bandit.stream(root_seed(3), self.network.n_agents, _HORIZON)
        for t in range(1, _HORIZON + 1):
            draws = stream.block(t - 1, t)
            arms = []
            for v, agent in enumerate(agents):
                arm = int(agent.choose(t))
                agent.observe(t, arm, float(stream.loc[arm] + stream.scale[arm] * draws[0, v, 0]))
                arms.append(arm)
            for v, agent in enumerate(agents):
                batch = agent.outgoing(t)
                for w in self.network.neighbours(v):
                    channel.send(t, v, int(w), batch)
            for v, agent in enumerate(agents):
                agent.receive(channel.deliver(t, v))
            yield arms

    def require_same(self, one: NDArray[np.int64], two: NDArray[np.int64], fault: str) -> None:
        if not np.array_equal(one, two):
            t, v = np.argwhere(one != two)[0]
            raise ContractError(f"{self.name} {fault}: agent {v}, round {t + 1} on {self.network!r}")


class _Honest:
    """Passes every call on, and refuses messages that the agent cannot truthfully send."""

    def __init__(self, agent: Agent, v: int) -> None:
        self._agent = agent
        self._v = v
        self._heard: set[Message] = set()
        self._own: dict[int, tuple[int, float]] = {}  # round -> (arm, reward)

    def choose(self, t: int) -> int:
        return self._agent.choose(t)

    def observe(self, t: int, arm: int, reward: float) -> None:
        self._own[t] = (arm, reward)
        self._agent.observe(t, arm, reward)

    def outgoing(self, t: int) -> Sequence[Message]:
        batch = reference.checked_batch(self._agent.outgoing(t), self._v, t)
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

    - online form equals its definition along heavy-tailed streams as L grows;
    - `count` counts every sample; `state()` is plain data, and the stream goes on identically from it;
    - `merge`, if offered, equals the one stream that saw both;
    - sign is right: the mean of negated samples is the negated mean;
    - constants are positive, and validity implies definedness.
    """
    name = type(estimator).__name__
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
        L = 3.0
        _require_close(
            name,
            estimator.of([-x for x in samples], L, moments),
            -estimator.of(samples, L, moments),
            "changes with the sign of the samples",
        )
        if not estimator.moment(moments) > 0:
            raise ContractError(f"{name}.moment() is not positive")
        try:
            c = estimator.theory(moments).c
        except InputError:
            c = 1.0  # no lemma, and it says so
        if not c > 0:
            raise ContractError(f"{name}.theory() gives c = {c}, which is not positive")
        for n, level in ((1, 0.5), (5, 2.0), (400, 10.0)):
            if estimator.valid(n, level, moments) and not estimator.defined(n, level, moments):
                raise ContractError(
                    f"{name} claims validity for n = {n}, L = {level}, where it is not defined"
                )


def _check_stream(
    name: str,
    estimator: Estimator,
    samples: Sequence[float],
    moments: Moments,
    schedule: Callable[[int], float],
) -> None:
    online = estimator.online(moments, last_L=schedule(len(samples)))
    for t, x in enumerate(samples, 1):
        online.update(x)
        if online.count != t:
            raise ContractError(f"{name} counts {online.count} samples after {t}")
        L = schedule(t)
        expected = estimator.of(samples[:t], L, moments)
        _require_close(name, online.mean(L), expected, f"online differs from its definition at sample {t}")


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
