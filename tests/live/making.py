"""Set-ups of live nodes for tests: a network, a policy, and the seats that the simulator would give."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rumormill as rm
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import LAST_DECISION, GameConfig, NodeConfig
from rumormill.live.core.signatures import Signer
from rumormill.mesh.file import Limits
from rumormill.policies import Agent, Seat

GAME = "mirrors"
LIMITS = Limits()
MOMENTS = rm.Moments(eps=0.8, u=4.2, rho=3.4)


def reach_of(network: rm.Network, gamma: int) -> dict[int, frozenset[int]]:
    """For every agent itself and those within gamma hops."""
    found = {}
    for v in range(network.n_agents):
        seen, rim = {v}, {v}
        for _ in range(gamma):
            rim = {int(w) for u in rim for w in network.neighbours(u)} - seen
            seen |= rim
        found[v] = frozenset(seen)
    return found


def maker(
    policy: Any,
    network: rm.Network,
    v: int,
    n_arms: int,
    moments: rm.Moments,
    prior: rm.Prior | None = None,
) -> Callable[[], Agent]:
    plan = policy.plan(network)

    def make() -> Agent:
        seat = Seat(
            agent=v,
            n_arms=n_arms,
            neighbours=tuple(network.neighbours(v).tolist()),
            rng=np.random.default_rng(v),
            moments=moments,
            horizon=LAST_DECISION,
            n_agents=network.n_agents,
            prior=None if prior is None else prior.of(v),
            part=plan.part(v),
        )
        agent: Agent = policy.agent(seat)
        return agent

    return make


def fake_signer(v: int) -> Signer:
    """Signs with a secret that everybody knows but nobody else uses: fast, and the same in every run."""

    def sign(node: int, words: bytes) -> bytes:
        return hashlib.blake2b(words, key=b"secret of %d" % node, digest_size=16).digest()

    return Signer(
        "test", lambda words: sign(v, words), lambda w, words, signature: sign(w, words) == signature
    )


def key_signer(v: int, key: int, known: Sequence[int]) -> Signer:
    """With keys that are rotated: node v signs with its `key`-th, and verifies the `known`-th and earlier."""

    def sign(node: int, number: int, words: bytes) -> bytes:
        return hashlib.blake2b(words, key=b"secret %d of %d" % (number, node), digest_size=16).digest()

    def verify(w: int, words: bytes, signature: bytes) -> bool:
        return any(sign(w, number, words) == signature for number in range(known[w] + 1))

    return Signer("test", lambda words: sign(v, key, words), verify)


def node_config(
    policy: Any,
    network: rm.Network,
    v: int,
    *,
    n_arms: int = 3,
    moments: rm.Moments = MOMENTS,
    epoch: int = 1,
    limits: Limits = LIMITS,
    patience: float = 30.0,
    signed: bool = False,
    prior: rm.Prior | None = None,
    verdicts: bool = False,
    propensities: bool = False,
    offsets: Sequence[float] | None = None,
    scales: Sequence[float] | None = None,
) -> NodeConfig:
    part: Any = policy.plan(network).part(v)
    leader = getattr(part, "leader", None)
    game = GameConfig(
        name=GAME,
        n_arms=n_arms,
        gamma=part.gamma,
        fingerprint=f"{policy!r}"[:200],
        make_agent=maker(policy, network, v, n_arms, moments, prior),
        leader=leader,
        patience=patience,
        offset=0.0 if offsets is None else offsets[v],
        scale=1.0 if scales is None else scales[v],
        reach=reach_of(network, part.gamma),
        moments=moments if verdicts else None,
        propensities=propensities,
    )
    return NodeConfig(
        node=v,
        mesh="test",
        epoch=epoch,
        neighbours=frozenset(network.neighbours(v).tolist()),
        members=frozenset(range(network.n_agents)),
        games=(game,),
        limits=limits,
        signer=fake_signer(v) if signed else None,
    )


def nodes_of(policy: Any, network: rm.Network, **given: Any) -> list[Node]:
    return [Node(node_config(policy, network, v, **given)) for v in range(network.n_agents)]
