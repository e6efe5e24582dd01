"""The reference engine: every message is an object, every agent a state machine; one round at a time.

`simulate`, the conformance checks, traces and the benchmarks use it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments, RewardSource, RewardStream
from rumormill.counter_rng import DISCARD, THOMPSON, key_of, key_with
from rumormill.engine.result import Trial
from rumormill.errors import ContractError, InputError
from rumormill.graphs import Network
from rumormill.policies import Agent, HopPart, Plan, Policy, Prior, Seat
from rumormill.policies.base import ranked_arms
from rumormill.protocol import Carrier, Conditions, Message, PerfectCarrier
from rumormill.protocol.message import Heard, Line, SentRound, wire_size
from rumormill.seeds import private_generator, stream_seed
from rumormill.text import shown
from rumormill.validate import refused, truth, whole

BLOCK = 64  # rounds of rewards held at a time


def seats(
    policy: Policy,
    plan: Plan,
    source: RewardSource,
    network: Network,
    horizon: int,
    seed: np.random.SeedSequence,
    *,
    gamma: int | None = None,
    conditions: Conditions | None = None,
    prior: Prior | None = None,
    tries: int = 1,
) -> list[Seat]:
    """The seat of every agent: what it knows before round 1, and a generator of its own.

    `conditions` is the fault model of the trial, `gamma` the hop budget under it.
    """
    policy.require_moments_below(source.tail_index)
    own = getattr(policy, "moments", None)
    moments = source.moments() if policy.needs_moments and own is None else _moments(source)

    def part(v: int) -> Any:
        own = plan.part(v)
        if conditions is None or not hasattr(own, "draws"):
            return own
        world = conditions.world
        coins, draws = (key_with(key_of(conditions.seed, purpose), v) for purpose in (DISCARD, THOMPSON))
        if gamma is None or not isinstance(own, HopPart):
            return replace(own, draws=draws)
        return replace(
            own, gamma=gamma, coins=coins, draws=draws, delay=world.longest_delay, liars=len(world.liars)
        )

    return [
        Seat(
            agent=v,
            n_arms=source.n_arms,
            neighbours=tuple(network.neighbours(v).tolist()),
            rng=private_generator(stream_seed(seed, v)),
            moments=moments,
            horizon=horizon,
            n_agents=network.n_agents,
            prior=None if prior is None else prior.of(v),
            tries=tries,
            part=part(v),
        )
        for v in range(network.n_agents)
    ]


def _moments(source: RewardSource) -> Moments | None:
    """The moment bounds of the rewards; None where they have none, so that a policy may bring its own."""
    try:
        return source.moments()
    except InputError:
        return None


@dataclass(frozen=True, eq=False)
class Constraint:
    """Which arms agents may pull, and how many they try in a round."""

    allowed: NDArray[np.bool_] | None = None
    """(1 or rounds, agents, arms); None: all."""
    k: int = 1
    propensities: bool = False
    """Whether the probability of every choice is recorded."""

    def of(self, t: int, v: int) -> list[int] | None:
        """The arms that agent v may pull in round t."""
        if self.allowed is None:
            return None
        found: list[int] = np.flatnonzero(self.allowed[min(t, len(self.allowed)) - 1, v]).tolist()
        return found


NO_CONSTRAINT = Constraint()


def constraint_of(
    allowed: Any, k: int, propensities: bool, n_arms: int, n_agents: int, horizon: int
) -> Constraint:
    """Arguments of `simulate`, checked."""
    if whole("k", k) > n_arms:
        raise refused("k", k, f"a number of arms, 1 to {n_arms}")
    truth("propensities", propensities)
    if allowed is None:
        return NO_CONSTRAINT if k == 1 and not propensities else Constraint(None, k, propensities)
    given = np.asarray(allowed)
    shapes = {(n_arms,), (n_agents, n_arms), (horizon, n_agents, n_arms)}
    if given.dtype != np.bool_ or given.shape not in shapes:
        raise InputError(
            f"allowed has shape {given.shape} and type {given.dtype}: give truth values, (arms), "
            f"(agents, arms) or (rounds, agents, arms), here ({horizon}, {n_agents}, {n_arms})"
        )
    if not given.any(axis=-1).all():
        raise InputError("allowed leaves an agent without an arm in some round: allow at least one")
    rounds = given.shape[0] if given.ndim == 3 else 1
    return Constraint(np.broadcast_to(given, (rounds, n_agents, n_arms)).copy(), k, propensities)


@dataclass(frozen=True)
class PlayedRound:
    """Arms pulled (of several per agent a list), messages and bytes of one round."""

    arms: list[Any]
    messages: int
    wire_bytes: int


class Game:
    """Agents, their rewards, and the carrier of their messages."""

    def __init__(
        self, agents: Sequence[Agent], network: Network, rewards: RewardStream, carrier: Carrier, horizon: int
    ) -> None:
        self._agents, self._rewards, self._carrier, self._horizon = agents, rewards, carrier, horizon
        self._neighbours = [network.neighbours(v).tolist() for v in range(network.n_agents)]
        self._lines = [Line(near) for near in self._neighbours]
        self._loc, self._scale = rewards.loc.tolist(), rewards.scale.tolist()
        self._n_arms = len(self._loc)
        self.constraint = NO_CONSTRAINT
        self.propensities = np.full(network.n_agents, np.nan)
        """Of the last choice of every agent, where they are recorded."""

    @property
    def agents(self) -> Sequence[Agent]:
        return self._agents

    def replace_agents(self, agents: Sequence[Agent]) -> None:
        """Replace the agents between two rounds."""
        self._agents = agents

    def play_round(self, t: int) -> PlayedRound:
        """All agents choose and observe, then all send, then all receive."""
        draws = self._draws(t)
        arms = [self._pull(t, v, agent, draws[v]) for v, agent in enumerate(self._agents)]
        batches = [checked_batch(agent.outgoing(t), v, t) for v, agent in enumerate(self._agents)]
        played = PlayedRound(arms, *self._sent(batches))
        if type(self._carrier) is PerfectCarrier:  # nothing can happen on the way
            sent = SentRound.of(batches, t, self._n_arms)
            for agent, line in zip(self._agents, self._lines, strict=True):
                if sent is not None:
                    agent.receive(Heard(sent, line))
                else:
                    agent.receive([message for w in line.origins for message in batches[w]])
            return played
        for v, batch in enumerate(batches):
            for w in self._neighbours[v]:
                self._carrier.send(t, v, w, batch)
        for v, agent in enumerate(self._agents):
            agent.receive(checked_delivery(self._carrier.deliver(t, v), v, t))
        return played

    def _draws(self, t: int) -> list[list[float]]:
        """The draws of round t, by agent and column."""
        row = (t - 1) % BLOCK
        if row == 0:
            self._block = self._rewards.block(t - 1, min(t - 1 + BLOCK, self._horizon))
        return self._block[row].tolist()  # type: ignore[no-any-return]

    def _pull(self, t: int, v: int, agent: Agent, draws: list[float]) -> Any:
        """The arm that an agent chose, which it has been paid for; a list if it tries several."""
        if self.constraint is NO_CONSTRAINT:
            return self._paid(t, v, agent, agent.choose(t), draws)
        k = self.constraint.k
        found = ranked_arms(agent, t, self.constraint.of(t, v), k)
        if self.constraint.propensities:
            self.propensities[v] = getattr(agent, "propensity", lambda arm: math.nan)(found[0])
        arms = [self._paid(t, v, agent, arm, draws) for arm in found]
        return arms[0] if k == 1 else arms + [-1] * (k - len(arms))

    def _paid(self, t: int, v: int, agent: Agent, chosen: object, draws: list[float]) -> int:
        """The arm, which the agent has been paid for."""
        arm = checked_arm(chosen, self._n_arms, v, t)
        draw = draws[0 if self._rewards.shared else arm]
        agent.observe(t, arm, self._loc[arm] + self._scale[arm] * draw)
        return arm

    def _sent(self, batches: Sequence[Sequence[Message]]) -> tuple[int, int]:
        """Number and bytes of the messages of a round, once per link."""
        messages = wire_bytes = 0
        for batch, near in zip(batches, self._neighbours, strict=True):
            messages += len(batch) * len(near)
            rows = sum([len(message.rows) for message in batch])
            wire_bytes += (wire_size(rows) + (len(batch) - 1) * wire_size(0)) * len(near)
        return messages, wire_bytes


def checked_arm(arm: object, n_arms: int, v: int, t: int) -> int:
    """The arm that an agent chose; ContractError if it is none."""
    if type(arm) is int and 0 <= arm < n_arms:
        return arm
    try:
        index = operator.index(arm)  # type: ignore[arg-type]
    except TypeError:
        index = -1
    if not 0 <= index < n_arms:
        raise ContractError(
            f"agent {v} chose {shown(arm)} in round {t}: an arm is a whole number 0..{n_arms - 1}"
        )
    return index


def checked_delivery(arrived: list[Message], v: int, t: int) -> list[Message]:
    """The messages that a channel delivered; ContractError if they are none."""
    if not _messages_only(arrived):
        odd = next(message for message in arrived if not isinstance(message, Message))
        what = f"the channel brought {shown(odd)} to agent {v} in round {t}"
        raise ContractError(f"{what}: deliver() returns a list of Message")
    return arrived


def checked_batch(batch: object, v: int, t: int) -> Sequence[Message]:
    """The messages that an agent sent; ContractError if they are no list of Message."""
    if not isinstance(batch, list | tuple) or not _messages_only(batch):
        what = f"agent {v} sent {shown(batch)} in round {t}"
        raise ContractError(f"{what}: outgoing() returns a list of Message")
    return batch


def _messages_only(batch: Sequence[object]) -> bool:
    return all(issubclass(kind, Message) for kind in {*map(type, batch)})


def play(
    game: Game,
    n_agents: int,
    gaps: NDArray[np.float64],
    horizon: int,
    checkpoints: NDArray[np.int64],
    *,
    keep_actions: bool = False,
    on_rounds: Callable[[int], None] = lambda rounds: None,
) -> Trial:
    """Play a game to its end; `on_rounds` is called with the number of rounds just played."""
    n_arms = len(gaps)
    pulls = np.zeros((n_agents, n_arms + 1), dtype=np.int64)  # the last column, -1: rounds without a pull
    tries = () if game.constraint.k == 1 else (game.constraint.k,)
    agents = np.arange(n_agents).reshape(-1, *(1 for _ in tries))
    actions = np.empty((horizon if keep_actions else 0, n_agents, *tries), dtype=np.int64)
    chances = np.full((horizon if game.constraint.propensities else 0, n_agents), np.nan)
    agent_regret = np.empty((len(checkpoints), n_agents))
    totals = np.empty((2, len(checkpoints)), dtype=np.int64)  # messages and bytes so far
    present = np.empty(len(checkpoints), dtype=np.int64)
    messages = wire_bytes = next_checkpoint = 0
    for t in range(1, horizon + 1):
        played = game.play_round(t)
        pulls[agents, played.arms] += 1
        if keep_actions:
            actions[t - 1] = played.arms
        if len(chances):
            chances[t - 1] = np.where(
                np.asarray(played.arms).reshape(n_agents, -1)[:, 0] < 0, np.nan, game.propensities
            )
        messages += played.messages
        wire_bytes += played.wire_bytes
        if t == checkpoints[next_checkpoint]:
            agent_regret[next_checkpoint] = sum(pulls[:, arm] * gaps[arm] for arm in range(n_arms))
            totals[:, next_checkpoint] = messages, wire_bytes
            present[next_checkpoint] = pulls[:, :-1].sum()
            next_checkpoint = min(next_checkpoint + 1, len(checkpoints) - 1)
        if t % BLOCK == 0 or t == horizon:
            on_rounds((t - 1) % BLOCK + 1)
    kept = chances if len(chances) else None
    return Trial(
        agent_regret, totals[0], totals[1], actions if keep_actions else None, present, propensities=kept
    )
