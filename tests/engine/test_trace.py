"""What is written down of a game is what the engines play, and every bundle is accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.small_games import BANDIT, NETWORK, EpsilonGreedy
from rumormill.engine import play_trial, prepare
from rumormill.engine.trace import Bundle, Trace, record
from rumormill.errors import ContractError, InputError
from rumormill.protocol import Message, PerfectCarrier, World
from rumormill.seeds import root_seed, stream_seed

HORIZON, ROUNDS = 90, 40
RING = rm.Network.ring(7)

WORLDS: dict[str, dict[str, Any]] = {
    "perfect": {},
    "lossy": {"channel": rm.Imperfect(p=0.6)},
    "lossy copies": {"channel": rm.Imperfect(p=0.6, per="copy", delay=2)},
    "late": {"channel": rm.Imperfect(p=0.9, delay=("geometric", 0.4, 5))},
    "away": {"absences": [(2, 5, 9), (6, 1, 12)], "outages": [(0, 1, 3, 20)]},
    "all at once": {
        "channel": rm.Imperfect(p=0.7, delay=3),
        "churn": rm.Churn(up=12, down=4),
        "outages": [(3, 4, 2, 8)],
        "byzantine": rm.Byzantine(agents=[1]),
        "corruption": rm.Corruption(rate=0.3, shift=1.0),
    },
}
POLICIES = {
    "kmp": rm.KMPUCB(gamma=2),
    "decentralized": rm.DecentralizedMPUCB(gamma=3, clique_filter=False),
    "robust": rm.RobustUCB(),
}


def played(policy: Any, world: World, network: rm.Network = RING, source: Any = BANDIT) -> Trace:
    ready = prepare(policy, network, source.n_arms, engine="reference", world=world)
    return record(ready, source, HORIZON, stream_seed(root_seed(3), 0), ROUNDS)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", WORLDS)
def test_the_record_is_the_game_that_is_played_without_one(policy: str, name: str) -> None:
    if policy == "robust" and "byzantine" in WORLDS[name]:
        world = World(**{key: value for key, value in WORLDS[name].items() if key != "byzantine"})
    else:
        world = World(**WORLDS[name])
    seen = played(POLICIES[policy], world)
    marks = np.arange(1, HORIZON + 1)
    ready = prepare(POLICIES[policy], RING, BANDIT.n_arms, engine="reference", world=world)
    (trial,) = play_trial([ready], BANDIT, HORIZON, stream_seed(root_seed(3), 0), marks, keep_actions=True)
    assert trial.actions is not None
    assert seen.actions.tolist() == trial.actions[:ROUNDS].tolist()
    assert seen.regret == pytest.approx(trial.agent_regret[:ROUNDS].sum(axis=1))
    # Every message that was sent is in a bundle, and what is in a bundle was said by its sender.
    sent = np.zeros(ROUNDS, dtype=np.int64)
    for bundle in seen.bundles:
        sent[bundle.sent - 1] += len(bundle.messages)
        assert bundle.messages == seen.outgoing[bundle.sent - 1][bundle.sender]
        assert bundle.receiver in RING.neighbours(bundle.sender)
    assert sent.tolist() == np.diff(trial.messages[:ROUNDS], prepend=0).tolist()
    assert np.isnan(seen.rewards).tolist() == (seen.actions < 0).tolist()


@pytest.mark.parametrize("name", WORLDS)
def test_every_bundle_has_one_fate(name: str) -> None:
    seen = played(POLICIES["decentralized"], World(**WORLDS[name]))
    delay = World(**WORLDS[name]).longest_delay or 0
    for bundle in seen.bundles:
        if bundle.fate in ("arrived", "away"):
            assert bundle.arrived is not None
            assert bundle.sent <= bundle.arrived <= bundle.sent + delay
            assert 0 <= bundle.missing < len(bundle.messages)
            if bundle.arrived <= ROUNDS:
                there = seen.up[bundle.arrived - 1, bundle.receiver]
                assert there == (bundle.fate == "arrived")
        else:
            assert bundle.arrived is None
            assert bundle.missing == len(bundle.messages)
    fates = {bundle.fate for bundle in seen.bundles}
    late = any(bundle.arrived is not None and bundle.arrived > bundle.sent for bundle in seen.bundles)
    assert ("lost" in fates) == ("lossy" in name or name in ("late", "all at once"))
    assert late == (delay > 0)
    assert ("away" in fates) == (name in ("away", "all at once"))
    assert ("down" in fates) == ("outages" in WORLDS[name])


# --- by hand ---------------------------------------------------------------------------------------------


class Troubled(PerfectCarrier):
    """Loses what 0 sends in round 2, keeps back for two rounds what 1 sends to 2 in round 1, and hands out
    other objects than it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Message] = []

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        if (t, sender) == (2, 0):
            return
        anew = [Message.decode(message.encode()) for message in messages]
        if (t, sender, receiver) == (1, 1, 2):
            self.kept = anew
        else:
            super().send(t, sender, receiver, anew)

    def deliver(self, t: int, receiver: int) -> list[Message]:
        arrived = super().deliver(t, receiver)
        if (t, receiver) == (3, 2):
            return [*self.kept, *arrived, Message(0, 1, 0, 5.0)]  # and one that nobody sent
        return arrived


@dataclass(frozen=True, kw_only=True)
class TroubledChannel(rm.Channel):
    name: str = field(default="troubled")

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> Troubled:
        return Troubled()


def test_a_path_by_hand() -> None:
    world = World(channel=TroubledChannel(), absences=[(1, 3, 3)])
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False)
    seen = played(policy, world, rm.Network.path(3))
    first = [bundle for bundle in seen.bundles if bundle.sent <= 3]
    one, two, three = (((v, 1),) for v in range(3))
    assert first == [
        Bundle(0, 1, 1, one, "arrived", 1),
        Bundle(1, 0, 1, two, "arrived", 1),
        Bundle(1, 2, 1, two, "arrived", 3),
        Bundle(2, 1, 1, three, "arrived", 1),
        Bundle(0, 1, 2, ((0, 2),), "lost", None, 1),
        Bundle(1, 0, 2, ((1, 2),), "arrived", 2),
        Bundle(1, 2, 2, ((1, 2),), "arrived", 2),
        Bundle(2, 1, 2, ((2, 2),), "arrived", 2),
        Bundle(0, 1, 3, ((0, 3),), "away", 3),
        Bundle(2, 1, 3, ((2, 3),), "away", 3),
    ]
    assert seen.outgoing[2][1] == ()
    assert seen.up[2].tolist() == [True, False, True]


def test_own_policies_are_recorded_too_and_keep_to_the_contract() -> None:
    seen = played(EpsilonGreedy, World(), NETWORK)
    assert seen.rounds == ROUNDS
    assert len(seen.bundles) == 2 * NETWORK.n_edges * ROUNDS

    class Mute(EpsilonGreedy):
        def outgoing(self, t: int) -> Any:
            return None

    with pytest.raises(ContractError, match="agent 0 sent None in round 1"):
        played(Mute, World(), NETWORK)


def test_the_best_arm_may_change_and_differ() -> None:
    low, high = (rm.Bandit([rm.Gaussian(loc=a), rm.Gaussian(loc=b)]) for a, b in ((0, 1), (1, 0)))
    changing = rm.Piecewise([(1, low), (11, high)])
    seen = played(rm.RobustUCB(), World(), NETWORK, changing)
    assert (seen.best[:10] == 1).all()
    assert (seen.best[10:] == 0).all()
    apart = rm.Clusters([low, high], members=[[0, 1], [2, 3]])
    assert played(rm.RobustUCB(), World(), NETWORK, apart).best[0].tolist() == [1, 1, 0, 0]
    costs = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=9.0)], objective="minimise")
    paid = played(rm.RobustUCB(), World(), NETWORK, costs)
    assert paid.best[0, 0] == 0
    assert paid.rewards[1].mean() > 4  # the second round pulls the dear arm, and says so as it was given


def test_rounds_are_counted() -> None:
    heard = []
    ready = prepare(rm.RobustUCB(), NETWORK, BANDIT.n_arms, engine="reference")
    seen = record(ready, BANDIT, 5, stream_seed(root_seed(3), 0), 9, lambda: heard.append(1))
    assert (seen.rounds, len(heard)) == (5, 5)
    with pytest.raises(InputError, match="rounds = 0"):
        record(ready, BANDIT, 5, stream_seed(root_seed(3), 0), 0)
