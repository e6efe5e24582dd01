"""`rumormill mesh adopt --from`: what the nodes of a mesh have learned is the prior of its next revision."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.lockstep import RoundNode
from helpers.played_mesh import play_mesh, play_rounds, write_folder
from rumormill.catalogue import make
from rumormill.cli import main
from rumormill.engine.reference import BLOCK
from rumormill.live.core.node_config import LAST_DECISION, node_config, within
from rumormill.live.io.carry_over import carry_over
from rumormill.live.io.folder import read_log
from rumormill.mesh import edit
from rumormill.mesh.file import GamePart, Mesh, NodePart, PriorPart, read_mesh, write_mesh
from rumormill.policies import Seat
from rumormill.seeds import Role, root_seed, stream_seed
from rumormill.stats import winsorised

GAME, OLD, NEW = "mirrors", ["ams", "fra", "lon"], ["lon", "waw", "ams"]
MEANS = {"ams": 0.0, "fra": 1.0, "lon": 2.0, "waw": 0.5}
MOMENTS = {"eps": 0.8, "u": 4.0, "rho": 3.0}
NODES, ROUNDS, HORIZON = 5, 60, 30
POLICIES: dict[str, dict[str, Any]] = {
    "everybody": {"type": "decentralized", "gamma": 1, "clique_filter": False, "confidence": "anytime"},
    "kmp": {"type": "kmp", "gamma": 2, "estimator": "clipped", "zeta": 0.5},
    "leaders": {"type": "centralized", "gamma": 1},
    "own index": {"type": "kmp", "gamma": 4, "estimator": "self-tuned"},
    "bucket median": {"type": "kmp", "gamma": 1, "estimator": "bucket-median"},
}


def call(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def made_mesh(folder: Path, policy: dict[str, Any], **given: Any) -> Path:
    """Nodes n0 to n4 on a line."""
    game = GamePart(name=GAME, arms=OLD, policy=policy, moments=MOMENTS, **given)
    path = edit.init(folder, "west", game)
    for v in range(NODES):
        edit.add(path, f"n{v}", f"127.0.0.1:{7400 + v}", [f"n{v - 1}"] * (v > 0))
    edit.plan(path)
    return path


def rewards(seed: int, means: tuple[float, ...]) -> Callable[[int, int, int], float]:
    draws = np.random.default_rng(seed).standard_t(3.0, (ROUNDS, NODES, len(means)))
    return lambda v, t, arm: means[arm] + float(draws[t - 1, v, arm])


def changed(path: Path, change: Callable[[GamePart], None]) -> Path:
    file = read_mesh(path).file
    change(file.games[0])
    file.revision += 1
    write_mesh(path, file)
    return path


def files_in(folder: Path) -> dict[Path, bytes]:
    """All files but those that SQLite makes to read."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".toml", ".key", ".crt", ".db")
    }


def wanted_prior(mesh: Mesh, folders: list[Path], arms: list[str]) -> list[tuple[list[float], list[float]]]:
    """(mean, n) of every node by the definition of the estimator, from the logs alone."""
    game, logs = mesh.file.games[0], [read_log(folder)[1] for folder in folders]
    policy: Any = mesh.policies[GAME]
    gamma = mesh.file.plans[GAME].gamma
    t = max(sum(row[3] in arms for row in log) for log in logs)
    L = math.log(NODES * t**3) if policy.confidence == "anytime" else 2 * math.log(t)
    found = []
    for name in mesh.ids:
        near = sorted(within(mesh, name, gamma))
        # The nodes played rounds of one second: in order of time is in order of rounds.
        rows = [logs[v][i] for i in range(ROUNDS) for v in near]
        samples = [[row[4] for row in rows if row[3] == arm] for arm in arms]
        mean, n = [], []
        for each in samples:
            level, value = L, math.inf
            while each and math.isinf(value) and level > 0.1:
                value, level = policy.estimator.of(each, level, mesh.moments(game)), level / 2
            mean.append(value if math.isfinite(value) else 0.0)
            n.append(float(len(each)) if math.isfinite(value) else 0.0)
        found.append((mean, n))
    return found


@pytest.mark.parametrize(
    ("policy", "arms"), [*((name, NEW) for name in POLICIES), ("kmp", OLD), ("own index", OLD)]
)
def test_the_second_mesh_starts_where_the_first_ended(policy: str, arms: list[str], tmp_path: Path) -> None:
    path = made_mesh(tmp_path, POLICIES[policy])
    folders = play_mesh(read_mesh(path), GAME, rewards(1, (0.0, 1.0, 2.0)), ROUNDS, tmp_path / "data")
    changed(path, lambda game: setattr(game, "arms", arms))
    revision = read_mesh(path).file.revision
    before = files_in(tmp_path / "data")
    assert call(*["mesh", "adopt", "--mesh", str(path), "--from", *map(str, folders)]) == 0
    assert files_in(tmp_path / "data") == before
    mesh = read_mesh(path)
    assert mesh.file.revision > revision
    priors: list[Any] = [mesh.prior(mesh.file.games[0], name) for name in mesh.ids]
    for v, (mean, n) in enumerate(wanted_prior(mesh, folders, arms)):
        np.testing.assert_allclose(priors[v].mean, mean, rtol=1e-9)
        assert priors[v].n == tuple(n)
        assert (n[1] == 0) == (arms == NEW)  # of a new arm nothing is known
        assert max(priors[v].weights) == 30
    same_actions(mesh, priors, POLICIES[policy])


def same_actions(mesh: Mesh, priors: list[Any], settings: dict[str, Any]) -> None:
    """New nodes take the simulator's actions with the prior, and not those without."""
    bandit = rm.Bandit([rm.Gaussian(loc=MEANS[arm], scale=4.0) for arm in mesh.file.games[0].arms])
    stream = bandit.stream(stream_seed(stream_seed(root_seed(3), 0), Role.REWARDS), NODES, HORIZON)
    assert HORIZON <= BLOCK
    draws = stream.block(0, HORIZON)

    def pay(v: int, t: int, arm: int) -> float:
        return float(stream.loc[arm] + stream.scale[arm] * draws[t - 1, v, 0 if stream.shared else arm])

    spread = None if priors[0].spread is None else [each.spread for each in priors]
    prior = rm.Prior(mean=[each.mean for each in priors], n=[each.n for each in priors], spread=spread)
    given: Any = {"horizon": HORIZON, "rng": 3, "engine": "reference", "actions": True}
    policy = make("policy", {**settings, "moments": MOMENTS})
    played = play_rounds(mesh, GAME, pay, HORIZON)
    for known, equal in ((prior, True), (None, False)):
        result = rm.simulate(bandit, mesh.network(), policy, prior=known, **given)
        assert result.actions is not None
        assert np.array_equal(result.actions[0], played) == equal
    if prior.complete:  # the best arm at once
        assert {mesh.file.games[0].arms[arm] for arm in played[0]} == {"lon"}


def test_spreads_are_those_of_winsorised_samples(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "robust", "estimator": "self-tuned"})
    rows = [(0, 1.0), (0, 2.0), (0, 6.0)] * 8 + [(1, 3.0)]
    folder = write_folder(read_mesh(path), GAME, "n1", rows, tmp_path)
    mesh = read_mesh(path)
    assert carry_over(mesh, [folder]) == [f"game {GAME}: a prior for 1 nodes from 25 observations"]
    prior: Any = mesh.prior(mesh.file.games[0], "n1")
    assert prior.spread == (float(winsorised(np.array([1.0, 2.0, 6.0] * 8)).std(ddof=1)), 0.0, 0.0)
    assert prior.n == (24.0, 0.0, 0.0)  # of one sample there is no spread
    assert mesh.prior(mesh.file.games[0], "n0") is None


def test_costs_stay_costs_and_a_new_node_learns_from_its_neighbours(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "kmp", "gamma": 1, "estimator": "clipped"}, objective="minimise")
    mesh = read_mesh(path)
    folders = [write_folder(mesh, GAME, name, [(1, -1.5)] * 40, tmp_path) for name in ("n0", "n4")]
    edit.remove(path, "n4")
    file = read_mesh(path).file
    file.nodes.append(NodePart(name="new", neighbours=["n0"]))  # adopt gives it an id and an address
    write_mesh(path, file)
    lines: list[str] = []
    made = edit.adopt(path, learn=lambda mesh: lines.extend(carry_over(mesh, folders)))
    assert lines == [
        f"game {GAME}: a prior for 3 nodes from 40 observations; "
        "40 of nodes or arms that are not in the file are left out"
    ]
    part = made.file.games[0].prior
    assert part is not None
    assert set(part.nodes) == {"n0", "n1", "new"}
    assert part.nodes["new"] == PriorPart(mean=[0.0, 1.5, 0.0], n=[0.0, 40.0, 0.0])


def test_priors_are_about_outcomes_less_the_offsets(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "kmp", "gamma": 1, "estimator": "clipped"}, objective="minimise")
    folders = [
        write_folder(read_mesh(path), GAME, name, [(1, -value)] * 8, tmp_path)
        for name, value in (("n0", 1.5), ("n1", 4.5))
    ]
    changed(path, lambda game: setattr(game, "offsets", {"n0": 0.5, "n1": 3.5}))
    mesh = read_mesh(path)
    carry_over(mesh, folders)
    part = mesh.file.games[0].prior
    assert part is not None
    assert part.nodes["n0"] == PriorPart(mean=[0.0, 1.0, 0.0], n=[0.0, 16.0, 0.0])
    changed(path, lambda game: setattr(game, "scales", {"n0": 2.0, "n1": 2.0}))
    mesh = read_mesh(path)
    carry_over(mesh, folders)
    part = mesh.file.games[0].prior
    assert part is not None
    assert part.nodes["n0"] == PriorPart(mean=[0.0, 0.5, 0.0], n=[0.0, 16.0, 0.0])


def test_what_the_first_mesh_was_born_with_is_carried_on(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "robust", "estimator": "clipped"})
    names = list(read_mesh(path).file.games[0].arms)
    earlier = PriorPart(arms=names[::-1], mean=[9e5, 0.2, 0.1], n=[100.0, 100.0, 100.0], probe=50)
    earlier.nodes["n2"] = PriorPart(mean=[3.0, 2.0, 1.0], n=[7.0, 8.0, 9.0])
    changed(path, lambda game: setattr(game, "prior", earlier))
    rows = [(0, 0.5)] * 40 + [(1, 0.25)] * 3 + [(2, 0.75)] * 8
    folder = write_folder(read_mesh(path), GAME, "n1", rows, tmp_path)
    seen = []
    for _ in range(2):  # the same observations do not count twice
        edit.adopt(path, learn=lambda mesh: carry_over(mesh, [folder]))
        edit.plan(path)
        mesh = read_mesh(path)
        prior: Any = mesh.prior(mesh.file.games[0], "n1")
        # Many samples replace it, a few do not; a contradicted one is dropped.
        assert prior.mean == pytest.approx((0.5, 0.2, 0.75))
        assert (prior.n, prior.probe) == ((40.0, 100.0, 8.0), 50)
        seen.append(prior)
        other: Any = mesh.prior(mesh.file.games[0], "n0")
        assert other.mean == (0.1, 0.2, 9e5)
        other = mesh.prior(mesh.file.games[0], "n2")
        assert (other.mean, other.n) == ((1.0, 2.0, 3.0), (9.0, 8.0, 7.0))
    assert seen[0] == seen[1]


def test_what_is_forgotten_is_not_carried_over(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "robust", "estimator": "clipped", "forget": {"window": 20}})
    mesh = read_mesh(path)
    carry_over(mesh, [write_folder(mesh, GAME, "n2", [(0, -0.5)] * 40 + [(0, 0.5)] * 30, tmp_path)])
    prior: Any = mesh.prior(mesh.file.games[0], "n2")
    assert 10 <= prior.n[0] <= 20
    assert prior.mean[0] == pytest.approx(0.5)


def test_a_template_learns_from_its_classes(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "robust", "estimator": "clipped"}, classes=4)
    mesh = read_mesh(path)
    folder = write_folder(mesh, f"{GAME}/large", "n2", [(0, 0.5)] * 20, tmp_path)
    carry_over(mesh, [folder])
    prior: Any = mesh.prior(mesh.file.games[0], "n2")
    assert prior.weights == (10, 0, 0)


def test_a_node_that_keeps_its_samples_does_not_count_them_twice(tmp_path: Path) -> None:
    """An agent that continues takes a new prior for the arms alone of which it has fewer samples."""
    settings = make("policy", {"type": "robust", "estimator": "clipped", "moments": MOMENTS})
    given: Any = {"agent": 0, "n_arms": 3, "horizon": LAST_DECISION}
    prior = rm.Prior(mean=[0.0, 1.0, 2.0], n=[5, 20, 20])
    cold, warm = settings.agent(Seat(**given)), settings.agent(Seat(**given, prior=prior))
    for t, arm in enumerate([0] * 5 + [1] * 3, 1):
        cold.observe(t, arm, 0.5)
    warm.restore(cold.state())
    assert warm.state()["prior"] == {"weights": [0.0, 20.0, 20.0], "taken": 8, "mean": [0.0, 1.0, 2.0]}
    again = settings.agent(Seat(**given, prior=prior))
    again.restore(warm.state())
    assert again.state() == warm.state()
    other = settings.agent(Seat(**given, prior=rm.Prior(mean=[0.0, 1.0, 3.0], n=[6, 3, 2])))
    other.restore(warm.state())
    assert other.state()["prior"]["weights"] == [6.0, 0.0, 2.0]


def test_a_running_mesh_with_a_new_file_goes_on_as_before(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, {"type": "robust", "estimator": "clipped"})
    rows = [(arm, arm + 0.5) for arm in (0, 1, 2)] * 12
    node = RoundNode(node_config(read_mesh(path), "n3", epoch=1))
    node.start()
    node.committed(node.records)
    for arm, reward in rows:
        chosen = node.choose(GAME, 0.0, 60.0, [arm])
        node.observe(GAME, chosen.t, arm, reward)
    folder = write_folder(read_mesh(path), GAME, "n3", rows, tmp_path)
    assert call(*["mesh", "adopt", "--mesh", str(path), "--from", str(folder)]) == 0
    # The same arms, and then others: the first is the same game, the second another revision of it.
    for arms in (OLD, NEW):
        file = read_mesh(path).file
        file.games[0].arms = arms
        write_mesh(path, file)
        node.reconfigure(node_config(read_mesh(path), "n3", epoch=1))
        state = node.games[GAME].adapter.agent.state()
        assert state["prior"]["weights"] == [0.0] * 3  # it has these samples; none of a new arm
        prior = file.games[0].prior
        assert prior is not None
        assert prior.arms == OLD
        prior.arms = arms  # as if it knew the new arm
        write_mesh(path, file)
        node.reconfigure(node_config(read_mesh(path), "n3", epoch=1))
        state = node.games[GAME].adapter.agent.state()
        assert state["prior"]["weights"] == [0.0 if arm in OLD else 12.0 for arm in arms]
        prior.arms = OLD
        write_mesh(path, file)


BAD: dict[str, tuple[str, str]] = {
    "no node": ("elsewhere", "elsewhere holds no node: there is no node.db in it"),
    "no folder": ("nothing", "nothing holds no node: there is no node.db in it"),
    "damaged": ("data/n1", "n1 is damaged"),
    "another mesh": ("other/n0", "belongs to mesh east, node n0, not to mesh west"),
    "twice": ("data/n0", "n0 is of node 'n0', as a folder before it: give one folder per node"),
}


def damage(folder: Path) -> None:
    file = folder / "node.db"
    data = bytearray(file.read_bytes())
    at = data.rindex(b"mirrors")
    data[at : at + 7] = b"MIRRORS"
    file.write_bytes(data)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_folder_changes_nothing(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_mesh(tmp_path / "mesh", {"type": "robust", "estimator": "clipped"})
    mesh = read_mesh(path)
    for name in ("n0", "n1"):
        write_folder(mesh, GAME, name, [(0, 1.0)] * 9, tmp_path / "data")
    (tmp_path / "elsewhere").mkdir()
    mesh.file.name = "east"
    write_folder(mesh, GAME, "n0", [(0, 1.0)], tmp_path / "other")
    damage(tmp_path / "data" / "n1")
    refused(capsys, path, [tmp_path / "data" / "n0", tmp_path / BAD[case][0]], BAD[case][1])


def refused(
    capsys: pytest.CaptureFixture[str], path: Path, folders: list[Path], words: str, *more: str
) -> None:
    file = read_mesh(path).file
    file.nodes.append(NodePart(name="new", neighbours=["n0"]))  # its keys would be made
    write_mesh(path, file)
    before = files_in(path.parent.parent)
    capsys.readouterr()
    assert call(*["mesh", "adopt", "--mesh", str(path), *more, "--from", *map(str, folders)]) != 0
    said = capsys.readouterr().err
    assert words in " ".join(said.split())
    assert files_in(path.parent.parent) == before


@pytest.mark.parametrize(
    ("policy", "rows", "more", "words"),
    [
        ({"type": "default", "gamma": 1}, [(0, 1.0)], (), f"game '{GAME}': Default takes no prior"),
        ({"type": "robust"}, [], (), "there are no observations of arms of its games in"),
        ({"type": "robust"}, [(0, 1.0)], ("--game", "miror"), "has no game 'miror'"),
    ],
)
def test_what_cannot_be_carried_over_changes_nothing(
    policy: dict[str, Any],
    rows: Any,
    more: Any,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = made_mesh(tmp_path / "mesh", policy)
    folder = write_folder(read_mesh(path), GAME, "n0", rows, tmp_path)
    refused(capsys, path, [folder], words, *more)


def test_folders_without_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_mesh(tmp_path, {"type": "robust"})
    assert call(*["mesh", "adopt", "--mesh", str(path), "n0.data"]) == 2
    assert "folders and --game go with --from" in capsys.readouterr().err
