"""Generators, edge-list files and snowballs."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from helpers.real_graphs import FOLDER, needs_real_graphs
from rumormill.errors import DataError, InputError
from rumormill.graphs import Network

RANDOM = {
    "erdos_renyi": lambda rng: Network.erdos_renyi(60, 0.15, rng=rng),
    "barabasi_albert": lambda rng: Network.barabasi_albert(60, 3, rng=rng),
    "watts_strogatz": lambda rng: Network.watts_strogatz(60, 4, 0.3, rng=rng),
    "random_regular": lambda rng: Network.random_regular(60, 3, rng=rng),
    "subgraph": lambda rng: Network.grid(20, 20).subgraph(60, rng=rng),
}


@pytest.mark.parametrize("name", RANDOM)
def test_the_same_seed_gives_the_same_network(name: str) -> None:
    first = RANDOM[name](5)
    assert first.n_agents == 60
    assert first.connected
    for rng in (5, np.int64(5), np.random.SeedSequence(5), np.random.default_rng(5)):
        again = RANDOM[name](rng)
        assert again.labels == first.labels
        assert again.edges().tolist() == first.edges().tolist()
    others = [RANDOM[name](seed) for seed in range(6, 10)]
    assert any((o.labels, o.edges().tolist()) != (first.labels, first.edges().tolist()) for o in others)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("rng", [None, -1, 1.5, True, "7"])
def test_randomness_must_be_given(name: str, rng: Any) -> None:
    with pytest.raises(InputError, match=r"rng = .* is not allowed"):
        RANDOM[name](rng)


def test_a_generator_moves_on() -> None:
    stream = np.random.default_rng(0)
    first, second = (Network.erdos_renyi(40, 0.3, rng=stream) for _ in range(2))
    assert first.edges().tolist() != second.edges().tolist()


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (Network.ring(7), nx.cycle_graph(7)),
        (Network.path(7), nx.path_graph(7)),
        (Network.star(7), nx.star_graph(6)),
        (Network.complete(7), nx.complete_graph(7)),
        (Network.grid(3, 4), nx.grid_2d_graph(3, 4)),
        (Network.grid(1, 1), nx.grid_2d_graph(1, 1)),
        (Network.balanced_tree(3, 3), nx.balanced_tree(3, 3)),
        (Network.balanced_tree(2, 0), nx.empty_graph(1)),
        (Network.star(1), nx.empty_graph(1)),
        (Network.complete(1), nx.empty_graph(1)),
    ],
)
def test_fixed_families_equal_networkx(network: Network, expected: nx.Graph) -> None:
    assert network.labels == tuple(expected.nodes)
    assert nx.utils.graphs_equal(network.to_networkx(), expected)


def test_random_families_have_their_shape() -> None:
    assert Network.barabasi_albert(50, 4, rng=1).n_edges == 46 * 4
    assert set(Network.random_regular(20, 14, rng=1).degrees.tolist()) == {14}
    assert Network.random_regular(1, 0, rng=1).n_agents == 1
    assert Network.watts_strogatz(30, 6, 0, rng=1).degrees.tolist() == [6] * 30
    assert Network.erdos_renyi(10, 1, rng=1).n_edges == 45
    assert Network.erdos_renyi(10, 0, rng=1, connected=False).n_edges == 0
    # 19,900 pairs with p = 0.7: 13,930 links, five standard deviations are 324 (false alarm below 1e-6).
    assert abs(Network.erdos_renyi(200, 0.7, rng=1).n_edges - 13_930) < 324


def test_connected_is_drawn_again_until_it_is() -> None:
    # At p = ln(n)/n about a third of the graphs is connected, so ten seeds would not all be by luck.
    p = np.log(40) / 40
    apart = [Network.erdos_renyi(40, p, rng=s, connected=False).connected for s in range(10)]
    assert not all(apart)
    assert all(Network.erdos_renyi(40, p, rng=s).connected for s in range(10))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Network.erdos_renyi(50, 0.001, rng=1), "no connected graph in 100 draws: raise p"),
        (lambda: Network.random_regular(4, 0, rng=1), "no connected graph in 100 draws: raise d"),
        (lambda: Network.erdos_renyi(5, 1.5, rng=1), r"p = 1.5 .* a number from 0 to 1"),
        (lambda: Network.erdos_renyi(5, float("nan"), rng=1), "p = nan .* a number from 0 to 1"),
        (lambda: Network.erdos_renyi(0, 0.5, rng=1), "n = 0 .* whole number >= 1"),
        (lambda: Network.erdos_renyi(5.0, 0.5, rng=1), "n = 5.0 .* whole number"),  # type: ignore[arg-type]
        (lambda: Network.erdos_renyi(5, True, rng=1), "p = True .* a number from 0 to 1"),
        (lambda: Network.barabasi_albert(5, 5, rng=1), "m = 5 is not allowed for n = 5"),
        (lambda: Network.barabasi_albert(5, 0, rng=1), "m = 0 .* whole number >= 1"),
        (lambda: Network.watts_strogatz(10, 3, 0.1, rng=1), "k = 3 .* even and below n"),
        (lambda: Network.watts_strogatz(10, 10, 0.1, rng=1), "k = 10 .* even and below n"),
        (lambda: Network.random_regular(5, 3, rng=1), "d = 3 .* n times d even"),
        (lambda: Network.random_regular(5, 5, rng=1), "d = 5 .* below n"),
        (lambda: Network.ring(2), "n = 2 .* whole number >= 3"),
        (lambda: Network.path(0), "n = 0 .* whole number >= 1"),
        (lambda: Network.star(-1), "n = -1 .* whole number >= 1"),
        (lambda: Network.complete(True), "n = True .* whole number"),
        (lambda: Network.grid(0, 3), "rows = 0 .* whole number >= 1"),
        (lambda: Network.balanced_tree(0, 3), "branching = 0 .* whole number >= 1"),
        (lambda: Network.balanced_tree(2, -1), "height = -1 .* whole number >= 0"),
        (lambda: Network.path(4).subgraph(5, rng=1), "n = 5 .* largest connected part has 4"),
        (lambda: Network.path(4).subgraph(0, rng=1), "n = 0 .* whole number >= 1"),
    ],
)
def test_what_cannot_be_drawn(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_a_snowball_is_a_ball() -> None:
    graph = nx.relabel_nodes(nx.grid_2d_graph(15, 15), lambda rc: f"{rc[0]}-{rc[1]}")
    graph.add_edge("lonely", "couple")
    network = Network(graph)
    for seed in range(5):
        part = network.subgraph(50, rng=seed)
        assert part.n_agents == 50
        assert part.connected
        assert nx.utils.graphs_equal(part.to_networkx(), nx.Graph(graph.subgraph(part.labels)))
        # Agents keep their order, and some start reaches all of them in no more hops than anyone left out.
        places = [network.labels.index(label) for label in part.labels]
        assert places == sorted(places)
        full = network.distances()
        left = [v for v in network.components[0] if v not in set(places)]
        assert any(full[s, places].max() <= full[s, left].min() for s in places)


def test_a_snowball_of_everything() -> None:
    network = Network.ring(9)
    assert network.subgraph(9, rng=0).edges().tolist() == network.edges().tolist()


SNAP = "# Directed graph\n# FromNodeId\tToNodeId\n10\t20\n20\t10\n\n20\t30\r\n30\t30\n10\t20\n"
PACKED = gzip.compress(SNAP.encode(), mtime=0)  # without a clock: test names must not change


@pytest.mark.parametrize("packed", [False, True])
def test_snap_files(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("edges.txt.gz" if packed else "edges.txt")
    path.write_bytes(PACKED if packed else SNAP.encode())
    for network in (Network.from_file(path), Network.from_edges(str(path))):
        assert network.labels == (10, 20, 30)
        assert network.edges().tolist() == [[0, 1], [1, 2]]
        assert (network.dropped_self_loops, network.dropped_repeats) == (1, 2)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a b\nb c", ("a", "b", "c")),
        ("1,2\n2 , 3\n", (1, 2, 3)),
        ("\ufeff1 2", (1, 2)),
        ("1 2\nx 2", ("1", "2", "x")),
        ("new york,los angeles\nlos angeles,rome", ("new york", "los angeles", "rome")),
        ("a b", ("a", "b")),
    ],
)
def test_other_edge_lists(tmp_path: Path, text: str, labels: tuple) -> None:  # type: ignore[type-arg]
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="utf-8")
    assert Network.from_file(path).labels == labels


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1 2\n# fine\n3\n", r"line 3: '3' is not an edge"),
        (b"1 2\n1 2 0.5\n", r"line 2: '1 2 0.5' is not an edge"),
        (b"1,2,\n", r"line 1: '1,2,' is not an edge"),
        (b"1,\n", r"line 1: '1,' is not an edge"),
        (b"x" * 90, r"line 1: 'x{56}\.\.\. is not an edge"),
        (b"# header\nsource,target\n1,2\n2,3", "line 2: 'source target' .* put # before it"),
        (b"", "holds no edge"),
        (b"# only words\n\n", "holds no edge"),
        (b"\x80\x81\xff 1\n", "not a text file: byte 0"),
        (b"1 2\n\x00 3\n", "zero bytes"),
        (PACKED[:-12], "damaged gzip"),
        (PACKED[:14] + b"garbage", "damaged gzip"),
        (b"\x1f\x8b\x00", "damaged gzip"),
        (gzip.compress(b"", mtime=0), "holds no edge"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        Network.from_file(path)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            Network.from_file(path)


@needs_real_graphs
@pytest.mark.parametrize(
    ("name", "size"), [("facebook_combined.txt", (4_039, 88_234)), ("p2p-Gnutella04.txt", (10_876, 39_994))]
)
def test_real_networks(name: str, size: tuple[int, int]) -> None:
    network = Network.from_file(FOLDER / name)
    assert (network.n_agents, network.n_edges) == size
    part = network.subgraph(500, rng=1)
    assert part.connected
    assert part.diameter == nx.diameter(part.to_networkx())


@pytest.mark.parametrize(("n", "m", "seed"), [(2, 1, 0), (5, 4, 3), (50, 1, 1), (400, 5, 7), (120, 21, 2)])
def test_barabasi_albert_is_that_of_networkx(n: int, m: int, seed: int) -> None:
    """Seeds keep their meaning: the links are drawn as networkx draws them, without its graph."""
    from rumormill.graphs.topologies import _attached

    theirs = {(min(u, v), max(u, v)) for u, v in nx.barabasi_albert_graph(n, m, seed=seed).edges}
    ours = [(min(u, v), max(u, v)) for u, v in _attached(n, m, seed).tolist()]
    assert len(ours) == len(theirs)
    assert set(ours) == theirs
