"""The plan of a spec: made once from the file to the report, shared by all that read it, sent as its spec."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.small_experiments import SWEPT, TINY
from rumormill import catalogue
from rumormill.cli import main
from rumormill.experiments import plan
from rumormill.experiments.plan import Cell, plan_of
from rumormill.experiments.run.store import Parts
from rumormill.experiments.spec import building
from rumormill.experiments.spec.reading import encode, parse_spec, restore


def counted(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def counting(*given: Any, **named: Any) -> Any:
        calls[name] += 1
        return real(*given, **named)

    monkeypatch.setattr(owner, name, counting)


def test_a_run_to_the_report_plans_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.setattr(plan, "_plans", OrderedDict())
    calls: Counter[str] = Counter()
    counted(monkeypatch, calls, plan, "_points")
    counted(monkeypatch, calls, catalogue, "check")
    counted(monkeypatch, calls, Parts, "_checksum")
    for name in ("build_topology", "build_world", "build_laws", "build_policy"):
        counted(monkeypatch, calls, building, name)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path / "tiny.toml"), "--out", str(out), "--jobs", "1"])
    assert ended.value.code == 0
    assert (out / "report.html").exists()
    assert [calls[name] for name in ("_points", "build_topology", "build_world", "build_laws")] == [1] * 4
    assert calls["build_policy"] == 2
    # Network, law, channel and two policies: checked as the file has them, then made, each with its mean.
    assert calls["check"] <= 2 * 7
    # Two cells, when they are written: the table is made of what was played.
    assert calls["_checksum"] == 2


def test_equal_specs_have_one_plan() -> None:
    spec = parse_spec(SWEPT)
    again = restore(encode(spec))
    assert again == spec
    assert plan_of(again) is plan_of(spec)
    assert pickle.loads(pickle.dumps(plan_of(spec))) is plan_of(spec)


def test_points_share_what_an_axis_leaves_unchanged() -> None:
    first, second, third = plan_of(parse_spec(SWEPT)).points
    assert first.topology is second.topology is third.topology
    assert first.world is third.world
    kmp, _, consensus = zip(first.spec.policies, third.spec.policies, strict=True)
    assert first.policy(consensus[0]) is third.policy(consensus[1])
    assert first.policy(kmp[0]) != third.policy(kmp[1])


def test_cells_of_a_trial_stand_together() -> None:
    cells = plan_of(parse_spec(SWEPT.replace("trials = 12", "trials = 3"))).cells(2)
    assert cells[:4] == [Cell(0, 0), Cell(0, 1), Cell(1, 0), Cell(1, 1)]
    assert cells[-3:] == [Cell(0, 2), Cell(1, 2), Cell(2, 2)]
    assert len(set(cells)) == 9


def test_few_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_plans", OrderedDict())
    for seed in range(20):
        parse_spec(TINY.replace("seed = 7", f"seed = {seed}"))
    assert len(plan._plans) == plan.PLANS_KEPT
