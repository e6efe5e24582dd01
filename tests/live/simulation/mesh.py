"""The mesh that a seed describes, and its state."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec.structs import replace

import rumormill as rm
from live.making import GAME, MOMENTS, key_signer, maker, node_config
from live.simulation.parts import N_ARMS, Disk, File, Host, StoredItems, Wire
from rumormill.live.core import streams
from rumormill.live.core.frames import Key
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import LAST_DECISION, GameConfig, NodeConfig
from rumormill.mesh.file import Limits
from rumormill.policies import Agent, Seat
from rumormill.policies.message_passing_policy import HopPart

SIDE = "side"
"""The second game."""
MOST_CLASSES = 2
"""Request classes of the first game that a node keeps."""
SPARES = 3
"""Machines that may join."""


class Mesh:
    """Everything that a schedule changes."""

    def __init__(
        self,
        seed: int,
        steps: int = 300,
        *,
        absence: bool = False,
        changes: bool = False,
        members: bool = False,
    ) -> None:
        """With `absence` one node is away for long, and the others keep little of what it misses.

        With `changes` mesh files are read again: a second game comes, goes and changes its arms; and members
        sign what no honest node sends.

        With `members` nodes are added, removed, replaced and rotated, links change, certificates are revoked,
        and every machine reads the new mesh file in its own time.
        """
        self.rng = rng = random.Random(seed)
        streams.SEGMENT = (2, 8, 1_024)[seed % 3]
        self.steps, self.absence, self.changes, self.members = steps, absence, changes, members
        self.network = self._network(rng)
        self.gamma = rng.choice([2, 3] if absence else [1, 1, 2, 2, 3])
        self.policy = self._policy(rng)
        if not members:
            self.gamma = self.policy.plan(self.network).part(0).gamma  # never more than the diameter
        self.limits = Limits(
            window=rng.choice([40, 400, 4000]),
            max_open=rng.choice([3, 8, 50]),
            block=rng.choice([4, 16, 64]),
            batch=rng.choice([1, 1, 3, 16]),
            have_every=3.0,
            # Whoever claims something and does not tell it is waited for longer than a silent link lasts.
            skip_after=2.0 if absence else rng.choice([1.0, 6.0]),
            ping_every=2.0,
            silence=8.0,
        )
        self.signed = rng.random() < (0.7 if changes else 0.4)
        self.now = 1000.0
        n = self.network.n_agents
        self.size = n + SPARES * members
        edges = frozenset((v, w) for v in range(n) for w in self.network.neighbours(v).tolist() if v < w)
        self.files = [File(frozenset(range(n)), edges, (0,) * self.size)]
        self.all_edges = set(edges)
        self.distance = self.distances(edges)
        """The least that it ever was."""
        retain = [1, 3, 8, 30] if absence else [2, 4, 30] if rng.random() < 0.7 else [30, 1000]
        self.hosts = [Host(Disk(), epoch=1, retain=rng.choice(retain)) for _ in range(self.size)]
        for v, host in enumerate(self.hosts):
            host.side = 0 if changes else None
            host.away = v >= n
        self.truth: dict[Key, list[tuple[int, int, float]]] = {}
        self.tokens: set[tuple[int, int, int]] = set()
        self.side_truth: dict[Key, list[tuple[int, int, float]]] = {}
        self.side_tokens: set[tuple[int, int, int]] = set()
        self.wires: dict[int, Wire] = {}
        self.blocked: set[tuple[int, int]] = set()
        self.next_link = 1
        self.hostile = self.was_hostile = not absence and rng.random() < 0.5
        self.lied: set[int] = set()
        self.said: dict[tuple[int, int], dict[Key, tuple[int, int]]] = {}
        """Per (link, hearer): what came over it about streams, as (upto, hops), kept apart from the nodes."""
        self.used = set(range(n))
        """Ids that were given: none is given again."""
        self.shown: dict[tuple[int, int], str] = {}
        """Per (link, end): the serial number of its certificate."""

    def _network(self, rng: random.Random) -> rm.Network:
        n = rng.randint(3 if self.absence else 2, 6)
        edges = {(rng.randrange(v), v) for v in range(1, n)}
        for _ in range(rng.randint(0, n)):
            a, b = rng.sample(range(n), 2)
            edges.add((min(a, b), max(a, b)))
        return rm.Network.from_edges(sorted(edges))

    def _policy(self, rng: random.Random) -> Any:
        kinds = ["everybody", "kmp"] if self.members else ["everybody", "cliques", "leaders", "kmp"]
        kind = rng.choice(kinds)
        given: dict[str, Any] = {"gamma": self.gamma, "quiet": rng.choice([None, None, 0.0, 0.25])}
        given["start"] = rng.choice(["round-robin", "round-robin", "shared"])
        given["estimator"] = rng.choice(
            [rm.TrimmedMean(), rm.TrimmedMean(), rm.ClippedMean(), rm.SelfTuned()]
        )
        if kind == "cliques":
            return rm.DecentralizedMPUCB(**given)
        if kind == "leaders":
            return rm.CentralizedMPUCB(**given)
        if kind == "kmp":
            return rm.KMPUCB(**given)
        return rm.DecentralizedMPUCB(**given, clique_filter=False)

    @property
    def newest(self) -> File:
        return self.files[-1]

    def file(self, v: int) -> File:
        """The mesh file that a machine has applied."""
        return self.files[self.hosts[v].file]

    def serial(self, v: int, key: int) -> str:
        return f"{v}.{key}"

    def distances(self, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
        far = 99
        d = [[0 if v == w else far for w in range(self.size)] for v in range(self.size)]
        for v, w in edges:
            d[v][w] = d[w][v] = 1
        for k in range(self.size):
            for v in range(self.size):
                for w in range(self.size):
                    d[v][w] = min(d[v][w], d[v][k] + d[k][w])
        return d

    def fresh(self, v: int, epoch: int, disk: Disk | None = None) -> Node:
        store = None if disk is None else StoredItems(disk)
        return Node(dataclasses.replace(self.config(v), epoch=epoch), store)

    def config(self, v: int) -> NodeConfig:
        """From the mesh file as it is on this machine."""
        if self.members:
            return self._member_config(v)
        made = node_config(
            self.policy,
            self.network,
            v,
            n_arms=N_ARMS,
            epoch=self.hosts[v].epoch,
            limits=replace(self.limits, retain=self.hosts[v].retain),
            patience=4.0,
            signed=self.signed,
        )
        side, (game,) = self.hosts[v].side, made.games
        game = dataclasses.replace(
            game, classes=MOST_CLASSES, of_class=functools.partial(self.of_class, v, game)
        )
        if side is None:
            return dataclasses.replace(made, games=(game,))
        second = dataclasses.replace(
            game,
            name=SIDE,
            n_arms=2 + side,
            arms=(("middle", "left"), ("left", "right", "middle"))[side],
            kind="side",
            fingerprint=f"{game.fingerprint} {side}",
            make_agent=maker(self.policy, self.network, v, 2 + side, MOMENTS),
        )
        return dataclasses.replace(made, games=(game, second))

    def of_class(self, v: int, game: GameConfig, name: str, prior: rm.Prior | None) -> GameConfig:
        """A request class of the first game."""
        make = maker(self.policy, self.network, v, N_ARMS, MOMENTS, prior)
        return dataclasses.replace(game, name=name, make_agent=make)

    def _member_config(self, v: int) -> NodeConfig:
        """The agent is the same whatever the file: a replay under another one gives the same state."""
        file, policy = self.file(v), self.policy

        def make() -> Agent:
            agent: Agent = policy.agent(
                Seat(
                    agent=v,
                    n_arms=N_ARMS,
                    neighbours=(),
                    rng=np.random.default_rng(v),
                    moments=MOMENTS,
                    horizon=LAST_DECISION,
                    n_agents=self.size,
                    part=HopPart(self.gamma, group=self.size),
                )
            )
            return agent

        game = GameConfig(
            name=GAME,
            n_arms=N_ARMS,
            gamma=self.gamma,
            fingerprint="members",
            make_agent=make,
            patience=4.0,
            reach={w: frozenset(range(self.size)) for w in range(self.size)},
        )
        return NodeConfig(
            node=v,
            mesh="test",
            epoch=self.hosts[v].epoch,
            neighbours=file.linked(v),
            members=file.members,
            games=(game,),
            limits=replace(self.limits, retain=self.hosts[v].retain),
            revoked=file.revoked,
            signer=key_signer(v, self.hosts[v].key, file.keys) if self.signed else None,
        )

    def node(self, v: int) -> Node:
        node = self.hosts[v].node
        assert node is not None
        return node

    def clock(self, v: int) -> float:
        return self.now + self.hosts[v].offset
