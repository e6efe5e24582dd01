"""Mesh files: what advice writes is read back, as a setting, as a network and by `simulate --mesh`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import log_of, two_clusters
from rumormill import catalogue
from rumormill.advice.advise import advise
from rumormill.advice.mesh_output import mesh_of, read_setting
from rumormill.cli import main
from rumormill.mesh.file import mesh_text, read_mesh

MESH = """
name = "mirrors"
[[games]]
name = "mirrors"
arms = ["north", "south"]
objective = "minimise"
unit = "ms"
patience = 20.0
[games.policy]
type = "kmp"
gamma = 1
estimator = "clipped"
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
address = "10.0.0.3:7000"
neighbours = ["b"]
[limits]
retain = 1000
"""


def put(tmp_path: Path, text: str = MESH) -> Path:
    (tmp_path / "mesh.toml").write_text(text)
    return tmp_path / "mesh.toml"


def test_a_mesh_by_hand(tmp_path: Path) -> None:
    given = read_setting(put(tmp_path))
    assert (given.game.objective, given.game.unit) == ("minimise", "ms")
    assert [given.network.neighbours(v).tolist() for v in range(3)] == [[1], [0, 2], [1]]
    assert given.setting.build(given.moments) == rm.KMPUCB(
        gamma=1, estimator=rm.estimators.ClippedMean(), zeta=0.1, moments=rm.Moments(eps=0.5, u=2.0, rho=1.0)
    )
    network = catalogue.make("network", {"kind": "mesh", "file": str(tmp_path / "mesh.toml")})
    assert network.build(np.random.default_rng(0)).n_edges == 2


def test_what_advice_writes_is_what_was_recommended(tmp_path: Path) -> None:
    advice = advise(log_of(two_clusters(agents=8, rounds=150).table(1), unit="clicks"), seed=1)
    mesh = mesh_of(advice)
    given = read_setting(put(tmp_path, mesh_text(mesh)))
    assert given.mesh.file == mesh
    assert given.game.arms == list(advice.log.arms)
    assert given.setting.build(given.moments) == advice.setting.build(advice.model.moments)
    for v, name in enumerate(given.mesh.ids):
        known = given.mesh.prior(given.game, name)
        assert (known is None) == (advice.prior is None)
        if known is not None and advice.prior is not None:
            wanted = np.array(advice.prior.of(v).mean, float)
            np.testing.assert_allclose(np.array(known.mean, float), wanted, rtol=1e-7)
            assert known.weights == advice.prior.of(v).weights
    for group in advice.groups:
        for v in group:
            assert set(given.network.neighbours(v).tolist()) <= set(group)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'neighbours = ["b"]\n[limits',
            'neighbours = ["d"]\n[limits',
            "neighbours: there is no node 'd'",
        ),
        ('name = "c"', 'name = "b"', "name = 'b' is given twice"),
        ('type = "kmp"', 'type = "kpm"', "policy.type = 'kpm' is not allowed"),
        ("zeta = 0.1\n", "", "policy.zeta: missing"),
        ("eps = 0.5\n", "", "moments.eps: missing"),
        ("eps = 0.5\n", "eps = 5.0\n", "moments: eps"),
        ('type = "kmp"\ngamma = 1', 'type = "consensus"', "policy"),
        ('objective = "minimise"', 'objective = "least"', "games"),
        ("gamma = 1", 'gamma = "half-diameter"', "a whole number"),
        ("[[games]]", "[[games", "cannot be read"),
    ],
)
def test_what_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in MESH
    with pytest.raises(rm.RumormillError, match=message):
        read_setting(put(tmp_path, MESH.replace(old, new)))


def test_files_that_are_no_mesh(tmp_path: Path) -> None:
    with pytest.raises(rm.InputError, match="there is no such file"):
        read_setting(tmp_path / "gone.toml")
    with pytest.raises(rm.DataError, match="games: missing"):
        read_setting(put(tmp_path, 'name = "x"\n'))
    family = catalogue.make("network", {"kind": "mesh", "file": str(put(tmp_path, "nodes = [3]\n"))})
    with pytest.raises(rm.DataError, match="expected a table"):
        family.build(np.random.default_rng(0))


def test_with_write_only_what_live_nodes_accept_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    rows = "\n".join(f"{t},c{v},{rng.random()},{rng.random() + 1}" for t in range(60) for v in range(3))
    Path("log.csv").write_text("time,client,a,b\n" + rows)
    words = ["advise", "log.csv", "--minimise", "--json"]
    tried = []
    for more in ([], ["--write", "mesh.toml"]):
        with pytest.raises(SystemExit) as end:
            main([*words, *more])
        assert end.value.code == 0
        tried.append({row["estimator"] for row in json.loads(capsys.readouterr().out)["settings"]})
    assert "median-of-means" in tried[0]
    assert "median-of-means" not in tried[1]
    mesh = read_mesh(Path("mesh.toml"))
    mesh.live_policy(mesh.file.games[0])
