"""Edits of a mesh, rule by rule, and its keys."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from rumormill.errors import DataError, InputError
from rumormill.mesh import edit, keys
from rumormill.mesh.file import GamePart, NodePart, PlanPart, read_mesh, split_address, write_mesh

MOMENTS = {"eps": 0.5, "u": 1.0, "rho": 1.0}


def made_mesh(folder: Path, nodes: int = 3, **policy: Any) -> Path:
    """Nodes in a row: n0, n1, ..."""
    settings = policy or {"type": "decentralized", "gamma": 1, "zeta": 1.0}
    path = edit.init(folder, "test", GamePart(name="g", arms=["a", "b"], policy=settings, moments=MOMENTS))
    for v in range(nodes):
        edit.add(path, f"n{v}", f"127.0.0.1:{7400 + v}", [f"n{v - 1}"] if v else [])
    return path


def test_every_edit_is_a_new_revision_without_the_old_plan(tmp_path: Path) -> None:
    path = made_mesh(tmp_path)
    assert read_mesh(path).file.revision == 4
    planned = edit.plan(path)
    assert (planned.file.revision, planned.file.plans["g"].gamma) == (5, 1)
    moved = edit.move(path, "n1", "127.0.0.1:9999")
    assert (moved.file.revision, moved.nodes["n1"].address) == (6, "127.0.0.1:9999")
    assert moved.file.plans  # links are as they were
    smaller = edit.remove(path, "n2")
    assert (smaller.file.revision, smaller.file.plans) == (7, {})
    assert smaller.links == {"n0": ["n1"], "n1": ["n0"]}
    edit.plan(path)
    assert edit.add(path, "n3", "127.0.0.1:7403", ["n1"]).file.plans == {}


def test_a_link_holds_for_both_and_neighbours_are_sorted_by_id(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=1)
    edit.add(path, "z", "127.0.0.1:7401", ["n0"])
    mesh = edit.add(path, "b", "127.0.0.1:7402", ["n0"])
    assert mesh.links["n0"] == ["z", "b"]
    assert mesh.network().neighbours(0).tolist() == [1, 2]


def test_leaders_and_cliques_by_name(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, type="centralized", gamma=1, zeta=1.0, leaders="dominating")
    part = edit.plan(path).file.plans["g"]
    assert part.leader == {"n0": "n1", "n1": "n1", "n2": "n1"}
    assert part.distance == {"n0": 1, "n1": 0, "n2": 1}
    other = made_mesh(tmp_path / "cliques", type="decentralized", gamma=1, zeta=1.0, clique_filter=True)
    cliques = edit.plan(other).file.plans["g"].cliques
    assert cliques is not None
    assert sorted(name for clique in cliques for name in clique) == ["n0", "n1", "n2"]
    assert {"n0", "n2"} not in [set(clique) for clique in cliques]


def test_a_generator_makes_the_links(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=4)
    file = read_mesh(path).file
    file.network = {"kind": "ring"}
    write_mesh(path, file)
    mesh = edit.plan(path)
    assert mesh.links == {"n0": ["n1", "n3"], "n1": ["n0", "n2"], "n2": ["n1", "n3"], "n3": ["n0", "n2"]}


def test_nodes_without_links_cannot_share(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=1)
    edit.add(path, "n1", "127.0.0.1:7401", [])
    with pytest.raises(InputError, match="no node has neighbours"):
        edit.plan(path)


def test_a_mistake_changes_nothing_on_the_disk(tmp_path: Path) -> None:
    path = made_mesh(tmp_path)
    before = path.read_bytes()
    file = read_mesh(path).file
    file.nodes.append(NodePart(name="n9", id=9, address="127.0.0.1:1", neighbours=["nobody"]))
    with pytest.raises(DataError, match="there is no node 'nobody'"):
        edit._changed(path, file)
    assert path.read_bytes() == before


def test_adopting_keeps_what_is_there(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=2)
    file = read_mesh(path).file
    file.nodes += [NodePart(name="new", neighbours=["n0"]), NodePart(name="other", neighbours=["new"])]
    write_mesh(path, file)
    before = (tmp_path / "keys" / "n0.key").read_bytes()
    mesh = edit.adopt(path)
    assert mesh.ids == {"n0": 0, "n1": 1, "new": 2, "other": 3}
    assert [node.address for node in mesh.file.nodes[1:3]] == ["127.0.0.1:7401", "new:7400"]
    assert (tmp_path / "keys" / "n0.key").read_bytes() == before
    assert (tmp_path / "keys" / "new.crt").exists()
    moved = edit.adopt(path, "{name}.example:{port}")
    assert [node.address for node in moved.file.nodes] == [
        "n0.example:7400", "n1.example:7401", "new.example:7402", "other.example:7403",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "parts"),
    [("h:1", ("h", 1)), ("h:65535", ("h", 65_535)), ("[::1]:80", ("::1", 80)), ("h:0", None),
     ("h:65536", None), ("h", None), (":80", None), ("h:+1", None), ("h:", None)],
)  # fmt: skip
def test_addresses(address: str, parts: tuple[str, int] | None) -> None:
    if parts is not None:
        assert split_address(address, "x") == parts
        return
    with pytest.raises(InputError, match="give HOST:PORT"):
        split_address(address, "x")


def changed(path: Path, change: Any) -> Path:
    file = read_mesh(path).file
    change(file)
    write_mesh(path, file)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.games[0].arms.pop(), r"arms = \['a'\] is not allowed"),
        (lambda file: file.games[0].arms.append("a"), "each given once"),
        (lambda file: setattr(file.nodes[1], "id", 0), r"nodes\[1\]\.id = 0 is given twice"),
        (lambda file: setattr(file.nodes[1], "name", "n0"), r"nodes\[1\]\.name = 'n0' is given twice"),
        (lambda file: file.nodes[1].neighbours.append("n1"), "is the node itself"),
        (lambda file: file.games[0].moments.pop("u"), r"moments\.u: missing"),
        (lambda file: file.plans.update(h=PlanPart(gamma=1)), "there is no such game"),
        (lambda file: file.plans.update(g=PlanPart(gamma=1, cliques=[["x"]])), "there is no node 'x'"),
        (lambda file: file.plans.update(g=PlanPart(gamma=1, leader={"n0": "x"})), "there is no node 'x'"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, change: Any, said: str) -> None:
    path = made_mesh(tmp_path, nodes=2)
    with pytest.raises(DataError, match=said):
        read_mesh(changed(path, change))


@pytest.mark.parametrize(
    ("policy", "moments", "said"),
    [
        ({"type": "decentralized", "gamma": 1, "zeta": 1.0}, None, "needs moments"),
        ({"type": "decentralized", "gamma": 1, "zeta": 1.0, "estimator": "catoni"}, MOMENTS, "keeps every"),
        ({"type": "decentralized", "gamma": 1, "estimator": "robust-moss"}, MOMENTS, "rounds"),
        ({"type": "decentralized", "gamma": 1, "estimator": "self-tuned"}, None, None),
    ],
)
def test_what_a_node_cannot_run_without_end(
    tmp_path: Path, policy: dict[str, Any], moments: dict[str, float] | None, said: str | None
) -> None:
    game = GamePart(name="g", arms=["a", "b"], policy=policy, moments=moments)
    if said is None:
        edit.init(tmp_path, "test", game)
        return
    with pytest.raises(InputError, match=said):
        edit.init(tmp_path, "test", game)
    assert not (tmp_path / "mesh.toml").exists()


# --- keys -----------------------------------------------------------------------------------------------


def test_private_keys_are_for_their_owner_and_nodes_are_no_authorities(tmp_path: Path) -> None:
    made_mesh(tmp_path, nodes=1)
    folder = tmp_path / "keys"
    for name in ("ca.key", "n0.key"):
        assert (folder / name).stat().st_mode & 0o077 == 0
    for name, authority in (("ca", True), ("n0", False)):
        made = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
        basic = made.extensions.get_extension_for_class(x509.BasicConstraints)
        assert (basic.value.ca, basic.critical) == (authority, True)
        valid = made.not_valid_after_utc - made.not_valid_before_utc
        assert valid == datetime.timedelta(days=3651)
    with pytest.raises(FileExistsError):
        keys._write(folder / "n0.key", b"other", private=True)


def test_a_signature_is_one_nodes(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=2)
    public = {node.id: [node.key] for node in read_mesh(path).file.nodes}
    sign, verify = keys.signing_keys(tmp_path / "keys", "n0", public)
    signature = sign(b"words")
    assert verify(0, b"words", signature)
    assert not verify(1, b"words", signature)
    assert not verify(0, b"other words", signature)
    assert not verify(5, b"words", signature)  # nobody


def test_a_key_that_was_rotated_still_proves_what_it_signed(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=2)
    file = read_mesh(path).file
    file.signed = True
    write_mesh(path, file)
    public = {node.id: [node.key] for node in file.nodes}
    before, _ = keys.signing_keys(tmp_path / "keys", "n0", public)
    old = before(b"words")
    serial = keys.serial_of(tmp_path / "keys", "n0")
    mesh = edit.rotate(path, "n0")
    assert mesh.file.revoked == [serial]
    assert keys.serial_of(tmp_path / "keys", "n0") != serial
    assert (tmp_path / "keys" / "removed" / f"n0-{serial}.key").exists()
    known = {node.id: [node.key, *node.former_keys] for node in mesh.file.nodes}
    sign, verify = keys.signing_keys(tmp_path / "keys", "n0", known)
    assert sign(b"words") != old
    assert verify(0, b"words", old)
    assert verify(0, b"words", sign(b"words"))
    assert not verify(1, b"words", old)


def test_a_removed_node_is_revoked(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=2)
    serial = keys.serial_of(tmp_path / "keys", "n1")
    assert edit.remove(path, "n1").revoked == {serial}


def test_a_signed_mesh_needs_whole_keys(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, nodes=2)
    file = read_mesh(path).file
    file.signed = True
    write_mesh(path, file)
    read_mesh(path)
    for key in ("", "00" * 31, "x" * 64):
        file.nodes[1].key = key
        write_mesh(path, file)
        with pytest.raises(DataError, match=r"nodes\[1\]\.key"):
            read_mesh(path)
