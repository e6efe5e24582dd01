"""A node is light: agents play with nothing installed but numpy and msgspec."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Everything below runs in a fresh Python that refuses to import anything else.
ONLY_THE_CORE = """
import sys

ALLOWED = {"numpy", "msgspec", "rumormill"}


class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        # The compiler's settings are a file of Python's own, under a name that differs by platform.
        if top in sys.stdlib_module_names or top in ALLOWED or top.startswith("_sysconfigdata"):
            return None
        raise ModuleNotFoundError(f"{name} is not part of the core", name=name)


sys.meta_path.insert(0, Refuse())
"""

GAME = """
import rumormill as rm
from rumormill.policies.centralized import LeaderPart
from rumormill.policies.message_passing_policy import HopPart
from rumormill.policies.averaging import ConsensusPart
from rumormill.policies.baselines.dducb import DelayedPlan

LINKS = {0: (1,), 1: (0, 2), 2: (1,)}
MEANS = (0.0, 0.4, 1.0)
MOMENTS = rm.Moments(eps=0.8, u=4.0, rho=3.4)


def play(policy, parts, rounds=60, horizon=None):
    places = [
        rm.Seat(
            agent=v,
            n_arms=3,
            neighbours=LINKS[v],
            moments=MOMENTS,
            n_agents=3,
            part=parts.get(v),
            horizon=horizon,
        )
        for v in LINKS
    ]
    agents = [policy.agent(place) for place in places]
    pulled = []
    for t in range(1, rounds + 1):
        for v, agent in enumerate(agents):
            arm = agent.choose(t)
            agent.observe(t, arm, MEANS[arm] + (0.25 if (t + v) % 2 else -0.25))
            pulled.append(arm)
        sent = {v: [rm.Message.decode(m.encode()) for m in agents[v].outgoing(t)] for v in LINKS}
        for v, agent in enumerate(agents):
            agent.receive([message for w in LINKS[v] for message in sent[w]])
    return pulled
"""

POLICIES = {
    "decentralized": "play(rm.DecentralizedMPUCB(clique_filter=False, gamma=1), {})",
    "kmp": "play(rm.KMPUCB(gamma=1), {})",
    "origin-median": "play(rm.OriginMedianUCB(gamma=1), {})",
    "robust": "play(rm.RobustUCB(), {})",
    "klinf-ucb": "play(rm.KLInfUCB(gamma=1), {})",
    "robust-dirichlet": "play(rm.RobustDirichlet(gamma=1), {})",
    "alpha-ts": "play(rm.AlphaStableTS(gamma=1), {})",
    "dpe2": (
        "play(rm.DPE2(gamma=1), {v: LeaderPart(gamma=1, leader=1, distance=int(v != 1)) for v in LINKS})"
    ),
    "rmm-ucb": "play(rm.RMMUCB(gamma=1), {})",
    "decentralized-ts": (
        "play(rm.DecentralizedTS(), {v: ConsensusPart(weight=1 / 3, epsilon=0.0) for v in LINKS})"
    ),
    "adar-ucb": "play(rm.AdaRUCB(zeta=0.05, gamma=1), {})",
    "ht-hmucb": (
        "play(rm.HTHMUCB(), {v: HopPart(gamma=1, group=len(LINKS[v]) + 1, "
        "origins={w: len(LINKS[w]) + 1 for w in LINKS[v]}) for v in LINKS})"
    ),
    "coop-se": "play(rm.CoopSE(zeta=0.3, gamma=1), {})",
    "epsilon-greedy": "play(rm.EpsilonGreedy(gamma=1), {})",
    "default": "play(rm.Default(gamma=1), {})",
    "thompson-kmp": "play(rm.ThompsonKMP(gamma=1), {})",
    "centralized": (
        "play(rm.CentralizedMPUCB(gamma=1), "
        "{v: LeaderPart(gamma=1, leader=1, distance=int(v != 1)) for v in LINKS})"
    ),
    "consensus": "play(rm.ConsensusUCB(), {v: ConsensusPart(weight=1 / 3, epsilon=1.0) for v in LINKS})",
    "coop-ucb2": "play(rm.CoopUCB2(), {v: ConsensusPart(weight=1 / 3, epsilon=0.0) for v in LINKS})",
    "robust-gossip": "play(rm.RobustGossip(), {v: ConsensusPart(weight=1 / 3, epsilon=0.0) for v in LINKS})",
    "dducb": (
        "play(rm.DDUCB(sigma=0.3), "
        "{v: DelayedPlan(weight=1 / 3, forward=(1.0,) * 4, back=(0.0,) * 4) for v in LINKS})"
    ),
}
ESTIMATORS = (
    "BucketMedian",
    "TrimmedMean",
    "MedianOfMeans",
    "Catoni",
    "EmpiricalMean",
    "ClippedMean",
    "SelfTuned",
    "MedianBound",
    "RobustMOSS",
    "HuberSGD",
    "CatoniBound",
    "MRUCB",
)


def run_in_the_core(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ONLY_THE_CORE + code], capture_output=True, text=True, timeout=120
    )


def test_agents_of_every_policy_play_by_hand() -> None:
    games = "\n".join(f"print({name!r}, {call}.count(2))" for name, call in POLICIES.items())
    done = run_in_the_core(GAME + games)
    assert done.returncode == 0, done.stderr
    best = {name: int(pulls) for name, pulls in map(str.split, done.stdout.splitlines())}
    assert set(best) == set(POLICIES)
    # Of 180 pulls a third would be those of the best arm if nothing were learnt.
    assert all(pulls > 60 for pulls in best.values()), best


def test_every_built_in_policy_is_played() -> None:
    from rumormill import catalogue

    assert set(POLICIES) == set(catalogue.POLICIES)


def test_every_estimator_is_light() -> None:
    from rumormill import catalogue

    assert {cls.__name__ for cls in catalogue.ESTIMATORS.values()} == set(ESTIMATORS)
    games = "\n".join(
        f"play(rm.KMPUCB(gamma=1, estimator=rm.{estimator}()), {{}}, 20, 20)" for estimator in ESTIMATORS
    )
    done = run_in_the_core(GAME + games)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "room",
    [
        "arms",
        "catalogue",
        "estimators",
        "formulas",
        "graphs",
        "counter_rng",
        "policies",
        "protocol",
        "seeds",
        "validate",
    ],
)
def test_the_rooms_of_the_core_import_nothing_else(room: str) -> None:
    done = run_in_the_core(f"import rumormill.{room}")
    assert done.returncode == 0, done.stderr


def test_the_refusal_works() -> None:
    assert "ModuleNotFoundError: scipy is not part" in run_in_the_core("import scipy").stderr


def test_the_command_line_names_what_to_install() -> None:
    done = run_in_the_core("from rumormill.cli import main; main(['--help'])")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == ("error: typer is not installed, and this needs it: pip install 'rumormill[lab]'\n")
