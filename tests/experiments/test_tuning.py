"""Specs that tune a constant: what is played, what is chosen by whom, and when a grid is extended."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from helpers.small_experiments import finished_cells
from rumormill.errors import InputError
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.analyse.tuning import claims_by_column, shown_row, tuned_rows
from rumormill.experiments.figures.registry import drawn
from rumormill.experiments.plan import plan_of
from rumormill.experiments.run import cell, runner
from rumormill.experiments.run.manifest import fingerprint
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder, open_run
from rumormill.experiments.spec.building import wider
from rumormill.experiments.spec.reading import (
    at_scale,
    decode,
    encode,
    named_spec,
    parse_spec,
    without_networks,
)

TUNED: dict[str, Any] = {
    "name": "small",
    "seed": 5,
    "horizon": 40,
    "trials": 4,
    "networks": {"er": {"kind": "erdos_renyi", "n": 6, "p": 0.7}, "ring": {"kind": "ring", "n": 6}},
    "arms": {"law": "alpha-stable", "alpha": 1.8, "K": 3},
    "sweep": {"alpha": [1.5, 1.8]},
    "tune": {
        "knobs": ["zeta", "estimator.C"],
        "grid": [0.25, 0.5, 1.0],
        "choose": 0.5,
        "extend": 2,
        "over": "alpha",
    },
    "policies": [
        {"type": "kmp", "label": "KMP", "zeta": 1},
        {"type": "consensus", "label": "Consensus"},
        {"type": "kmp", "label": "Self-tuned", "estimator": "self-tuned"},
        {"type": "kmp", "label": "Median", "estimator": "median-bound"},
    ],
    "claims": [{"kind": "beats", "policy": "KMP", "than": "Consensus"}],
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(decode(TUNED), tmp_path_factory.mktemp("tuned") / "run", 1)


@pytest.fixture(scope="module")
def summary(played: RunFolder) -> Summary:
    return summarise(played)


def test_the_first_knob_that_a_policy_takes_is_turned() -> None:
    spec = decode(TUNED)
    found = {
        (point.values["constant"], point.values["network"]): point.spec for point in plan_of(spec).points
    }
    assert [key[0] for key in found][::2] == ["printed", "theory", "0.25", "0.5", "1.0"]
    at = {part.label: part.settings for part in found["0.5", "ring"].policies}
    assert at["KMP"]["zeta"] == 0.5
    assert at["Consensus"]["zeta"] == 0.5
    assert at["Self-tuned"]["estimator"] == {"type": "self-tuned", "C": 0.5}
    assert "Median" not in at  # it has nothing to tune, and is played once
    theory = {part.label: part.settings for part in found["theory", "er"].policies}
    assert theory["KMP"]["c"] == "theory"
    assert "zeta" not in theory["KMP"]
    assert theory["Consensus"]["zeta"] == 1
    assert theory["Self-tuned"]["estimator"] == "self-tuned"
    assert found["printed", "er"].policies == spec.policies
    assert found["printed", "ring"].network.kind == "ring"
    assert decode(encode(spec)) == spec


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tune": {**TUNED["tune"], "grid": [1.0, 0.5]}}, "tune.grid = [1.0, 0.5] is not allowed: ascending"),
        ({"tune": {**TUNED["tune"], "knobs": ["kappa_c"]}}, "no policy takes any of them"),
        (
            {"tune": {**TUNED["tune"], "over": "gamma"}},
            "tune.over = 'gamma' is not allowed: one of net",
        ),
        ({"tune": {**TUNED["tune"], "grids": [1.0]}}, "tune.grids: unknown key: did you mean 'grid'"),
        ({"trials": 1}, "scale.custom.trials = 1 is not allowed"),
        ({"sweep": {"network": ["er", "rong"]}}, "there is no network 'rong': did you mean 'ring'"),
        ({"network": {"kind": "ring", "n": 6}}, "give [network] or [networks.NAME], not both"),
        ({"sweep": {"constant": [1]}}, "the table has a column of that name"),
    ],
)
def test_mistakes_get_one_line(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        decode({**TUNED, **change})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_networks_by_name_need_names() -> None:
    one = {key: value for key, value in TUNED.items() if key != "networks"}
    with pytest.raises(InputError, match="give the networks by name"):
        decode({**one, "network": {"kind": "ring", "n": 6}, "sweep": {"network": ["ring"]}})
    spec = decode(TUNED)
    assert without_networks(spec, ["er"]).network.kind == "ring"
    with pytest.raises(InputError, match="none of its networks is there"):
        without_networks(spec, ["er", "ring"])


def test_a_grid_is_extended_at_the_end_where_the_best_lies() -> None:
    spec = decode(TUNED)
    inner = {("KMP", "er", 1.5): 0.5, ("Consensus", "er", 1.5): 0.5}
    assert wider(spec, inner) is None
    once = wider(spec, {**inner, ("Consensus", "ring", 1.5): 0.25, ("KMP", "ring", 1.5): 1.0})
    assert once is not None
    assert once.tune is not None
    assert [(one.value, one.policies) for one in once.tune.added] == [(0.125, ["Consensus"]), (2.0, ["KMP"])]
    # Points that were there keep their numbers, so that what was played stays where it is.
    assert [point.values for point in plan_of(once).points][: len(plan_of(spec).points)] == [
        p.values for p in plan_of(spec).points
    ]
    assert fingerprint(once) == fingerprint(spec)
    assert [part.label for part in plan_of(once).points[-1].spec.policies] == ["KMP"]
    twice = wider(once, {("Consensus", "ring", 1.5): 0.125})
    assert twice is not None
    assert wider(twice, {("Consensus", "ring", 1.5): 0.0625}) is None  # twice is enough


def test_the_best_is_chosen_by_other_trials_than_those_reported(played: RunFolder, summary: Summary) -> None:
    assert summary.tuning is not None
    assert summary.axes == ["network", "alpha"]
    frame = played.frame
    for policy in ("KMP", "Consensus", "Self-tuned"):
        for values in summary.points:
            here = frame.filter(
                (frame["policy"] == policy)
                & (frame["network"] == values["network"])
                & (frame["alpha"] == values["alpha"])
                & (frame["t"] == 40)
            )
            early: dict[str, float] = {}
            for constant in set(here["constant"]) - {"printed", "theory"}:
                rows = here.filter((here["constant"] == constant) & (here["trial"] < 2))
                early[constant] = float(rows["regret"].to_numpy().mean())
            good = [float(one) for one, mean in early.items() if mean <= 1.25 * min(early.values())]
            curve = summary.tuning.curves[policy, *values.values()]
            assert curve.chosen == max(good)
            assert summary.of(policy, values).trials == [2, 3]
            assert summary.of(policy, values).regret.shape[0] == 2
            low, high = curve.insensitive or (0, 0)
            assert low <= (curve.chosen or 0) <= high
    assert summary.tuning.curves["Median", "er", 1.5].chosen is None


def test_three_columns(summary: Summary) -> None:
    assert list(summary.columns) == ["printed", "theory", "best"]
    assert [verdict.scope for verdict in summary.columns["theory"].verdicts] == [
        f"small (custom), at theory's constants, α = {alpha}" for alpha in (1.5, 1.8) for _ in range(2)
    ]
    tuning = summary.tuning
    assert tuning is not None
    (row,) = claims_by_column(tuning)
    assert row["claim"] == "KMP beats Consensus"
    assert set(row.values()) == {"KMP beats Consensus", "open"}  # two trials decide nothing
    rows = tuned_rows(tuning)
    assert len(rows) == 4 * 4
    assert shown_row(rows[3])["best value"] == "–"
    found = {(row["network"], row["policy"]) for row in tuning.one_for_all()}
    assert found == {(n, p) for n in ("er", "ring") for p in ("KMP", "Consensus", "Self-tuned")}
    (figure,) = drawn("constants", summary).values()
    assert len(figure.axes) == 4


def test_a_tuned_run_goes_on_where_it_stopped(
    played: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the middle of an extension and resumed: the same table, nothing played twice."""
    whole, kept = played.path / "results.parquet", tmp_path / "run"
    cells = len(finished_cells(played.path))
    calls = 0
    play = cell.play_cell

    def stopping(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == cells - 2:
            raise KeyboardInterrupt
        return play(*args)

    monkeypatch.setattr(cell, "play_cell", stopping)
    with pytest.raises(runner.RunInterrupted):
        run(decode(TUNED), kept, 1)
    again = run(decode(TUNED), kept, 1)
    assert calls == cells + 1
    assert (kept / "results.parquet").read_bytes() == whole.read_bytes()
    assert (kept / "games.parquet").read_bytes() == (played.path / "games.parquet").read_bytes()
    assert again.spec.tune == played.spec.tune
    before = calls
    run(decode(TUNED), kept, 1)  # all there: nothing is played
    assert calls == before


def test_the_games_are_in_the_store(played: RunFolder, summary: Summary) -> None:
    games = played.games
    assert games is not None
    row = games.filter((games["network"] == "er") & (games["alpha"] == 1.5) & (games["trial"] == 3))
    means = row["mean"].to_numpy()[:3]
    assert row["gap"].to_numpy()[:3].tolist() == (means.max() - means).tolist()
    assert row["agents"].to_list()[0] == 6
    assert row["gamma"].to_list()[0] >= 1
    cost = summary.start_cost({"network": "er", "alpha": 1.5})
    late = games.filter(
        (games["network"] == "er")
        & (games["alpha"] == 1.5)
        & (games["constant"] == "printed")
        & (games["trial"] >= 2)
    )
    assert cost == pytest.approx(float((late["gap"] * late["agents"]).sum()) / 2)
    digest = hashlib.sha256((played.path / "games.parquet").read_bytes()).hexdigest()
    assert open_run(played.path).manifest.games_sha256 == digest


def test_constants_are_named_as_resolved(played: RunFolder, summary: Summary) -> None:
    rows = {(row["network"], row["alpha"], row["policy"]): row["constants"] for row in summary.constants}
    assert rows["er", 1.5, "KMP"].startswith("mean = TrimmedMean, schedule = paper, ε = 0.425, u = ")
    assert "ζ = 1" in rows["er", 1.5, "KMP"]
    assert "γ = " in rows["ring", 1.8, "KMP"]
    assert rows["er", 1.8, "Consensus"].startswith("radius = printed, ζ = 1, ε = 0.68, ρ = ")
    assert rows["er", 1.8, "Consensus"].endswith("epsilon_v = exact")
    assert "C = 2" in rows["er", 1.5, "Self-tuned"]


def test_the_shipped_tournament() -> None:
    spec = named_spec("tuned")
    assert list(spec.networks) == ["er", "ba", "ring", "gnutella"]
    assert spec.sweep == {"network": list(spec.networks), "alpha": [1.2, 1.5, 1.9, 2.0]}
    full = at_scale(spec, "full")
    assert all(part.settings.get("n", part.settings.get("subgraph")) == 30 for part in full.networks.values())


def test_a_sweep_over_the_gap_has_a_column_of_its_own(tmp_path: Path) -> None:
    """The table of games has a gap of every arm: the swept value was lost behind it."""
    spec = parse_spec(
        'name = "x"\nseed = 1\nhorizon = 20\ntrials = 2\nnetwork = { kind = "ring", n = 6 }\n'
        'arms = { law = "gaussian", K = 3, gap = 0.1 }\npolicies = [{ type = "robust" }]\n'
        "[sweep]\ngap = [0.05, 0.3]\n"
    )
    found = run(spec, tmp_path / "run", 1)
    assert found.games is not None
    assert set(found.games["swept_gap"].to_list()) == {0.05, 0.3}
    summary = summarise(found)
    for gap in (0.05, 0.3):  # two arms are worse by the gap, six agents try each
        assert summary.start_cost({"gap": gap}) == pytest.approx(2 * gap * 6)
