"""Regret of honest agents beside one liar that knows the rules, against agents who never talk (decision 012).

    python -m scripts.sly_liars ba 20 4000 5                      # network, agents, rounds, bandits
    python -m scripts.sly_liars er 40 600 8 --policy origin-median

The liar is the agent of the largest degree. Its rows claim exactly as many samples as the gate lets pass, or
a share of them. Printed: the mean over bandits of the regret of the others as a share of what they would have
alone, the worst of them, and in how many it is above 1. On the readable engine: about an hour per network at
4000 rounds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

import rumormill as rm
from rumormill.protocol.channel import PerfectCarrier

K = 5
NETWORKS: dict[str, Callable[[int, int], rm.Network]] = {
    "er": lambda n, seed: rm.Network.erdos_renyi(n, 0.4, rng=seed),
    "ba": lambda n, seed: rm.Network.barabasi_albert(n, 3, rng=seed),
    "complete": lambda n, seed: rm.Network.complete(n),
}
POLICIES: dict[str, Callable[[rm.Moments], rm.Policy]] = {
    "kmp": lambda moments: rm.KMPUCB(guard=1, gamma=1, zeta=1.0, moments=moments),
    "kmp-unguarded": lambda moments: rm.KMPUCB(guard=0, gamma=1, zeta=1.0, moments=moments),
    "origin-median": lambda moments: rm.OriginMedianUCB(gamma=1, zeta=1.0, moments=moments),
}


@dataclass(frozen=True)
class Attack:
    """What a liar says: samples of one arm (None: the truth), and rows."""

    means: NDArray[np.float64]
    share: float
    """Of the samples that its rows may claim."""
    arm: int | None = None
    reward: float = 0.0
    turn: int | None = None
    """The arm that is praised instead while most pull the best one."""


def attacks(mu: NDArray[np.float64]) -> dict[str, Attack]:
    worst, second, best = (int(np.argsort(mu)[i]) for i in (0, -2, -1))
    praise, slander, sly = np.full(K, -5.0), np.full(K, 5.0), mu.copy()
    praise[worst], slander[best], sly[best] = 5.0, -5.0, -5.0
    high = float(mu.max()) + 1
    return {
        "promote": Attack(praise, 1, worst, high),
        "promote the second best": Attack(slander, 1, second, high),
        "flood": Attack(praise, 1, worst, 1e3),
        "slander, rows at the cap": Attack(slander, 1, best, -5.0),
        "slander, rows at the cap / K": Attack(sly, 1 / K, best, -5.0),
        "slander, samples only": Attack(mu, 0, best, -5.0),
        "slander, rows only": Attack(sly, 1 / K),
        "slander or promote, as it hurts": Attack(slander, 1, best, -5.0, turn=second),
    }


@dataclass(frozen=True, eq=False)
class Lying(rm.Channel):
    """Everything arrives, but what the liar says is replaced."""

    liar: int
    attack: Attack

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> LyingCarrier:
        return LyingCarrier(self, network)


class LyingCarrier(PerfectCarrier):
    def __init__(self, channel: Lying, network: rm.Network) -> None:
        super().__init__()
        self.channel, self.n_agents = channel, network.n_agents
        self.reach = len(network.neighbours(channel.liar)) + 1
        self.arms: dict[int, dict[int, int]] = {}  # by round, what everybody pulled

    def send(self, t: int, sender: int, receiver: int, messages: Any) -> None:
        if sender == self.channel.liar:
            messages = [self.lie(m) for m in messages]
        else:
            self.arms.setdefault(t, {}).update({m.origin: m.arm for m in messages})
        super().send(t, sender, receiver, messages)

    def lie(self, message: rm.Message) -> rm.Message:
        attack, t = self.channel.attack, message.round
        count = float(math.floor(attack.share * self.reach * t))
        rows = tuple((float(mean), count) for mean in attack.means) if message.rows else ()
        arm, reward = message.arm, message.reward
        if attack.arm is not None:
            arm, reward = attack.arm, attack.reward
            pulled = list(self.arms.get(t - 1, {}).values())
            if attack.turn is not None and 2 * pulled.count(arm) > self.n_agents:
                arm, reward = attack.turn, 5.0
        return replace(message, arm=arm, reward=reward, rows=rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("agents", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("bandits", type=int)
    parser.add_argument("--policy", choices=POLICIES, default="kmp")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    ratios: dict[str, list[float]] = {}
    for i in range(given.bandits):
        for name, ratio in ratios_of(given, i).items():
            ratios.setdefault(name, []).append(ratio)
    print(f"{given.policy}, {given.network}, {given.agents} agents, {given.rounds} rounds: share of alone")
    for name, found in ratios.items():
        above = sum(ratio > 1 for ratio in found)
        print(
            f"{name:34s} mean {np.mean(found):5.2f}  worst {max(found):5.2f}  above 1: {above}/{len(found)}"
        )


def ratios_of(given: argparse.Namespace, i: int) -> dict[str, float]:
    """One bandit: regret under every attack, as a share of that of agents alone on the same rewards."""
    rng, network = np.random.default_rng([given.seed, i]), NETWORKS[given.network](given.agents, i + 1)
    liar, mu, M, T = int(np.argmax(network.degrees)), rng.random(K), given.agents, given.rounds
    moments = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=float(m)) for m in mu]).moments()
    table = mu + rm.AlphaStable(alpha=1.9).sample(rng, T * M).reshape(T, M, 1)

    def regret(policy: rm.Policy, channel: rm.Channel | None, leave_out: int | None) -> float:
        told: dict[str, Any] = {} if channel is None else {"channel": channel}
        played = rm.simulate(rm.Replay(table, means=mu), network, policy, horizon=T, rng=0, **told)
        each = played.agent_regret[0, -1]
        return float(each.sum() - (0 if leave_out is None else each[leave_out]))

    alone, policy = rm.RobustUCB(zeta=1.0, moments=moments), POLICIES[given.policy](moments)
    found = {"nobody lies": regret(policy, None, None) / regret(alone, None, None)}
    base = regret(alone, None, liar)
    for name, attack in attacks(mu).items():
        found[name] = regret(policy, Lying(liar, attack), liar) / base
    return found


if __name__ == "__main__":
    main()
