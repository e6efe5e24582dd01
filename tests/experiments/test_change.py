"""The experiment `change`: its verdicts at quick size, and recovery of a mesh after a change."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from scripts.recovery import choices_until, recoveries

from rumormill.experiments.analyse.summary import summarise
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import at_scale, named_spec
from rumormill.experiments.spec.schema import Spec

pytestmark = pytest.mark.filterwarnings("ignore::rumormill.errors.SlowEngineNotice")

HOLDS, FAILS = "holds", "does not hold"


def verdicts(spec: Spec, folder: Path) -> dict[tuple[str, str], str]:
    found = summarise(run(spec, folder, 1)).verdicts
    return {(verdict.sentence, verdict.values["scenario"]): verdict.word for verdict in found}


def expected(spec: Spec) -> dict[tuple[str, str], str]:
    """Forgetting pays where the arms change and costs where they do not; sharing pays everywhere."""
    shared = "KMP, window beats Robust, window"
    sentences = ["KMP, window beats KMP", "KMP, discount beats KMP", "KMP, window beats KMP, restart", shared]
    return {
        (sentence, scenario): FAILS if scenario == "constant" and sentence != shared else HOLDS
        for sentence in sentences
        for scenario in spec.sweep["scenario"]
    }


@pytest.mark.slow
def test_verdicts(tmp_path: Path) -> None:
    spec = at_scale(named_spec("change"), "quick")
    assert verdicts(spec, tmp_path) == expected(spec)


def test_two_of_the_verdicts(tmp_path: Path) -> None:
    """The same trials as in the quick run; fewer of them, and only the window."""
    spec = at_scale(named_spec("change"), "quick", trials=9)
    wanted = [claim for claim in spec.claims if (claim.policy, claim.than) == ("KMP, window", "KMP")]  # type: ignore[union-attr]
    small = msgspec.structs.replace(
        spec,
        policies=[part for part in spec.policies if part.label in ("KMP", "KMP, window")],
        sweep={"scenario": ["constant", "brown-out"]},
        claims=wanted,
    )
    known = expected(small)
    found = verdicts(small, tmp_path)
    assert len(found) == 2
    assert found == {key: known[key] for key in found}


def test_recovery_by_hand() -> None:
    assert choices_until([True] * 300) == 200
    assert choices_until([False] * 50 + [True] * 300) == 50 + 190
    assert choices_until([True, False] * 500) == float("inf")


def test_recovery_after_a_restart_does_not_grow_with_what_was_learned() -> None:
    """The best arm falls by 2: all seeds raise an alarm, however long the arm was good before."""
    short, long = (
        recoveries("restart", learned, "outage", seeds=3, played=4000) for learned in (1000, 10_000)
    )
    assert max(long) <= 2 * min(short)
    assert min(recoveries(None, 10_000, "outage", seeds=3, played=4000)) > 2 * max(long)
