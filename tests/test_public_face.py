"""What a user meets: an own policy, clear refusals before any round, Ctrl-C, quick import."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from rumormill.errors import SlowEngineNotice

BANDIT = rm.Bandit([rm.AlphaStable(alpha=1.5, loc=loc) for loc in (0.0, 0.5, 1.0)])
NETWORK = rm.Network.path(4)
TABLE = np.random.default_rng(0).standard_normal((20, 4, 3))


def simulate(bandit=BANDIT, network=NETWORK, policy=None, **options):
    options = {"horizon": 20, "trials": 1, "rng": 0, **options}
    return rm.simulate(bandit, network, policy or rm.RobustUCB(), **options)


class Wild(rm.Arm):
    """A law that promises little and pays beyond all measure."""

    mean, tail_index = 1.0, float("inf")

    def sample(self, rng, size):
        return np.full(size, 1e200)

    def _moment(self, p, center):
        return 1.0


class EpsilonGreedy:
    """A user's own policy: four methods, a seat, no base class. It listens to its neighbours."""

    played = 0

    def __init__(self, seat):
        self.rng, self.agent, self.n_arms = seat.rng, seat.agent, seat.n_arms
        self.sums, self.counts = np.zeros(seat.n_arms), np.zeros(seat.n_arms)

    def choose(self, t):
        type(self).played += 1
        if t <= self.n_arms:
            return t - 1
        if self.rng.random() < 0.2:
            return self.rng.integers(self.n_arms)  # a numpy integer is fine
        return np.argmax(self.sums / self.counts)

    def observe(self, t, arm, reward):
        self.sums[arm] += reward
        self.counts[arm] += 1
        self.message = rm.Message(self.agent, t, int(arm), reward)

    def outgoing(self, t):
        return [self.message]

    def receive(self, messages):
        for message in messages:
            self.sums[message.arm] += message.reward
            self.counts[message.arm] += 1


def test_an_own_policy_runs():
    result = simulate(policy=EpsilonGreedy, engine="reference", trials=3, actions=True, horizon=60)
    assert result.engine == "reference"
    assert result.actions.shape == (3, 60, 4)
    assert (result.actions[:, :3] == np.arange(3)[:, None]).all()
    assert set(np.unique(result.actions)) == {0, 1, 2}
    assert result.messages[0, -1] == 60 * 6  # one each round over both ends of three links
    again = simulate(policy=EpsilonGreedy, engine="reference", trials=3, actions=True, horizon=60)
    np.testing.assert_array_equal(result.actions, again.actions)
    other = simulate(policy=EpsilonGreedy, engine="reference", trials=3, actions=True, horizon=60, rng=1)
    assert (result.actions != other.actions).any()


def test_agents_and_trials_have_generators_of_their_own():
    class Coin(EpsilonGreedy):
        def choose(self, t):
            return self.rng.integers(self.n_arms)

    actions = simulate(policy=Coin, engine="reference", trials=3, actions=True, horizon=60).actions
    streams = {tuple(actions[trial, :, v]) for trial in range(3) for v in range(4)}
    assert len(streams) == 12


def test_auto_says_that_an_own_policy_is_slow():
    says = "^EpsilonGreedy runs on the reference engine: .*built-in"
    with pytest.warns(SlowEngineNotice, match=says) as seen:
        result = simulate(policy=EpsilonGreedy)
    assert result.engine == "reference"
    assert len(seen) == 1


class OwnChannel(rm.PerfectChannel):
    """The perfect one under another name."""


class Deaf(rm.Channel):
    """Nothing ever arrives; it keeps what it was opened with."""

    opened: ClassVar[list[Any]] = []

    def open(self, network, seed):
        self.opened.append((network, seed))
        return self

    def send(self, t, sender, receiver, messages):
        pass

    def deliver(self, t, receiver):
        return []


def test_a_channel_is_opened_for_every_trial_with_its_seed_and_the_network():
    Deaf.opened.clear()
    simulate(channel=Deaf(), engine="reference", policy=rm.KMPUCB(gamma=1), trials=2)
    assert [network for network, _ in Deaf.opened] == [NETWORK, NETWORK]
    assert [(seed.entropy, seed.spawn_key) for _, seed in Deaf.opened] == [(0, (0, 4)), (0, (1, 4))]


def test_auto_says_that_a_channel_is_slow_and_changes_nothing():
    with pytest.warns(SlowEngineNotice, match="perfect channel only"):
        slow = simulate(channel=OwnChannel(), actions=True, policy=rm.KMPUCB(gamma=2))
    np.testing.assert_array_equal(slow.actions, simulate(actions=True, policy=rm.KMPUCB(gamma=2)).actions)


def test_a_channel_that_drops_everything_is_isolation():
    talking = rm.DecentralizedMPUCB(gamma=2, clique_filter=False)
    silent = simulate(channel=Deaf(), engine="reference", actions=True, policy=talking)
    np.testing.assert_array_equal(silent.actions, simulate(actions=True).actions)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"policy": EpsilonGreedy}, "built-in policies only"),
        ({"channel": OwnChannel()}, "perfect channel only"),
        ({"policy": rm.RobustUCB(estimator=rm.TrimmedMean(variant="literal"))}, "literal"),
    ],
    ids=["own policy", "channel", "literal"],
)
def test_fast_says_why_it_cannot(options, reason):
    with pytest.raises(rm.InputError, match=f'^engine="fast" cannot run this: .*{reason}'):
        simulate(engine="fast", **options)


def test_built_in_policies_are_fast_by_default():
    classes = (rm.KMPUCB, rm.ConsensusUCB, rm.RobustUCB, rm.DecentralizedMPUCB, rm.CentralizedMPUCB)
    assert {simulate(policy=cls()).engine for cls in classes} == {"fast"}


IN_PARTS = rm.Network.from_edges([(0, 1), (2, 3)])
NAN, INF = np.where(TABLE > 2, np.nan, TABLE), np.where(TABLE > 2, np.inf, TABLE)

BAD = {
    "no arms": (lambda: rm.Bandit([]), "0 arm.*at least two"),
    "one arm": (lambda: rm.Bandit([rm.Gaussian()]), "1 arm.*at least two"),
    "no gap": (lambda: rm.Bandit([rm.Gaussian(), rm.Gaussian(scale=2)]), "same mean"),
    "no mean": (lambda: rm.Bandit([rm.AlphaStable(alpha=1.0), rm.Gaussian()]), "alpha = 1.0 has no mean"),
    "eps zero": (lambda: rm.Moments(eps=0.0, u=1.0, rho=1.0), r"eps = 0.0.*0.001 to 1"),
    "eps above one": (lambda: rm.Moments(eps=1.1, u=1.0, rho=1.0), r"eps = 1.1.*0.001 to 1"),
    "eps nan": (lambda: rm.Moments(eps=float("nan"), u=1.0, rho=1.0), "eps = nan"),
    "u zero": (lambda: rm.Moments(eps=0.5, u=0.0, rho=1.0), "u = 0.0"),
    "rho infinite": (lambda: rm.Moments(eps=0.5, u=1.0, rho=float("inf")), "rho = inf"),
    "eps too large": (lambda: BANDIT.moments(0.5), "eps = 0.5 is too large"),
    "moments of an order the arms do not have": (
        lambda: simulate(policy=rm.RobustUCB(moments=rm.Moments(eps=0.8, u=3.0, rho=3.0))),
        "eps = 0.8",
    ),
    "negative gamma": (lambda: rm.KMPUCB(gamma=-1), "gamma = -1.*>= 0"),
    "fractional gamma": (lambda: rm.DecentralizedMPUCB(gamma=1.5), "gamma = 1.5"),
    "gamma in words": (lambda: rm.CentralizedMPUCB(gamma="all"), "gamma = 'all'.*half-diameter"),
    "consensus in parts": (
        lambda: simulate(network=IN_PARTS, policy=rm.ConsensusUCB()),
        "connected network, this one has 2 parts",
    ),
    "no agents": (lambda: rm.Network(nx.Graph()), "at least one node"),
    "flat table": (lambda: rm.Replay(TABLE[0]), r"shape \(4, 3\).*\[round, agent, arm\]"),
    "table of one arm": (lambda: rm.Replay(TABLE[:, :, :1]), "at least two"),
    "table with nan": (lambda: rm.Replay(NAN), r"table\[\d+, \d, \d\] = nan is not finite"),
    "table with inf": (lambda: rm.Replay(INF), r"table\[\d+, \d, \d\] = inf is not finite"),
    "table of other agents": (
        lambda: simulate(rm.Replay(TABLE[:, :3])),
        "network has 4 agents, the table 3",
    ),
    "table too short": (lambda: simulate(rm.Replay(TABLE), horizon=21), "horizon = 21.*1 to 20"),
    "means that do not fit": (lambda: rm.Replay(TABLE, means=[0.0, 1.0]), r"shape \(2,\)"),
    "replay again and again": (lambda: simulate(rm.Replay(TABLE), trials=2), "trials = 2 of a Replay"),
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
    "a list as bandit": (lambda: simulate(bandit=[rm.Gaussian(), rm.Gaussian(loc=1)]), "Bandit"),
    "a class for a policy": (lambda: simulate(policy=rm.KMPUCB), "KMPUCB"),
    "a class for a channel": (
        lambda: simulate(channel=rm.PerfectChannel, engine="reference"),
        r"channel = .* cannot be opened: give an instance",
    ),
    "a channel nobody knows": (lambda: simulate(channel="perfct"), "did you mean 'perfect'"),
    "no policy": (lambda: simulate(policy="KMPUCB"), "policy = 'KMPUCB'"),
    "negative c": (lambda: rm.RobustUCB(c=-1.0), "c = -1.0.*theory.*1e-100 to"),
    "zero zeta": (lambda: rm.RobustUCB(zeta=0.0), "zeta = 0.0.*1e-100 to"),
    "c and zeta": (lambda: rm.RobustUCB(c=1.0, zeta=1.0), "exactly one"),
    "theory without a lemma": (
        lambda: rm.RobustUCB(estimator=rm.EmpiricalMean(), c="theory"),
        "'theory' is not allowed with EmpiricalMean",
    ),
    "unknown schedule": (lambda: rm.RobustUCB(confidence="never"), "confidence = 'never'.*paper.*anytime"),
    "no estimator": (lambda: rm.RobustUCB(estimator="trimmed"), "estimator = 'trimmed'.*TrimmedMean"),
    "moments as a tuple": (lambda: rm.ConsensusUCB(moments=(0.5, 1, 1)), "moments = .*rm.Moments"),
    "cover that leaves out": (
        lambda: simulate(policy=rm.DecentralizedMPUCB(gamma=3, cover=[[0, 1, 2]])),
        "leaves out agent 3",
    ),
    "cover of no cliques": (
        lambda: simulate(policy=rm.DecentralizedMPUCB(gamma=1, cover=[[0, 1, 2], [3]])),
        "more than gamma = 1 hops apart",
    ),
    "cover that overlaps": (
        lambda: simulate(policy=rm.DecentralizedMPUCB(gamma=1, cover=[[0, 1], [1, 2], [3]])),
        "agent 1 is in group 0 and again in group 1",
    ),
    "cover without filter": (
        lambda: rm.DecentralizedMPUCB(clique_filter=False, cover=[[0]]),
        "clique_filter",
    ),
    "leaders out of earshot": (
        lambda: simulate(policy=rm.CentralizedMPUCB(gamma=1, leaders=[0])),
        "agents 2, 3 cannot hear any leader within gamma = 1",
    ),
    "leader nobody knows": (lambda: simulate(policy=rm.CentralizedMPUCB(gamma=3, leaders=[4])), "agent = 4"),
    "kappa zero": (lambda: rm.ConsensusUCB(kappa=0.0), r"kappa = 0.0.*1e-06 to 1"),
    "kappa that never settles": (
        lambda: simulate(network=rm.Network.ring(4), policy=rm.ConsensusUCB(kappa=1.0)),
        "kappa = 1.0",
    ),
    "kappa next to nothing": (lambda: rm.ConsensusUCB(kappa=1e-300), "kappa = 1e-300.*1e-06 to 1"),
    "epsilon beyond all measure": (lambda: rm.ConsensusUCB(epsilon=1e300), r"epsilon = 1e\+300"),
    "eps next to nothing": (lambda: rm.Moments(eps=1e-300, u=1.0, rho=1.0), "eps = 1e-300"),
    "moments next to nothing": (lambda: rm.Moments(eps=0.5, u=1e-300, rho=1.0), "u = 1e-300.*1e-60 to"),
    "arms beyond all measure": (lambda: rm.Gaussian(loc=1e150), r"loc = 1e\+150.*1e\+100"),
    "a reward beyond all measure": (lambda: rm.Replay(TABLE * 1e150), "of size .*rescale"),
    "means beyond all measure": (lambda: rm.Replay(TABLE, means=[0.0, 1e308, -1e308]), "rescale"),
    "rewards that are drawn beyond all measure": (
        lambda: simulate(bandit=rm.Bandit([Wild(), rm.Gaussian()])),
        r"a drawn reward of size 1e\+200 is not allowed",
    ),
    "a number for arms": (lambda: rm.Bandit(5), "arms = 5"),
    "a list for eps": (lambda: BANDIT.moments([0.5]), r"eps = \[0.5\]"),
    "an array for gamma": (lambda: rm.KMPUCB(gamma=np.array([1, 2])), "gamma = array"),
    "an array for c": (lambda: rm.KMPUCB(c=np.array([1.0, 2.0])), "c = array"),
    "an array for loc": (lambda: rm.Gaussian(loc=np.array([1, 2])), "loc = array"),
    "an array for horizon": (lambda: simulate(horizon=np.array([3])), "horizon = array"),
    "a misspelt setting": (lambda: rm.KMPUCB(gama=1), "gama is unknown: did you mean 'gamma'"),
    "a missing setting": (lambda: rm.AlphaStable(), "missing a required argument: 'alpha'"),
    "a misspelt option": (lambda: simulate(horizn=3), "horizn is unknown: did you mean 'horizon'"),
    "a missing option": (lambda: rm.simulate(BANDIT, NETWORK, rm.KMPUCB()), "missing.*'horizon'"),
    "a family without its size": (lambda: rm.Network.erdos_renyi(5, rng=1), "missing.*'p'"),
    "an edge to None": (lambda: rm.Network.from_edges([(None, 1)]), "none of them None"),
    "a number for edges": (lambda: rm.Network.from_edges(5), "5 is not an edge"),
    "a network beyond memory": (lambda: rm.Network.complete(10**8), "at most 8 GB are allowed"),
    "a horizon beyond memory": (lambda: simulate(horizon=10**11), "horizon = 100,000,000,000"),
    "actions beyond memory": (lambda: simulate(horizon=10**9, actions=True), "keeping every action"),
    "a number for a policy to check": (lambda: rm.checks.check_policy(3), "policy = 3"),
    "nothing for an estimator to check": (lambda: rm.checks.check_estimator(None), "estimator = None"),
    "a message without encoding": (lambda: rm.Message(-1, 1, 1, 1.0).encode(), "has no encoding"),
    "a word for axes": (lambda: simulate().plot("x"), "ax = 'x'"),
    "epsilon of other agents": (
        lambda: simulate(policy=rm.ConsensusUCB(epsilon=[1.0, 2.0])),
        "2 values for 4 agents",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, says = BAD[name]
    with pytest.raises(rm.InputError, match=says):
        make()


@pytest.mark.parametrize(
    "options",
    [
        {"bandit": rm.Replay(TABLE[:, :3])},
        {"bandit": rm.Replay(TABLE), "horizon": 21},
        {"checkpoints": [21]},
        {"rng": -1},
        {"trials": -1},
    ],
    ids=repr,
)
def test_refusals_come_before_any_round(options, monkeypatch):
    monkeypatch.setattr(EpsilonGreedy, "played", 0)
    with pytest.raises(rm.InputError):
        simulate(policy=EpsilonGreedy, engine="reference", **options)
    assert EpsilonGreedy.played == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: rm.Moments(eps="a", u=1.0, rho=1.0),
        lambda: rm.Moments(eps=0.5, u="a", rho=1.0),
        lambda: rm.ConsensusUCB(kappa="a"),
        lambda: rm.ConsensusUCB(epsilon="a"),
        lambda: rm.CentralizedMPUCB(leaders=1),
        lambda: rm.DecentralizedMPUCB(cover=5),
    ],
    ids=["eps", "u", "kappa", "epsilon", "leaders", "cover"],
)
def test_wrong_types(make):
    with pytest.raises(rm.InputError):
        make()


def test_numpy_numbers_are_numbers():
    policy = rm.KMPUCB(gamma=np.int64(1), c=np.int64(1))
    plain = rm.KMPUCB(gamma=1, c=1.0)
    np.testing.assert_array_equal(
        simulate(policy=policy, actions=True, horizon=np.int64(20)).actions,
        simulate(policy=plain, actions=True).actions,
    )


def test_a_network_in_parts_says_so():
    text = IN_PARTS.describe()
    assert "2 parts" in text
    assert not IN_PARTS.connected
    assert simulate(network=IN_PARTS, policy=rm.KMPUCB(gamma=1)).regret.shape == (1, 20)


def test_every_error_is_a_rumormill_error():
    for error in (rm.InputError, rm.DataError, rm.ContractError, rm.SolverError):
        assert issubclass(error, rm.RumormillError)
    assert issubclass(rm.InputError, ValueError)


def run_python(text, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        **options,
    ).stdout


def test_import_is_light():
    heavy = {"numba", "scipy", "networkx", "rustworkx", "dimod", "dwave", "ortools", "matplotlib", "polars"}
    heavy |= {"plotly", "typer"}
    loaded = run_python("import json, sys, rumormill; print(json.dumps(sorted(sys.modules)))")
    assert not set(json.loads(loaded)) & heavy


def test_public_names_exist():
    assert len(set(rm.__all__)) == len(rm.__all__)
    for name in rm.__all__:
        assert hasattr(rm, name)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
@pytest.mark.parametrize(("engine", "workers"), [("fast", 1), ("fast", 2), ("reference", 1)])
def test_ctrl_c_ends_a_long_run(engine, workers):
    program = f"""
        import signal
        import rumormill as rm

        # Whoever starts the tests in the background may have told its children to ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        bandit = rm.Bandit([rm.AlphaStable(alpha=1.5, loc=loc) for loc in (0.0, 1.0)])
        network = rm.Network.complete(30)
        started = []

        def progress(done, total):
            if not started:
                started.append(True)
                print("started", flush=True)

        try:
            rm.simulate(bandit, network, rm.KMPUCB(gamma=1), horizon=1_000_000, trials=40, rng=0,
                        engine="{engine}", workers={workers}, progress=progress)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "started\n"
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=20)
        finally:
            child.kill()
    assert said == "interrupted\n"
    assert child.returncode == 0
