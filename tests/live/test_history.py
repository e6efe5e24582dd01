"""The history of a node: points at equal distances, bounded, by game, also when games change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.live.io.status import ChooseTimes, GamePoint, History, p50_and_p99


def point(n: int, arms: int = 2) -> GamePoint:
    return GamePoint(chosen=n, regret=n / 2, samples=(n,) * arms)


def test_points_of_an_hour_by_seconds_and_of_a_day_by_minutes() -> None:
    history = History()
    for tick in range(8_000):  # four points a second are offered
        now = 1_000.0 + tick / 4
        if history.due(now):
            history.add(now, {"g": point(tick)})
    found = history.columns({"g": 2})["g"]
    assert found["hour"]["time"] == [1_000.0 + second for second in range(2_000)]
    assert found["hour"]["chosen"][:3] == [0, 4, 8]
    assert found["day"]["time"] == [1_000.0 + 60 * minute for minute in range(34)]
    assert found["day"]["samples"][1][:2] == [0, 240]


def test_the_oldest_points_leave() -> None:
    history = History()
    for second in range(4_000):
        history.add(float(second), {"g": point(second)})
    hour = history.columns({"g": 2})["g"]["hour"]
    assert (len(hour["time"]), hour["time"][0], hour["time"][-1]) == (3_600, 400.0, 3_999.0)


def test_games_come_go_and_change_their_arms() -> None:
    history = History()
    history.add(0.0, {"g": point(1, arms=3)})
    history.add(1.0, {"g": point(2, arms=2)})
    history.add(2.0, {})
    history.add(3.0, {"g": point(3, arms=2), "h": point(1, arms=1)})
    found = history.columns({"g": 2, "h": 1, "new": 4})
    assert found["g"]["hour"]["time"] == [1.0, 3.0]
    assert found["h"]["hour"]["samples"] == [[1]]
    assert found["new"]["hour"] == {
        "time": [],
        "chosen": [],
        "regret": [],
        "samples": [[], [], [], []],
        "p50_ms": [],
        "p99_ms": [],
    }


def test_times_of_choose_between_two_points() -> None:
    """Of every second its own requests; a second without any has no quantiles; a minute has all of them."""
    history = History()
    history.add(0.0, {"g": point(0)})
    for _ in range(99):
        history.times.add(0.001, 1)
    history.times.add(0.5, 1)
    history.add(1.0, {"g": point(1)})
    history.add(2.0, {"g": point(1)})
    history.times.add(0.5, 3)
    history.add(60.0, {"g": point(2)})
    hour, day = (history.columns({"g": 2})["g"][span] for span in ("hour", "day"))
    assert hour["p50_ms"][0] is hour["p50_ms"][2] is hour["p99_ms"][2] is None
    assert [hour["p50_ms"][1], hour["p99_ms"][1]] == [pytest.approx(1.0, rel=0.05)] * 2, "99 of 100"
    assert [hour["p50_ms"][3], hour["p99_ms"][3]] == [pytest.approx(500, rel=0.05)] * 2
    assert day["time"] == [0.0, 60.0]
    assert day["p50_ms"][1] == pytest.approx(1.0, rel=0.05)
    assert day["p99_ms"][1] == pytest.approx(500, rel=0.05), "99 of 101 are not 99 %"


def test_the_last_minute() -> None:
    """What is older than a minute is in the counts since the start, not in the numbers of now."""
    history = History()
    assert history.recent(5.0) == {"seconds": 0.0, "per_second": 0.0, "p50_ms": None, "p99_ms": None}
    history.times.add(2.0, 1)
    history.add(0.0, {})
    assert history.recent(0.0) == {"seconds": 0.0, "per_second": 1.0, "p50_ms": 2010.0, "p99_ms": 2010.0}
    for second in range(1, 101):
        for _ in range(5):
            history.times.add(0.0002, 2)
        history.add(float(second), {})
    found = history.recent(100.5)
    assert (found["seconds"], found["per_second"]) == (60.5, round(600 / 60.5, 2))
    assert found["p99_ms"] == pytest.approx(0.2, rel=0.05)
    assert (history.times.choices, sum(history.times.bins)) == (1001, 501)


@given(seconds=st.lists(st.floats(1e-6, 20.0), min_size=1, max_size=300))
@settings(max_examples=30, deadline=None)
def test_quantiles_are_right_to_five_per_cent(seconds: list[float]) -> None:
    """Median and 99th percentile are the order statistics at ⌈np⌉, whatever the times are."""
    times = ChooseTimes()
    for each in seconds:
        times.add(each, 1)
    ranked = sorted(seconds)
    for found, share in zip(p50_and_p99(times.bins, [0] * len(times.bins)), (50, 99), strict=True):
        wanted = ranked[-(-share * len(ranked) // 100) - 1]
        assert found == pytest.approx(1e3 * wanted, rel=0.05)
