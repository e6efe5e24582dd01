"""Both engines where messages are lost, late or false and agents come and go: the same game in all respects.

Rewards are drawn from continuous laws, so that two indices are never equal but by design: what the engines do
differently in the last bit (the order in which trimmed samples leave) cannot change an action except with a
probability of some 1e-10 per game.
"""

from dataclasses import replace
from typing import Any, Literal

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers.oracle_adapters import COMPILED_ESTIMATORS, CONNECTED_ONLY
from helpers.strategies import SLOW_TO_DRAW, bandit_of, networks, policies
from rumormill import catalogue
from rumormill.engine import prepare
from rumormill.engine.compiled import layout_lossy as imperfect
from rumormill.engine.compiled import reach
from rumormill.engine.compiled.layout_lossy import LossyLayout
from rumormill.engine.compiled.layout_messages import MessagePassingLayout
from rumormill.errors import InputError

# Words wrap; uncompiled, as the planted faults are tried, numpy remarks on it.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

FLOODING = ("decentralized", "centralized", "kmp", "robust", "origin-median")
AVERAGING = ("consensus", "coop-ucb2", "robust-gossip")
CONTINUOUS = ("stable", "stables", "gaussian", "student", "pareto")
# How messages on their way are kept: rows of bits, lists, or (one hop, no delay) a mask.
FORMS = ("as it comes", "lists", "masks")
FIELDS = ("actions", "agent_regret", "messages", "wire_bytes", "agent_rounds")
ENGINES: tuple[Literal["reference", "fast"], ...] = ("reference", "fast")
Played = tuple[rm.Bandit, rm.Network, rm.Policy, int, dict[str, Any]]


@st.composite
def channels(draw: st.DrawFn) -> rm.Imperfect:
    delays: tuple[Any, ...] = (0, 0, 1, 3, ("geometric", 0.5, 4))
    return rm.Imperfect(
        p=draw(st.sampled_from((1.0, 0.9, 0.6, 0.2, 0.0))),
        per=draw(st.sampled_from(("link", "copy"))),
        symmetric=draw(st.booleans()),
        delay=draw(st.sampled_from(delays)),
    )


@st.composite
def corruptions(draw: st.DrawFn) -> rm.Corruption:
    ways: list[dict[str, Any]] = [{"shift": 2.5}, {"scale": -3.0}, {"law": rm.Gaussian(loc=4.0)}]
    return rm.Corruption(
        rate=draw(st.sampled_from((0.1, 0.6, 1.0))),
        at=draw(st.sampled_from(("origin", "receiver"))),
        rows=draw(st.booleans()),
        **draw(st.sampled_from(ways)),
    )


@st.composite
def worlds(draw: st.DrawFn, network: rm.Network, horizon: int) -> dict[str, Any]:
    """What goes wrong, as keyword arguments of `simulate`; one thing or several."""
    agents, rounds = st.integers(0, network.n_agents - 1), st.integers(1, horizon)
    found: dict[str, Any] = {"channel": draw(channels())} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        spells = draw(st.lists(st.tuples(agents, rounds, rounds), max_size=4))
        found["absences"] = [(v, min(a, b), max(a, b)) for v, a, b in spells]
    links = network.edges().tolist()
    if links and draw(st.booleans()):
        failures = draw(st.lists(st.tuples(st.sampled_from(links), rounds, rounds), max_size=4))
        found["outages"] = [(link[0], link[1], min(a, b), max(a, b)) for link, a, b in failures]
    if draw(st.integers(0, 3)) == 0:
        found["churn"] = rm.Churn(up=draw(st.floats(1, 20)), down=draw(st.floats(1, 10)))
    if draw(st.integers(0, 2)) == 0:
        found["corruption"] = draw(corruptions())
    if draw(st.integers(0, 2)) == 0:
        found["byzantine"] = rm.Byzantine(
            agents=draw(st.lists(agents, max_size=2)),
            attack=draw(st.sampled_from(("promote", "slander", "flood"))),
        )
    return found


@st.composite
def both_ways(draw: st.DrawFn, network: rm.Network, horizon: int) -> dict[str, Any]:
    """What averages bear: links that fail in both directions, agents that are away."""
    found = draw(worlds(network, horizon))
    kept: dict[str, Any] = {key: found[key] for key in ("absences", "outages", "churn") if key in found}
    if draw(st.booleans()):
        kept["channel"] = rm.Imperfect(p=draw(st.sampled_from((0.9, 0.5, 0.0))), symmetric=True)
    return kept


@st.composite
def games(draw: st.DrawFn, name: str, largest: int, longest: int) -> Played:
    network = draw(networks(largest))
    if name in CONNECTED_ONLY and not network.connected:
        network = rm.Network.path(network.n_agents)
    horizon, seed = draw(st.integers(1, longest)), draw(st.integers(0, 10**6))
    bandit = bandit_of(draw(st.sampled_from(CONTINUOUS)), draw(st.integers(2, 5)), seed)
    policy: Any = draw(policies(name, bandit))
    takes = {setting.name for setting in catalogue.settings(type(policy))}
    manners: dict[str, st.SearchStrategy[Any]] = {
        "quiet": st.none() | st.sampled_from((0.0, 0.25, 1.0)),
        "start": st.sampled_from(("round-robin", "shared")),
        "patience": st.sampled_from((None, 0, 2, 32)),
        "hold": st.sampled_from((1, 2, 5)),
        "discard": st.just("RCL-LF"),
        "guard": st.sampled_from((0, 1, 2)),
    }
    changed: dict[str, Any] = {
        key: draw(value) for key, value in manners.items() if key in takes and draw(st.booleans())
    }
    world = draw((worlds if name in FLOODING else both_ways)(network, horizon))
    if changed.get("hold", 1) > 1:  # not compiled together
        world = {key: value for key, value in world.items() if key not in ("absences", "churn")}
    return bandit, network, replace(policy, **changed), horizon, world


def same(game: Played, seed: int, form: str = "as it comes") -> None:
    bandit, network, policy, horizon, world = game
    with pytest.MonkeyPatch.context() as patch:
        if form == "lists":
            patch.setattr(imperfect, "MOST_BYTES_OF_BITS", 0)
        if form == "masks":
            patch.setattr(reach, "DENSE_FROM", 0.0)
        slow, fast = (
            rm.simulate(
                bandit, network, policy, horizon=horizon, rng=seed, engine=engine, actions=True, **world
            )
            for engine in ENGINES
        )
    assert fast.engine == "fast"
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(slow, field), getattr(fast, field), err_msg=field)


def check_games(name: str, max_examples: int, largest: int = 14, longest: int = 40) -> None:
    @settings(max_examples=max_examples, deadline=None, derandomize=True, suppress_health_check=SLOW_TO_DRAW)
    @given(games(name, largest, longest), st.integers(0, 1000), st.sampled_from(FORMS))
    def check(game: Played, seed: int, form: str) -> None:
        same(game, seed, form)

    check()


@pytest.mark.parametrize("name", FLOODING + AVERAGING)
def test_same_games(name: str) -> None:
    check_games(name, 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOODING + AVERAGING)
def test_same_games_in_thousands(name: str) -> None:
    check_games(name, 1000, largest=30, longest=90)


def test_an_arm_that_nobody_told_of_is_no_favourite() -> None:
    """A follower copies; of arms that it never heard of it knows no mean, not even that of nothing."""
    bandit = rm.Bandit([rm.Gaussian(loc=-3.0), rm.Gaussian(loc=-2.0)])
    policy = rm.CentralizedMPUCB(gamma=1, estimator=rm.MedianOfMeans(), zeta=0.1, quiet=0.0)
    for seed in range(20):
        world = {"channel": rm.Imperfect(p=0.5), "churn": rm.Churn(up=2, down=2)}
        same((bandit, rm.Network.complete(4), policy, 8, world), seed)


def test_an_old_row_does_not_replace_a_newer_one() -> None:
    """Rows of one origin that overtake each other: whoever keeps origins apart keeps the newest."""
    for seed in range(3):
        network = rm.Network.erdos_renyi(9, 0.6, rng=seed)
        world = {"channel": rm.Imperfect(delay=5)}
        same((bandit_of("stable", 3, 2), network, rm.KMPUCB(gamma=2, guard=1), 40, world), seed)


@pytest.mark.parametrize("name", ["kmp", "centralized"])
def test_an_old_word_does_not_replace_a_newer_one(name: str) -> None:
    """Words of one agent that overtake each other: the leader's favourite, and rows of as many samples."""
    for seed in range(6):
        network = rm.Network.star(7)
        policy: rm.Policy = rm.CentralizedMPUCB(gamma=2, leaders=[0], zeta=0.3)
        if name == "kmp":
            network, policy = rm.Network.erdos_renyi(9, 0.6, rng=seed), rm.KMPUCB(gamma=2)
        same((bandit_of("stable", 3, 2), network, policy, 60, {"channel": rm.Imperfect(delay=5)}), seed)


def test_who_is_away_hears_nothing() -> None:
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False)
    world = {"channel": rm.Imperfect(p=0.8), "absences": [(1, 5, 12), (3, 9, 20)]}
    for form in FORMS:
        same((bandit_of("stable", 3, 2), rm.Network.complete(5), policy, 30, world), seed=1, form=form)


@pytest.mark.parametrize("name", ["decentralized", "kmp"])
def test_who_is_away_hears_nothing_in_bitmasks_of_one_hop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """These are for dense networks; here for small ones too. With a small constant one sample shows."""
    monkeypatch.setattr(imperfect, "FEWEST_IN_BITS", 2)
    world = {"channel": rm.Imperfect(p=0.8), "absences": [(1, 5, 12), (3, 9, 20)]}
    settings = {"clique_filter": False} if name == "decentralized" else {}
    policy = catalogue.find("policy", name)(gamma=1, zeta=0.05, **settings)
    for seed in range(3):
        same((bandit_of("gaussian", 3, 2), rm.Network.complete(5), policy, 30, world), seed)


LOSSY = {"channel": rm.Imperfect(p=0.7, delay=1), "churn": rm.Churn(up=15, down=4)}


@pytest.mark.parametrize("estimator", COMPILED_ESTIMATORS)
def test_same_games_with_every_mean(estimator: str) -> None:
    made = catalogue.make("estimator", estimator)
    policy = rm.KMPUCB(gamma=2, estimator=made, zeta=None if made.brings_index else 0.3)
    network = rm.Network.barabasi_albert(20, 2, rng=1)
    same((bandit_of("stable", 3, 1), network, policy, 60, LOSSY), seed=4)


@pytest.mark.parametrize(
    "channel", [{"p": 0.6}, {"p": 0.6, "per": "copy"}, {"p": 0.7, "symmetric": True}], ids=str
)
@pytest.mark.parametrize("name", FLOODING[:3])
def test_same_games_on_a_dense_network(name: str, channel: dict[str, Any]) -> None:
    """Words of more than 64 origins, and the masks of one hop."""
    network = rm.Network.erdos_renyi(70, 0.3, rng=3)
    policy = catalogue.make("policy", {"type": name, "gamma": 1, "zeta": 0.3})
    world = {"channel": rm.Imperfect(**channel), "absences": [(3, 10, 20), (66, 1, 25)]}
    same((bandit_of("stable", 4, 2), network, policy, 40, world), seed=5)


def test_same_games_far_beyond_one_word() -> None:
    network = rm.Network.barabasi_albert(150, 2, rng=3)
    policy = rm.DecentralizedMPUCB(gamma=3, zeta=0.3, clique_filter=False)
    for form in ("as it comes", "lists"):
        same((bandit_of("stable", 3, 2), network, policy, 20, LOSSY), seed=6, form=form)


def test_several_agents_hear_one_of_another_word_in_the_last_round_of_its_way() -> None:
    """Over the hub 64 agents 65 and up hear of agent 0, one after the other; the others are alone."""
    graph = nx.empty_graph(71)
    graph.add_edges_from((64, v) for v in (0, *range(65, 71)))
    policy = rm.DecentralizedMPUCB(gamma=2, clique_filter=False, zeta=0.05)
    world = {"channel": rm.Imperfect(p=0.9)}
    for form in ("as it comes", "lists"):
        same((bandit_of("gaussian", 3, 2), rm.Network(graph), policy, 12, world), seed=1, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_a_message_travels_its_hops_once(form: str) -> None:
    """Neither one hop further nor twice to one agent, by detours, late, and past an absent agent."""
    world = {"channel": rm.Imperfect(p=0.7, delay=2), "absences": [(2, 6, 9)]}
    for gamma in (2, 3):
        policy = rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False, zeta=0.05)
        network = rm.Network.erdos_renyi(8, 0.35, rng=gamma)
        same((bandit_of("gaussian", 3, 2), network, policy, 24, world), gamma, form)


@pytest.mark.parametrize("form", FORMS)
def test_what_arrives_in_the_round_of_its_use_is_used(form: str) -> None:
    """Held for three rounds, and late enough to arrive in the third for the first time."""
    policy = rm.DecentralizedMPUCB(gamma=2, hold=3, clique_filter=False, zeta=0.05)
    world = {"channel": rm.Imperfect(p=0.7, delay=2)}
    network = rm.Network.erdos_renyi(8, 0.35, rng=2)
    same((bandit_of("gaussian", 3, 2), network, policy, 24, world), 1, form)


def test_a_leader_that_falls_silent() -> None:
    policy = rm.CentralizedMPUCB(gamma=2, leaders=[0], zeta=0.3)
    world = {"absences": [(0, 10, 80)]}
    same((bandit_of("stable", 3, 2), rm.Network.star(6), policy, 80, world), seed=1)


@pytest.mark.parametrize("patience", [0, 2, 5])
def test_a_follower_waits_exactly_so_long(patience: int) -> None:
    """In the round in which patience ends, and in the one after."""
    policy = rm.CentralizedMPUCB(gamma=2, leaders=[0], zeta=0.3, patience=patience)
    for seed in range(3):
        world = {"absences": [(0, 6, 20)]}
        same((bandit_of("gaussian", 3, 2), rm.Network.star(6), policy, 20, world), seed=seed)


def test_a_hop_budget_beyond_the_diameter_pays_for_detours() -> None:
    for gamma in (5, 50, 10**6):
        policy = rm.KMPUCB(gamma=gamma, zeta=0.3)
        world = {"channel": rm.Imperfect(p=0.5, delay=2)}
        same((bandit_of("gaussian", 3, 2), rm.Network.ring(6), policy, 40, world), seed=1)


def test_budgets_beyond_the_horizon_need_no_room() -> None:
    world = {"channel": rm.Imperfect(p=0.5, delay=2), "outages": [(0, 1, 3, 9)]}
    bandit, network = bandit_of("gaussian", 3, 2), rm.Network.ring(6)
    held = rm.DecentralizedMPUCB(gamma=2, zeta=0.3, hold=10**9, clique_filter=False)
    for policy in (held, rm.KMPUCB(gamma=10**9, zeta=0.3)):
        same((bandit, network, policy, 20, world), seed=1)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_change_nothing(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "lists":
        monkeypatch.setattr(imperfect, "MOST_BYTES_OF_BITS", 0)
    world = LOSSY if form != "masks" else {"channel": rm.Imperfect(p=0.7)}
    network = rm.Network.erdos_renyi(30, 0.3, rng=2)
    policy = rm.KMPUCB(gamma=1 if form == "masks" else 2, zeta=0.3)
    runs = [
        rm.simulate(
            bandit_of("stable", 3, 1), network, policy, horizon=90, rng=3, actions=True, block=block, **world
        )
        for block in (None, 1, 7, 64)
    ]
    assert runs[0].engine == "fast"
    for run in runs[1:]:
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(run, field), getattr(runs[0], field), err_msg=field)


def test_a_perfect_world_keeps_the_perfect_kernels() -> None:
    network, policy = rm.Network.ring(6), rm.KMPUCB(gamma=2)
    for world in (rm.World(), rm.World(channel=rm.Imperfect()), rm.World(byzantine=rm.Byzantine())):
        assert type(prepare(policy, network, 3, engine="fast", world=world).layout) is MessagePassingLayout
    lossy = rm.World(channel=rm.Imperfect(p=0.9))
    assert type(prepare(policy, network, 3, engine="fast", world=lossy).layout) is LossyLayout


def test_memory_grows_with_the_links() -> None:
    """20,000 agents in a ring: bitmasks for every agent would take hundreds of megabytes."""
    policy, world = rm.DecentralizedMPUCB(gamma=3, clique_filter=False), rm.World(channel=rm.Imperfect(p=0.7))
    sizes = []
    for n in (10_000, 20_000):
        layout: Any = prepare(policy, rm.Network.ring(n), 5, engine="fast", world=world).layout
        sizes.append(sum(array.nbytes for array in imperfect.empty_flight(layout)))
    assert sizes[1] <= 2.1 * sizes[0]
    assert sizes[1] <= 500 * 20_000


def test_what_is_not_compiled_is_said() -> None:
    class Own(rm.Channel):
        def open(self, network: rm.Network, seed: np.random.SeedSequence) -> Any:
            raise AssertionError

    ring = rm.Network.ring(5)
    with pytest.raises(InputError, match="does not support the channel Own"):
        prepare(rm.KMPUCB(gamma=1), ring, 3, engine="fast", world=rm.World(channel=Own()))
