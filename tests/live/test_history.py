"""The history of a node: points at equal distances, bounded, by game, also when games change."""

from __future__ import annotations

from rumormill.live.io.history import GamePoint, History


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
    assert found["new"]["hour"] == {"time": [], "chosen": [], "regret": [], "samples": [[], [], [], []]}
