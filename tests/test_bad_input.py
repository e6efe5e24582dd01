"""Clear refusals before any round: what was given, what is allowed."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

import rumormill as rm
from helpers.small_games import BANDIT, IN_PARTS, NETWORK, TABLE, EpsilonGreedy, simulate

NAN, INF = np.where(TABLE > 2, np.nan, TABLE), np.where(TABLE > 2, np.inf, TABLE)
wrong: Any = rm  # called here in ways that a type checker refuses too

wrong_bandit: Any = BANDIT


class Wild(rm.Arm):
    """A law that promises little and pays beyond all measure."""

    @property
    def mean(self) -> float:
        return 1.0

    @property
    def tail_index(self) -> float:
        return float("inf")

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return np.full(size, 1e200)

    def _moment(self, p: float, center: float) -> float:
        return 1.0


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no arms": (lambda: wrong.Bandit([]), "0 arm.*at least two"),
    "one arm": (lambda: wrong.Bandit([wrong.Gaussian()]), "1 arm.*at least two"),
    "no gap": (lambda: wrong.Bandit([wrong.Gaussian(), wrong.Gaussian(scale=2)]), "same mean"),
    "no mean": (
        lambda: wrong.Bandit([wrong.AlphaStable(alpha=1.0), wrong.Gaussian()]),
        "alpha = 1.0 has no mean",
    ),
    "eps zero": (lambda: wrong.Moments(eps=0.0, u=1.0, rho=1.0), r"eps = 0.0.*0.001 to 1"),
    "eps above one": (lambda: wrong.Moments(eps=1.1, u=1.0, rho=1.0), "eps = 1.1.*0.001 to 1"),
    "eps nan": (lambda: wrong.Moments(eps=float("nan"), u=1.0, rho=1.0), "eps = nan"),
    "u zero": (lambda: wrong.Moments(eps=0.5, u=0.0, rho=1.0), "u = 0.0"),
    "rho infinite": (lambda: wrong.Moments(eps=0.5, u=1.0, rho=float("inf")), "rho = inf"),
    "eps too large": (lambda: BANDIT.moments(0.5), "eps = 0.5 is too large"),
    "moments of an order the arms do not have": (
        lambda: simulate(policy=wrong.RobustUCB(moments=wrong.Moments(eps=0.8, u=3.0, rho=3.0))),
        "eps = 0.8",
    ),
    "negative gamma": (lambda: wrong.KMPUCB(gamma=-1), "gamma = -1.*>= 0"),
    "fractional gamma": (lambda: wrong.DecentralizedMPUCB(gamma=1.5), "gamma = 1.5"),
    "gamma in words": (lambda: wrong.CentralizedMPUCB(gamma="all"), "gamma = 'all'.*half-diameter"),
    "consensus in parts": (
        lambda: simulate(network=IN_PARTS, policy=wrong.ConsensusUCB()),
        "connected network, this one has 2 parts",
    ),
    "no agents": (lambda: wrong.Network(nx.Graph()), "at least one node"),
    "flat table": (lambda: wrong.Replay(TABLE[0]), r"shape \(4, 3\).*\[round, agent, arm\]"),
    "table of one arm": (lambda: wrong.Replay(TABLE[:, :, :1]), "at least two"),
    "table with nan": (lambda: wrong.Replay(NAN), r"table\[\d+, \d, \d\] = nan is not finite"),
    "table with inf": (lambda: wrong.Replay(INF), r"table\[\d+, \d, \d\] = inf is not finite"),
    "table of other agents": (
        lambda: simulate(wrong.Replay(TABLE[:, :3])),
        "network has 4 agents, the table 3",
    ),
    "table too short": (lambda: simulate(wrong.Replay(TABLE), horizon=21), "horizon = 21.*1 to 20"),
    "means that do not fit": (lambda: wrong.Replay(TABLE, means=[0.0, 1.0]), r"shape \(2,\)"),
    "replay again and again": (lambda: simulate(wrong.Replay(TABLE), trials=2), "trials = 2 of a Replay"),
    "no rounds": (lambda: simulate(horizon=0), "horizon = 0"),
    "half a round": (lambda: simulate(horizon=2.5), "horizon = 2.5"),
    "no trials": (lambda: simulate(trials=0), "trials = 0"),
    "no seed": (lambda: simulate(rng=None), "rng = None"),
    "no workers": (lambda: simulate(workers=0), "workers = 0"),
    "empty blocks": (lambda: simulate(block=0), "block = 0"),
    "unknown engine": (lambda: simulate(engine="warp"), "engine = 'warp'"),
    "late checkpoint": (lambda: simulate(checkpoints=[21]), "between 1 and the horizon 20"),
    "checkpoints backwards": (lambda: simulate(checkpoints=[5, 3]), "increasing"),
    "a networkx graph as network": (lambda: simulate(network=nx.path_graph(4)), "Network"),
    "a list as bandit": (lambda: simulate(bandit=[wrong.Gaussian(), wrong.Gaussian(loc=1)]), "Bandit"),
    "a class for a policy": (lambda: simulate(policy=wrong.KMPUCB), "KMPUCB"),
    "a channel's class": (
        lambda: simulate(channel=wrong.PerfectChannel, engine="reference"),
        r"channel = .* cannot be opened: give an instance with open\(network, seed\)",
    ),
    "a channel nobody knows": (lambda: simulate(channel="telepathy"), "channel = 'telepathy'.*perfect"),
    "a policy nobody knows": (lambda: simulate(policy="robuts"), "policy = 'robuts'.*robust"),
    "a setting nobody knows": (lambda: simulate(policy={"type": "kmp", "gama": 1}), "gama.*gamma"),
    "no policy": (lambda: simulate(policy="KMPUCB"), "policy = 'KMPUCB'"),
    "negative c": (lambda: wrong.RobustUCB(c=-1.0), "c = -1.0.*theory.*or a number"),
    "zero zeta": (lambda: wrong.RobustUCB(zeta=0.0), "zeta = 0.0.*a number"),
    "c and zeta": (lambda: wrong.RobustUCB(c=1.0, zeta=1.0), "exactly one"),
    "theory without a lemma": (
        lambda: wrong.RobustUCB(estimator=wrong.EmpiricalMean(), c="theory"),
        "'theory' is not allowed with EmpiricalMean",
    ),
    "unknown schedule": (lambda: wrong.RobustUCB(confidence="never"), "confidence = 'never'.*paper.*anytime"),
    "no estimator": (lambda: wrong.RobustUCB(estimator="trimmed"), "estimator = 'trimmed'.*TrimmedMean"),
    "moments as a tuple": (lambda: wrong.ConsensusUCB(moments=(0.5, 1, 1)), "moments = .*rm.Moments"),
    "moments as a number": (lambda: wrong.AlphaStableTS(moments=4.0), "moments = 4.0.*rm.Moments"),
    "cover that leaves out": (
        lambda: simulate(policy=wrong.DecentralizedMPUCB(gamma=3, cover=[[0, 1, 2]])),
        "leaves out agent 3",
    ),
    "cover of no cliques": (
        lambda: simulate(policy=wrong.DecentralizedMPUCB(gamma=1, cover=[[0, 1, 2], [3]])),
        "more than gamma = 1 hops apart",
    ),
    "cover that overlaps": (
        lambda: simulate(policy=wrong.DecentralizedMPUCB(gamma=1, cover=[[0, 1], [1, 2], [3]])),
        "agent 1 is in group 0 and again in group 1",
    ),
    "cover without filter": (
        lambda: wrong.DecentralizedMPUCB(clique_filter=False, cover=[[0]]),
        "clique_filter",
    ),
    "leaders out of earshot": (
        lambda: simulate(policy=wrong.CentralizedMPUCB(gamma=1, leaders=[0])),
        "agents 2, 3 cannot hear any leader within gamma = 1",
    ),
    "leader nobody knows": (
        lambda: simulate(policy=wrong.CentralizedMPUCB(gamma=3, leaders=[4])),
        "agent = 4",
    ),
    "kappa zero": (lambda: wrong.ConsensusUCB(kappa=0.0), "kappa = 0.0.*to 1"),
    "kappa that never settles": (
        lambda: simulate(network=wrong.Network.ring(4), policy=wrong.ConsensusUCB(kappa=1.0)),
        "kappa = 1.0",
    ),
    "a class for a channel": (
        lambda: simulate(channel=wrong.PerfectChannel, engine="reference"),
        r"channel = .* cannot be opened: give an instance",
    ),
    "kappa next to nothing": (lambda: wrong.ConsensusUCB(kappa=1e-300), "kappa = 1e-300.*1e-06 to 1"),
    "epsilon beyond all measure": (lambda: wrong.ConsensusUCB(epsilon=1e300), r"epsilon = 1e\+300"),
    "eps next to nothing": (lambda: wrong.Moments(eps=1e-300, u=1.0, rho=1.0), "eps = 1e-300"),
    "moments next to nothing": (lambda: wrong.Moments(eps=0.5, u=1e-300, rho=1.0), "u = 1e-300.*1e-60 to"),
    "arms beyond all measure": (lambda: wrong.Gaussian(loc=1e150), r"loc = 1e\+150.*1e\+100"),
    "a reward beyond all measure": (lambda: wrong.Replay(TABLE * 1e150), "of size .*rescale"),
    "means beyond all measure": (lambda: wrong.Replay(TABLE, means=[0.0, 1e308, -1e308]), "rescale"),
    "rewards that are drawn beyond all measure": (
        lambda: simulate(bandit=wrong.Bandit([Wild(), wrong.Gaussian()])),
        r"a drawn reward of size 1e\+200 is not allowed",
    ),
    "a number for arms": (lambda: wrong.Bandit(5), "arms = 5"),
    "a list for eps": (lambda: wrong_bandit.moments([0.5]), r"eps = \[0.5\]"),
    "an array for gamma": (lambda: wrong.KMPUCB(gamma=np.array([1, 2])), "gamma = array"),
    "an array for c": (lambda: wrong.KMPUCB(c=np.array([1.0, 2.0])), "c = array"),
    "an array for loc": (lambda: wrong.Gaussian(loc=np.array([1, 2])), "loc = array"),
    "an array for horizon": (lambda: simulate(horizon=np.array([3])), "horizon = array"),
    "a misspelt setting": (lambda: wrong.KMPUCB(gama=1), "gama is unknown: did you mean 'gamma'"),
    "a missing setting": (lambda: wrong.AlphaStable(), "missing a required argument: 'alpha'"),
    "a misspelt option": (lambda: simulate(horizn=3), "horizn is unknown: did you mean 'horizon'"),
    "a missing option": (lambda: wrong.simulate(BANDIT, NETWORK, wrong.KMPUCB()), "missing.*'horizon'"),
    "a family without its size": (lambda: wrong.Network.erdos_renyi(5, rng=1), "missing.*'p'"),
    "an edge to None": (lambda: wrong.Network.from_edges([(None, 1)]), "none of them None"),
    "a number for edges": (lambda: wrong.Network.from_edges(5), "5 is not an edge"),
    "a network beyond memory": (lambda: wrong.Network.complete(10**8), "at most 8 GB are allowed"),
    "a horizon beyond memory": (lambda: simulate(horizon=10**11), "horizon = 100,000,000,000"),
    "actions beyond memory": (lambda: simulate(horizon=10**9, actions=True), "keeping every action"),
    "a number for a policy to check": (lambda: wrong.checks.check_policy(3), "policy = 3"),
    "nothing for an estimator to check": (lambda: wrong.checks.check_estimator(None), "estimator = None"),
    "a message without encoding": (lambda: wrong.Message(-1, 1, 1, 1.0).encode(), "has no encoding"),
    "a word for axes": (lambda: simulate().plot("x"), "ax = 'x'"),
    "epsilon of other agents": (
        lambda: simulate(policy=wrong.ConsensusUCB(epsilon=[1.0, 2.0])),
        "2 values for 4 agents",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    make, says = BAD[name]
    with pytest.raises(rm.InputError, match=says):
        make()


@pytest.mark.parametrize(
    "options",
    [
        {"bandit": wrong.Replay(TABLE[:, :3])},
        {"bandit": wrong.Replay(TABLE), "horizon": 21},
        {"checkpoints": [21]},
        {"rng": -1},
        {"trials": -1},
    ],
    ids=repr,
)
def test_refusals_come_before_any_round(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpsilonGreedy, "played", 0)
    with pytest.raises(rm.InputError):
        simulate(policy=EpsilonGreedy, engine="reference", **options)
    assert EpsilonGreedy.played == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: wrong.Moments(eps="a", u=1.0, rho=1.0),
        lambda: wrong.Moments(eps=0.5, u="a", rho=1.0),
        lambda: wrong.ConsensusUCB(kappa="a"),
        lambda: wrong.ConsensusUCB(epsilon="a"),
        lambda: wrong.CentralizedMPUCB(leaders=1),
        lambda: wrong.DecentralizedMPUCB(cover=5),
    ],
    ids=["eps", "u", "kappa", "epsilon", "leaders", "cover"],
)
def test_wrong_types(make: Callable[[], object]) -> None:
    with pytest.raises(rm.InputError):
        make()
