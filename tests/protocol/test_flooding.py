"""Flooding, message by message, against the rule of hops it must amount to."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers import oracle
from helpers.channels import Muddled, Unreliable
from helpers.oracle_adapters import EngineName
from helpers.strategies import graphs
from rumormill.protocol import wire_size

News = list[list[list[tuple[int, int]]]]  # [round - 1][agent]: (round of origin, origin), in order


def flood(
    graph: nx.Graph, gamma: int, rounds: int, channel: rm.Channel | None = None
) -> tuple[News, list[int]]:
    """What each agent accepts at the end of each round; and how many messages were sent."""
    relays = [rm.Relay(v, gamma) for v in range(len(graph))]
    carrier = (channel or rm.PerfectChannel()).open(rm.Network(graph), np.random.SeedSequence(0))
    news: News = []
    sent = []
    for t in range(1, rounds + 1):
        for v, relay in enumerate(relays):
            relay.post(rm.Message(v, t, 0, float(v)))
        batches = [relay.outgoing(t) for relay in relays]
        sent.append(sum(len(batch) * graph.degree(v) for v, batch in enumerate(batches)))
        for v, batch in enumerate(batches):
            for w in graph.neighbors(v):
                carrier.send(t, v, w, batch)
        arrived = [relay.accept(carrier.deliver(t, v)) for v, relay in enumerate(relays)]
        news.append([[(m.round, m.origin) for m in batch] for batch in arrived])
    return news, sent


def by_hops(graph: nx.Graph, gamma: int, rounds: int) -> News:
    """At the end of round t agent v hears (t - d + 1, w) of every w d <= gamma hops away, sorted."""
    dist = dict(nx.all_pairs_shortest_path_length(graph))
    return [
        [
            sorted((t - d + 1, w) for w, d in dist[v].items() if 0 < d <= min(gamma, t))
            for v in range(len(graph))
        ]
        for t in range(1, rounds + 1)
    ]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(graphs(largest=9), st.integers(0, 10), st.integers(1, 12))
def test_flooding_is_the_rule_of_hops(graph: nx.Graph, gamma: int, rounds: int) -> None:
    news, _ = flood(graph, gamma, rounds)
    assert news == by_hops(graph, gamma, rounds) == oracle.arrivals(graph, gamma, rounds)[1:]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs(largest=8), st.integers(0, 6), st.integers(1, 3))
def test_order_and_copies_on_the_way_change_nothing(graph: nx.Graph, gamma: int, copies: int) -> None:
    assert flood(graph, gamma, 8, Muddled(copies=copies))[0] == by_hops(graph, gamma, 8)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(graphs(largest=8), st.integers(0, 6), st.integers(0, 4), st.integers(0, 99))
def test_late_and_lost_bundles_by_the_rule_of_the_budget(
    graph: nx.Graph, gamma: int, longest: int, salt: int
) -> None:
    """In round s a message of round t' goes on iff s - t' < gamma: delay eats the budget."""
    channel = Unreliable(longest=longest, lost=0.2, salt=salt)
    assert flood(graph, gamma, 10, channel)[0] == oracle.arrivals(graph, gamma, 10, channel.late)[1:]


def test_the_path_is_worked_out_by_hand() -> None:
    # Path 0 - 1 - 2, gamma 2; pairs are (round, origin). Round 1: neighbours only. Round 2: the first of the
    # agent two hops away, then the neighbour's second, which was chosen knowing it.
    news, sent = flood(nx.path_graph(3), 2, 2)
    assert news[0] == [[(1, 1)], [(1, 0), (1, 2)], [(1, 1)]]
    assert news[1] == [[(1, 2), (2, 1)], [(2, 0), (2, 2)], [(1, 0), (2, 1)]]
    # Round 1: 1 + 2 + 1 edge ends, a message each. Round 2: one's own and those heard in round 1:
    # agents 0 and 2 send 2 to one neighbour each, agent 1 sends 3 to two.
    assert sent == [4, 2 + 6 + 2]


def test_gamma_zero_sends_nothing() -> None:
    news, sent = flood(nx.complete_graph(4), 0, 3)
    assert sent == [0, 0, 0]
    assert news == [[[]] * 4] * 3


@pytest.mark.parametrize("gamma", [0, 1, 2, 5])
def test_a_message_is_passed_on_while_it_is_younger_than_gamma(gamma: int) -> None:
    relay = rm.Relay(0, gamma)
    old = [rm.Message(v, r, 0, 0.0) for v, r in ((1, 10), (2, 9), (3, 8), (4, 6))]
    assert len(relay.accept(old)) == 4  # all are news, whatever their age
    assert {m.round for m in relay.outgoing(11)} == {m.round for m in old if 11 - m.round < gamma}
    assert relay.outgoing(11) == []  # and only once


def test_ones_own_message_is_no_news() -> None:
    relay = rm.Relay(3, 4)
    assert relay.accept([rm.Message(3, 1, 0, 1.0)]) == []
    assert relay.outgoing(2) == []


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=6), max_size=12))
def test_each_origin_and_round_is_news_once_in_any_order(batches: list[list[tuple[int, int]]]) -> None:
    relay = rm.Relay(0, 100)
    seen: set[tuple[int, int]] = set()
    for batch in batches:
        news = [(m.origin, m.round) for m in relay.accept(rm.Message(v, r, 0, 0.5) for v, r in batch)]
        assert len(news) == len(set(news))
        assert news == sorted(news, key=lambda pair: (pair[1], pair[0]))  # oldest first, then by origin
        assert set(news) == set(batch) - seen
        seen |= set(batch)


def test_equal_rewards_of_two_agents_are_two_samples() -> None:
    relay = rm.Relay(0, 1)
    assert len(relay.accept([rm.Message(1, 1, 0, 0.5), rm.Message(2, 1, 0, 0.5)])) == 2


finite = st.floats(allow_nan=False)
messages = st.builds(
    rm.Message,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    finite,
    st.lists(st.tuples(finite, finite), max_size=8).map(tuple),
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(messages)
def test_decode_reads_what_encode_wrote(message: rm.Message) -> None:
    data = message.encode()
    assert len(data) == message.wire_size == wire_size(len(message.rows)) == 20 + 16 * len(message.rows)
    assert rm.Message.decode(data) == message


@settings(max_examples=100, deadline=None, derandomize=True)
@given(messages, st.data())
def test_damaged_bytes_are_refused(message: rm.Message, data: st.DataObject) -> None:
    whole = message.encode()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(rm.DataError, match="bytes"):
        rm.Message.decode(whole[:cut])
    with pytest.raises(rm.DataError, match="rows"):
        rm.Message.decode(whole + b"\0")


def test_messages_can_be_compared_and_not_changed() -> None:
    message = rm.Message(1, 2, 0, 0.5)
    assert message == rm.Message(1, 2, 0, 0.5)
    assert len({message, rm.Message(1, 2, 0, 0.5), rm.Message(1, 3, 0, 0.5)}) == 2
    with pytest.raises(AttributeError):
        message.reward = 9.0  # type: ignore[misc]


def run(policy: rm.Policy, network: rm.Network, K: int, engine: EngineName) -> rm.Result:
    bandit = rm.Bandit([rm.Gaussian(loc=k) for k in range(K)])
    return rm.simulate(
        bandit, network, policy, horizon=6, trials=1, rng=0, engine=engine, checkpoints=range(1, 7)
    )


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_messages_and_bytes_by_hand(engine: EngineName) -> None:
    # Path of 3, gamma 2, as above: 4 messages in round 1, 10 in every later round.
    network, counts = rm.Network.path(3), np.array([4, 14, 24, 34, 44, 54])
    for K in (2, 7):
        plain = run(rm.DecentralizedMPUCB(gamma=2), network, K, engine)
        rows = run(rm.KMPUCB(gamma=2), network, K, engine)
        assert plain.messages[0].tolist() == rows.messages[0].tolist() == counts.tolist()
        assert plain.wire_bytes[0].tolist() == (20 * counts).tolist()  # O(1) a message
        assert rows.wire_bytes[0].tolist() == ((20 + 16 * K) * counts).tolist()  # O(K)
        consensus = run(rm.ConsensusUCB(), network, K, engine)  # one message per edge end and round
        assert consensus.messages[0].tolist() == [4, 8, 12, 16, 20, 24]
        assert consensus.wire_bytes[0].tolist() == [(20 + 16 * K) * n for n in (4, 8, 12, 16, 20, 24)]
        alone = run(rm.RobustUCB(), network, K, engine)
        assert not alone.messages.any()
        assert not alone.wire_bytes.any()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(graphs(largest=7), st.integers(0, 5))
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_engines_count_the_messages_of_the_flooding(engine: EngineName, graph: nx.Graph, gamma: int) -> None:
    # A budget beyond the diameter is cut to it: the last hops would bring nothing new to anyone.
    diameter = max(nx.diameter(graph.subgraph(part)) for part in nx.connected_components(graph))
    _, sent = flood(graph, min(gamma, diameter), 6)
    result = run(rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False), rm.Network(graph), 2, engine)
    assert np.diff(result.messages[0], prepend=0).tolist() == sent
