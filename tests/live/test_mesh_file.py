"""One reader of the mesh file: all accept the same files and refuse others in the same words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rumormill import catalogue
from rumormill.advice.mesh_output import read_setting
from rumormill.cli import main
from rumormill.errors import DataError, InputError
from rumormill.live.core.node_config import node_config
from rumormill.live.io.runtime import Runtime, Settings
from rumormill.mesh import edit
from rumormill.mesh.file import GamePart, mesh_text, read_file, read_mesh, write_mesh

MESH = """\
name = "mirrors"
revision = 3
[[games]]
name = "mirrors"
arms = ["north", "south"]
objective = "minimise"
unit = "ms"
patience = 20.0
[games.policy]
type = "decentralized"
gamma = 1
zeta = 0.1
[games.moments]
eps = 0.5
u = 2.0
rho = 1.0
[[nodes]]
name = "a"
id = 3
address = "10.0.0.1:7000"
neighbours = ["b"]
[[nodes]]
name = "b"
id = 1
address = "10.0.0.2:7000"
[[nodes]]
name = "c"
id = 0
address = "[::1]:7000"
neighbours = ["b"]
[limits]
retain = 1000
[plans.mirrors]
gamma = 1
cliques = [["a", "b"], ["c"]]
"""
GAMES = MESH[MESH.index("[[games]]") : MESH.index("[[nodes]]")]
NODES = MESH[MESH.index("[[nodes]]") : MESH.index("[limits]")]
PLANS = MESH[MESH.index("[plans") :]

PRIOR = "[games.prior]\nmean = [80.0, 95.5]\nn = [400, 12]\n"

GOOD = {
    "a prior": ("[[nodes]]", PRIOR + "[[nodes]]"),
    "a prior per node": (
        "[[nodes]]",
        PRIOR + "cap = 20\nspread = [9, 9.5]\n[games.prior.nodes.c]\nmean = [1, 2]\nn = [3, 4]\n[[nodes]]",
    ),
    "offsets": ('unit = "ms"', 'unit = "ms"\noffsets = { a = 12.5, c = -3 }'),
    "scales": ('unit = "ms"', 'unit = "ms"\noffsets = { a = 12.5 }\nscales = { a = 1.5, c = 2 }'),
    "as it is": ("", ""),
    "byte-order mark": ('name = "mirrors"\nrevision', '\ufeffname = "mirrors"\nrevision'),
    "Windows lines": ("\n", "\r\n"),
    "link on both sides": (
        'id = 1\naddress = "10.0.0.2:7000"',
        'id = 1\naddress = "h:1"\nneighbours = ["a", "c"]',
    ),
    "no links": ('neighbours = ["b"]', ""),
    "no plan": (PLANS, ""),
    "no limits": ("[limits]\nretain = 1000", ""),
    "no revision": ("revision = 3", ""),
    "whole numbers for floats": ("u = 2.0", "u = 2"),
    "a generator for the links": ("[limits]", '[network]\nkind = "ring"\n[limits]'),
    "names that are not ASCII": ('"north"', '"ñörth 北"'),
    "a second game": ("[[nodes]]", GAMES.replace('name = "mirrors"', 'name = "routes"') + "[[nodes]]"),
}
BAD = {
    "offset of an unknown node": (
        'unit = "ms"',
        'unit = "ms"\noffsets = { d = 1.0 }',
        "games[0].offsets: there is no node 'd'",
    ),
    "offset that is no number": (
        'unit = "ms"',
        'unit = "ms"\noffsets = { a = 1.0, c = "far" }',
        "games[0].offsets.c = 'far' is not allowed: expected float, got str",
    ),
    "offset that is not finite": (
        'unit = "ms"',
        'unit = "ms"\noffsets = { a = nan }',
        "games[0].offsets.a = nan is not allowed: a number from -1e+100 to 1e+100",
    ),
    "scale of an unknown node": (
        'unit = "ms"',
        'unit = "ms"\nscales = { d = 1.0 }',
        "games[0].scales: there is no node 'd'",
    ),
    "scale that is no number": (
        'unit = "ms"',
        'unit = "ms"\nscales = { a = 1.0, c = "slow" }',
        "games[0].scales.c = 'slow' is not allowed: expected float, got str",
    ),
    **{
        f"scale {value}": (
            'unit = "ms"',
            f'unit = "ms"\nscales = {{ a = 1.0, c = {value} }}',
            f"games[0].scales.c = {float(value)} is not allowed: a number from 1e-09 to 1e+09",
        )
        for value in ("0", "-2.0", "nan", "inf", "2e9")
    },
    "unknown key of a prior": (
        "[[nodes]]",
        PRIOR.replace("mean", "means") + "[[nodes]]",
        "games[0].prior.means: unknown key: did you mean 'mean'?",
    ),
    "prior of too few arms": (
        "[[nodes]]",
        "[games.prior]\nmean = [1]\nn = [1]\n[[nodes]]",
        "games[0].prior: the prior is about 1 arms, there are 2",
    ),
    "prior of an unknown node": (
        "[[nodes]]",
        PRIOR + "[games.prior.nodes.d]\nmean = [1, 2]\nn = [3, 4]\n[[nodes]]",
        "games[0].prior.nodes: there is no node 'd'",
    ),
    "too few values for the arms of a prior": (
        "[[nodes]]",
        PRIOR + 'arms = ["north", "south", "west"]\n[[nodes]]',
        "games[0].prior: mean has 2 values, arms 3 names: give one of each per arm",
    ),
    "an arm of a prior twice": (
        "[[nodes]]",
        PRIOR + 'arms = ["north", "north"]\n[[nodes]]',
        "games[0].prior: mean has 2 values, arms 1 names: give one of each per arm",
    ),
    "a node's own cap": (
        "[[nodes]]",
        PRIOR + "[games.prior.nodes.c]\nmean = [1, 2]\nn = [3, 4]\ncap = 5\n[[nodes]]",
        "games[0].prior.nodes.c.cap: not for a single node; games[0].prior.cap holds for all",
    ),
    "a node's prior without counts": (
        "[[nodes]]",
        PRIOR + "[games.prior.nodes.c]\nmean = [1, 2]\n[[nodes]]",
        "games[0].prior.nodes.c: n = [] is not allowed",
    ),
    "a prior without a spread": (
        '"decentralized"\ngamma = 1\nzeta = 0.1',
        '"kmp"\ngamma = 1\nestimator = "self-tuned"\n[games.prior]\nmean = [1, 2]\nn = [1, 2]',
        "games[0].prior: the prior has no spread, and SelfTuned brings its own index",
    ),
    "no TOML": ("[[games]]", "[[games", "cannot be read: "),
    "not UTF-8": ("ms", "\udcff", "cannot be read: "),
    "unknown key": ("revision", "revison", "revison: unknown key: did you mean 'revision'?"),
    "unknown key of a game": ("unit", "units", "games[0].units: unknown key: did you mean 'unit'?"),
    "unknown key of a policy": (
        "gamma = 1\nz",
        "gama = 1\nz",
        "games[0].policy.gama: unknown key: did you mean 'gamma'?",
    ),
    "unknown key of moments": ("rho", "roh", "games[0].moments.roh: unknown key: did you mean 'rho'?"),
    "unknown key of a node": ("id = 1", "di = 1", "nodes[1].di: unknown key: did you mean 'id'?"),
    "unknown key of limits": ("retain", "retian", "limits.retian: unknown key: did you mean 'retain'?"),
    "unknown key of a plan": (
        "cliques",
        "clique",
        "plans.mirrors.clique: unknown key: did you mean 'cliques'?",
    ),
    "serial number": (
        "revision = ",
        'revoked = ["3q"]\nrevision = ',
        "revoked[0] = '3q' is not allowed: a certificate's",
    ),
    "no name": ('name = "mirrors"\nrevision', "revision", "name: missing"),
    "game without a name": ('[[games]]\nname = "mirrors"', "[[games]]", "games[0].name: missing"),
    "game without arms": ('arms = ["north", "south"]', "", "games[0].arms: missing"),
    "game without a policy": (
        '[games.policy]\ntype = "decentralized"\ngamma = 1\nzeta = 0.1',
        "",
        "games[0].policy: missing",
    ),
    "policy without a type": ('type = "decentralized"', "", "games[0].policy.type: missing"),
    "no eps": ("eps = 0.5", "", "games[0].moments.eps: missing"),
    "node without a name": ('name = "b"', "", "nodes[1].name: missing"),
    "node without an id": ("id = 1", "", "nodes[1].id: missing; `rumormill mesh adopt`"),
    "node without an address": (
        'address = "10.0.0.2:7000"',
        "",
        "nodes[1].address: missing; `rumormill mesh adopt`",
    ),
    "no games": (GAMES + NODES, NODES, "games: missing"),
    "no nodes": (NODES, "", "nodes: missing; `rumormill mesh add NAME HOST:PORT`"),
    "games that are no tables": (
        GAMES,
        "games = [3]\n",
        "games[0] = 3 is not allowed: expected a table, got int",
    ),
    "nodes that are no list": (
        MESH,
        'name = "x"\nnodes = 3\n',
        "nodes = 3 is not allowed: expected array, got int",
    ),
    "revision no number": (
        "revision = 3",
        'revision = "3"',
        "revision = '3' is not allowed: expected int, got str",
    ),
    "negative revision": ("revision = 3", "revision = -1", "revision = -1 is not allowed: expected int >= 0"),
    "arms no names": (
        '["north", "south"]',
        "[1, 2]",
        "games[0].arms[0] = 1 is not allowed: expected str, got int",
    ),
    "limit no number": (
        "retain = 1000",
        "retain = true",
        "limits.retain = True is not allowed: expected int, got bool",
    ),
    "limit of nothing": (
        "retain = 1000",
        "retain = 0",
        "limits.retain = 0 is not allowed: expected int >= 1",
    ),
    "moments no number": (
        "eps = 0.5",
        'eps = "half"',
        "games[0].moments.eps = 'half' is not allowed: expected float",
    ),
    "plan no number": (
        "[plans.mirrors]\ngamma = 1",
        "[plans.mirrors]\ngamma = 1.5",
        "plans.mirrors.gamma = 1.5 is not allowed",
    ),
    "unknown objective": (
        '"minimise"',
        '"least"',
        "games[0].objective = 'least' is not allowed: minimise or maximise",
    ),
    "unknown policy": (
        '"decentralized"',
        '"decentralised"',
        "games[0].policy.type = 'decentralised' is not allowed: did you mean",
    ),
    "eps too large": ("eps = 0.5", "eps = 5.0", "games[0].moments: eps = 5.0 is not allowed"),
    "one arm": (', "south"', "", "games[0].arms = ['north'] is not allowed: 2 to 65,534 names"),
    "an arm twice": ('"south"', '"north"', "games[0].arms = ['north', 'north'] is not allowed"),
    "a name twice": ('name = "c"', 'name = "b"', "nodes[2].name = 'b' is given twice"),
    "an id twice": ("id = 0", "id = 1", "nodes[2].id = 1 is given twice"),
    "a game twice": ("[[nodes]]", GAMES + "[[nodes]]", "games[1].name = 'mirrors' is given twice"),
    "unknown neighbour": (
        'neighbours = ["b"]\n[[',
        'neighbours = ["d"]\n[[',
        "nodes[0].neighbours: there is no node 'd'",
    ),
    "its own neighbour": (
        'neighbours = ["b"]\n[[',
        'neighbours = ["a"]\n[[',
        "nodes[0].neighbours: 'a' is the node itself",
    ),
    "no port": ("10.0.0.2:7000", "10.0.0.2", "nodes[1].address = '10.0.0.2' is not allowed: give HOST:PORT"),
    "port too large": ("10.0.0.2:7000", "h:70000", "nodes[1].address = 'h:70000' is not allowed"),
    "signed without keys": ("revision", "signed = true\nrevision", "nodes[0].key = '' is not allowed"),
    "a game that forgets": (
        "unit",
        "restart = 500\nunit",
        "games[0].restart = 500 is not allowed: a node does not forget",
    ),
    "plan of no game": (
        "[plans.mirrors]",
        "[plans.mirors]",
        "plans.mirors: there is no such game: did you mean 'mirrors'?",
    ),
    "plan with an unknown node": ('["c"]', '["d"]', "plans.mirrors.cliques: there is no node 'd'"),
}


def written(folder: Path, old: str, new: str) -> Path:
    assert old in MESH
    path = folder / "mesh.toml"
    text = MESH.replace(old, new, -1 if old == "\n" or new == "" else 1)
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


def by_advice(path: Path) -> None:
    read_setting(path)


def by_topology(path: Path) -> None:
    catalogue.make("network", {"kind": "mesh", "file": str(path)}).build(np.random.default_rng(0))


def by_node(path: Path) -> None:
    """A node starts up to where it reads its keys, of which there are none."""
    with pytest.raises(InputError, match="keys of node 'a' cannot be read") as caught:
        Runtime(Settings(mesh=path, name="a", data=path.parent / "a.data"))
    assert caught.value


READERS: list[Callable[[Path], None]] = [by_advice, by_topology, by_node]


@pytest.mark.parametrize("case", GOOD)
def test_all_accept(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, *GOOD[case])
    for read in READERS:
        read(path)
    with pytest.raises(SystemExit, match="0"):
        main(["mesh", "show", "--mesh", str(path)])
    assert "mesh mirrors" in capsys.readouterr().out


@pytest.mark.parametrize("case", BAD)
def test_all_refuse_in_the_same_words(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, said = BAD[case]
    path = written(tmp_path, old, new)
    texts = set()
    for read in READERS:
        with pytest.raises(DataError) as caught:
            read(path)
        texts.add(str(caught.value))
    with pytest.raises(SystemExit, match="2"):
        main(["mesh", "show", "--mesh", str(path)])
    texts.add(capsys.readouterr().err.removeprefix("error: ").rstrip("\n"))
    (text,) = texts
    assert text.startswith(str(path))
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize("case", GOOD)
def test_what_is_written_reads_back_equal(case: str, tmp_path: Path) -> None:
    path = written(tmp_path, *GOOD[case])
    read = read_mesh(path).file
    write_mesh(tmp_path / "again.toml", read)
    assert read_file(tmp_path / "again.toml") == read
    assert (tmp_path / "again.toml").read_text(encoding="utf-8") == mesh_text(read)


def test_a_node_takes_off_its_own_offset(tmp_path: Path) -> None:
    """Outcomes are costs: the agent maximises, so of the offset too it has the negative."""
    path = written(tmp_path, *GOOD["offsets"])
    mesh = read_mesh(path)
    found = {name: node_config(mesh, name, 1).games[0].offset for name in mesh.ids}
    assert found == {"a": -12.5, "b": 0.0, "c": 3.0}
    edit.remove(path, "c")
    assert read_mesh(path).file.games[0].offsets == {"a": 12.5}


def test_a_node_divides_by_its_own_scale(tmp_path: Path) -> None:
    path = written(tmp_path, *GOOD["scales"])
    mesh = read_mesh(path)
    games = {name: node_config(mesh, name, 1).games[0] for name in mesh.ids}
    assert {name: (game.offset, game.scale) for name, game in games.items()} == {
        "a": (-12.5, 1.5),
        "b": (0.0, 1.0),
        "c": (0.0, 2.0),
    }
    edit.remove(path, "c")
    assert read_mesh(path).file.games[0].scales == {"a": 1.5}


def test_a_node_is_born_with_the_prior_of_the_file(tmp_path: Path) -> None:
    """Costs become rewards; a node's own values come before those of all, and go with the node."""
    mesh = read_mesh(written(tmp_path, *GOOD["a prior per node"]))
    agents = {name: node_config(mesh, name, 1).games[0].make_agent() for name in ("a", "c")}
    assert [agent.choose(1) for agent in agents.values()] == [0, 0]
    first = mesh.prior(mesh.games["mirrors"], "a")
    own = mesh.prior(mesh.games["mirrors"], "c")
    assert first is not None
    assert own is not None
    assert (first.mean, first.weights, first.cap) == ((-80.0, -95.5), (20, 12), 20)
    assert (own.mean, own.weights, own.spread) == ((-1.0, -2.0), (3, 4), None)
    edit.adopt(mesh.path)
    game = edit.remove(mesh.path, "c").games["mirrors"]
    assert game.prior is not None
    assert (game.prior.mean, game.prior.nodes) == ([80.0, 95.5], {})


def test_values_of_a_prior_go_by_the_names_of_arms(tmp_path: Path) -> None:
    """Arms that were reordered, added or removed since: of a new one nothing is known."""
    named = 'arms = ["new", "south", "west", "north"]\nmean = [1, 2, 3, 4]\nn = [5, 6, 7, 8]\n'
    own = "[games.prior.nodes.c]\nmean = [10, 20, 30, 40]\nn = [50, 60, 70, 80]\nspread = [1, 2, 3, 4]\n"
    text = MESH.replace('["north", "south"]', '["south", "other", "north"]', 1)
    text = text.replace("[[nodes]]", f"[games.prior]\n{named}{own}[[nodes]]", 1)
    (tmp_path / "mesh.toml").write_text(text, encoding="utf-8")
    mesh = read_mesh(tmp_path / "mesh.toml")
    first, single = (mesh.prior(mesh.games["mirrors"], name) for name in ("a", "c"))
    assert first is not None
    assert single is not None
    assert (first.mean, first.n, first.spread) == ((-2.0, 0.0, -4.0), (6.0, 0.0, 8.0), None)
    assert (single.mean, single.n, single.spread) == ((-20.0, 0.0, -40.0), (60.0, 0.0, 80.0), (2.0, 0.0, 4.0))


def made_mesh(folder: Path) -> Path:
    moments = {"eps": 0.5, "u": 1.0, "rho": 1.0}
    game = GamePart(name="g", arms=["a", "b"], policy={"type": "robust"}, moments=moments)
    return edit.init(folder, "test", game)


@pytest.mark.parametrize(
    "name", ["ca", "CA", "removed", "", ".", "..", "-x", ".x", "a/b", "../ca", "a b", "ä", "a\n", 64 * "a"]
)
def test_names_that_are_refused_change_nothing(tmp_path: Path, name: str) -> None:
    path = made_mesh(tmp_path)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    with pytest.raises(InputError, match="is not allowed as the name of a node"):
        edit.add(path, name, "127.0.0.1:7400", [])
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


def test_no_key_is_overwritten(tmp_path: Path) -> None:
    path = made_mesh(tmp_path)
    edit.add(path, "n1", "127.0.0.1:7400", [])
    keys = {each: each.read_bytes() for each in (tmp_path / "keys").iterdir()}
    file = read_mesh(path).file
    file.nodes.clear()  # by hand: the keys are still there
    write_mesh(path, file)
    with pytest.raises(InputError, match=r"n1\.key is there already"):
        edit.add(path, "n1", "127.0.0.1:7400", [])
    assert {each: each.read_bytes() for each in (tmp_path / "keys").iterdir()} == keys


def test_an_id_is_never_given_twice(tmp_path: Path) -> None:
    path = made_mesh(tmp_path)
    for name in ("n0", "n1", "n2"):
        edit.add(path, name, "127.0.0.1:7400", [])
    old = (tmp_path / "keys" / "n2.key").read_bytes()
    edit.remove(path, "n2")
    edit.remove(path, "n1")
    assert edit.add(path, "n3", "127.0.0.1:7400", []).ids == {"n0": 0, "n3": 3}
    assert edit.add(path, "n2", "127.0.0.1:7400", []).ids["n2"] == 4
    assert (tmp_path / "keys" / "removed" / "n2-2.key").read_bytes() == old
    assert (tmp_path / "keys" / "n2.key").read_bytes() != old
    edit.remove(path, "n0")
    assert read_mesh(path).file.next_id == 5
