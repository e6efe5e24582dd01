"""Thousands of hostile schedules: every invariant holds in each, and no seeded bug stays unnoticed."""

from __future__ import annotations

import pytest

from live import simulation
from live.mutants import MUTANTS

SCHEDULES = 200
STEPS = 250
# Of as many schedules, at least one has to notice a bug.
ENOUGH = 150


@pytest.mark.parametrize("part", range(4))
def test_invariants(part: int) -> None:
    for seed in range(part * SCHEDULES // 4, (part + 1) * SCHEDULES // 4):
        simulation.run(seed, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_invariants_in_ten_thousand_schedules(part: int) -> None:
    for seed in range(10_000 + part * 500, 10_000 + (part + 1) * 500):
        simulation.run(seed, 100 + seed % 7 * 100)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, method, wrong = MUTANTS[name]
    monkeypatch.setattr(cls, method, wrong)
    for seed in range(ENOUGH):
        try:
            simulation.run(seed, STEPS)
        except Exception:  # an invariant that does not hold, or a node that stumbles over its own state
            return
    pytest.fail(f"{name}: {ENOUGH} schedules noticed nothing")


def test_a_schedule_is_its_seed() -> None:
    worlds = [simulation.World(5, 150) for _ in range(2)]
    for world in worlds:
        world.run()
    logs = [[host.disk.log for host in world.hosts] for world in worlds]
    assert logs[0] == logs[1]
