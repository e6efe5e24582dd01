"""Every channel in the catalogue: a carrier per trial, from the trial's seed; nothing is made up."""

import pickle
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.catalogue_samples import every, made
from helpers.channels import Deaf, Muddled, Unreliable
from helpers.oracle_adapters import actions_of
from rumormill import catalogue

each = pytest.mark.parametrize(("name", "table"), every("channel"))
# The tests' own channels keep the same promises.
CHANNELS: list[rm.Channel] = [made("channel", param.values[1]) for param in every("channel")]
OWN: list[rm.Channel] = [Muddled(), Unreliable(lost=0.3), Deaf()]
any_channel = pytest.mark.parametrize("channel", [*CHANNELS, *OWN], ids=repr)
POLICY = rm.KMPUCB(gamma=2, zeta=0.3, moments=rm.Moments(eps=1.0, u=4.0, rho=2.0))


@each
def test_is_plain_data(name: str, table: dict[str, Any]) -> None:
    channel = made("channel", table)
    assert pickle.loads(pickle.dumps(channel)) == channel == made("channel", table)
    assert catalogue.name_of("channel", type(channel)) == name


@any_channel
def test_only_what_was_sent_over_a_link_arrives(channel: rm.Channel) -> None:
    network = rm.Network.path(4)
    carrier = channel.open(network, np.random.SeedSequence(3))
    sent: dict[int, set[rm.Message]] = {v: set() for v in range(4)}
    for t in range(1, 15):
        for v in range(4):
            batch = [rm.Message(v, t, 0, float(t)), rm.Message(v, t, 1, 0.0)]
            for w in network.neighbours(v).tolist():
                sent[w].update(batch)
                carrier.send(t, v, w, batch)
        for v in range(4):
            assert set(carrier.deliver(t, v)) <= sent[v]


@any_channel
def test_a_trial_repeats_itself_and_carriers_are_not_shared(channel: rm.Channel) -> None:
    table = np.random.default_rng(1).standard_cauchy((40, 5, 3))
    network = rm.Network.ring(5)
    one = actions_of(table, network, POLICY, channel=channel)
    np.testing.assert_array_equal(one, actions_of(table, network, POLICY, channel=channel))
    carriers = [channel.open(network, np.random.SeedSequence(3)) for _ in range(2)]
    carriers[0].send(1, 0, 1, [rm.Message(0, 1, 0, 1.0)])
    assert carriers[1].deliver(1, 1) == []


def test_the_seed_of_a_carrier_is_the_trials_own() -> None:
    seeds: list[tuple[int, ...]] = []

    class Noting(rm.Channel):
        def open(self, network: rm.Network, seed: np.random.SeedSequence) -> rm.Carrier:
            seeds.append(tuple(seed.spawn_key))
            return rm.PerfectChannel().open(network, seed)

    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    rm.simulate(
        bandit, rm.Network.ring(5), POLICY, horizon=5, trials=3, rng=1, channel=Noting(), engine="reference"
    )
    assert seeds == [(0, 4), (1, 4), (2, 4)]  # (trial, Role.CHANNEL)
