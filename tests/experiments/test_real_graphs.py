"""The two panels on real graphs, where the files are."""

from pathlib import Path

import pytest

from helpers.real_graphs import FOLDER, needs_real_graphs
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import at_scale, named_spec
from rumormill.graphs import Network
from rumormill.graphs.datasets import find


@needs_real_graphs
@pytest.mark.parametrize(("name", "agents"), [("fig1c", 10_876), ("fig1d", 4_039)])
def test_the_panels_run_on_connected_parts_of_the_real_graphs(
    name: str, agents: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUMORMILL_DATA", str(FOLDER))
    spec = at_scale(named_spec(name), "full", trials=1, horizon=20)
    assert Network.from_file(find(spec.network.settings["file"])).n_agents == agents
    done = run(spec, tmp_path / name)
    about = done.manifest.networks["0"]
    assert about.n_agents == 500
    assert about.gamma == (about.diameter + 1) // 2
    assert sorted(v for clique in about.cliques or [] for v in clique) == list(range(500))
    assert (done.frame["regret"] > 0).all()
