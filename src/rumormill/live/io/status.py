"""The status of a node: plain data for programs and the dashboard, metrics for Prometheus, log lines.

The history says what a node did in the last hour, by seconds, and in the last day, by minutes. It is bounded,
and kept in memory only: after a restart it begins anew.
"""

from __future__ import annotations

import json
import logging
import math
import platform
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rumormill.arms.base import sign_of
from rumormill.live.core.game import LiveGame
from rumormill.live.core.node import Node
from rumormill.live.core.streams import Stream
from rumormill.live.core.verdicts import CONFIDENCE
from rumormill.live.io.journal import Journal
from rumormill.live.io.transport import Transport
from rumormill.mesh.file import GamePart, Mesh
from rumormill.text import VERSION

LAST_HOUR, LAST_DAY = (1.0, 3_600), (60.0, 1_440)
"""(seconds between two points, number of points)."""
# Times of choose are counted in bins of an eighth of an octave from 1 µs on: a quantile is right to 5 %.
PER_OCTAVE, N_BINS = 8, 200
Quantiles = tuple[float | None, float | None]
# Seconds that the numbers of the status are computed from.
RECENT_SECONDS = 60


class ChooseTimes:
    """How long choose took, and how many choices it made: counts since the start."""

    def __init__(self) -> None:
        self.bins = [0] * N_BINS
        self.choices, self.seconds = 0, 0.0

    def add(self, seconds: float, choices: int) -> None:
        """One request that was answered with so many choices."""
        self.bins[min(int(PER_OCTAVE * math.log2(max(seconds * 1e6, 1.0))), N_BINS - 1)] += 1
        self.choices += choices
        self.seconds += seconds


def p50_and_p99(bins: list[int], before: list[int]) -> Quantiles:
    """Median and 99th percentile in ms of the requests since `before`; None if there were none."""
    new = [now - then for now, then in zip(bins, before, strict=True)]
    found: list[float | None] = []
    for share in (0.5, 0.99):
        rank, seen = share * sum(new), 0
        place = next((at for at, n in enumerate(new) if (seen := seen + n) >= rank > 0), None)
        found.append(None if place is None else float(f"{2 ** ((place + 0.5) / PER_OCTAVE) / 1e3:.3g}"))
    return found[0], found[1]


@dataclass(frozen=True)
class GamePoint:
    """One game at one moment."""

    chosen: int
    regret: float
    samples: tuple[int, ...]


class PointRing:
    """Points at equal distances in time; the oldest leave."""

    def __init__(self, every: float, most: int) -> None:
        self._every = every
        self._points: deque[tuple[float, dict[str, GamePoint], Quantiles]] = deque(maxlen=most)
        self._bins = [0] * N_BINS

    def due(self, now: float) -> bool:
        """Whether the next point is due."""
        return not self._points or now - self._points[-1][0] >= self._every

    def add(self, now: float, games: dict[str, GamePoint], bins: list[int]) -> None:
        """Add a point; `bins` are the times of choose since the start."""
        self._points.append((now, games, p50_and_p99(bins, self._bins)))
        self._bins = bins

    def columns(self, game: str, n_arms: int) -> dict[str, Any]:
        """The points of one game, column by column; those of an earlier game with other arms are left out.

        Beside them p50 and p99 of choose, of all games, between each point and the one before.
        """
        found = [
            (when, point, times)
            for when, games, times in self._points
            if (point := games.get(game)) is not None and len(point.samples) == n_arms
        ]
        return {
            "time": [round(when, 1) for when, _, _ in found],
            "chosen": [point.chosen for _, point, _ in found],
            "regret": [round(point.regret, 6) for _, point, _ in found],
            "samples": [[point.samples[arm] for _, point, _ in found] for arm in range(n_arms)],
            **{name: [times[at] for _, _, times in found] for at, name in enumerate(("p50_ms", "p99_ms"))},
        }


class History:
    """The rings of all games of a node, and the times of choose."""

    def __init__(self) -> None:
        self._hour, self._day = PointRing(*LAST_HOUR), PointRing(*LAST_DAY)
        self.times = ChooseTimes()
        self._recent: deque[tuple[float, list[int], int]] = deque(maxlen=RECENT_SECONDS + 1)

    def due(self, now: float) -> bool:
        """Whether the next point is due."""
        return self._hour.due(now)

    def add(self, now: float, games: dict[str, GamePoint]) -> None:
        """Add a point to every ring in which it is due."""
        bins = list(self.times.bins)
        if not self._recent:  # what was before the first point counts too
            self._recent.append((now, [0] * N_BINS, 0))
        self._recent.append((now, bins, self.times.choices))
        for ring in (self._hour, self._day):
            if ring.due(now):
                ring.add(now, games, bins)

    def recent(self, now: float) -> dict[str, Any]:
        """Choices per second, and p50 and p99 of choose in ms, over the last minute or since the start."""
        when, bins, choices = self._recent[0] if self._recent else (now, self.times.bins, 0)
        p50, p99 = p50_and_p99(self.times.bins, bins)
        rate = (self.times.choices - choices) / max(now - when, 1.0)
        return {"seconds": round(now - when, 1), "per_second": round(rate, 2), "p50_ms": p50, "p99_ms": p99}

    def columns(self, arms: dict[str, int]) -> dict[str, Any]:
        """All games: their last hour and their last day; `arms` has the number of arms of each."""
        return {
            game: {"hour": self._hour.columns(game, n), "day": self._day.columns(game, n)}
            for game, n in arms.items()
        }


# The last observations of a node from which its preferred arm is computed.
RECENT = 50
# Certificates that expire within so many seconds are warned of.
WARN_AHEAD, DAY = 30 * 86_400.0, 86_400.0
# Records that wait for the disk: more are an alarm.
LONG_BACKLOG = 5_000


class RunningNode(Protocol):
    """The parts of a node's process that its status is read from."""

    name: str
    started: float
    mesh: Mesh
    node: Node
    journal: Journal
    transport: Transport
    history: History
    clock: Callable[[], float]

    @property
    def epoch(self) -> int:
        """The epoch of the own streams."""

    @property
    def not_ready(self) -> str | None:
        """Why no decisions can be made now; None if they can."""

    @property
    def tick_age(self) -> float:
        """Seconds since the last tick."""

    @property
    def not_alive(self) -> str | None:
        """Why the process should be started again; None while it is alive."""


def status(runtime: RunningNode) -> dict[str, Any]:
    """The whole status, as plain data."""
    node, mesh = runtime.node, runtime.mesh
    return {
        "mesh": mesh.file.name,
        "revision": mesh.file.revision,
        "node": runtime.name,
        "epoch": runtime.epoch,
        "ready": runtime.not_ready is None,
        "trouble": runtime.journal.fault,  # plain-words: allow
        "uptime": round(runtime.clock() - runtime.started, 1),
        "bytes_in": runtime.transport.bytes_in,
        "bytes_out": runtime.transport.bytes_out,
        "backlog": runtime.journal.backlog,
        "violations": dict(node.violations),
        "choose": runtime.history.recent(runtime.clock()),
        "alarms": alarms(runtime),
        "links": links(runtime),
        "nodes": {name: mesh.links[name] for name in mesh.ids},
        "games": {name: game_status(runtime, game) for name, game in node.games.items()},
    }


def alarms(runtime: RunningNode) -> list[str]:
    """What an operator should look at, a sentence each."""
    rows = links(runtime)
    down = [row["node"] for row in rows if not row["up"]]
    found = [] if runtime.not_ready is None else [f"not ready: {runtime.not_ready}"]
    if down:
        found.append(f"no link to {len(down)} of {len(rows)} neighbours: {', '.join(down[:5])}")
    found += [text for _, _, text in expiring(runtime)]
    if runtime.journal.backlog > LONG_BACKLOG:
        found.append(f"{runtime.journal.backlog:,} records wait for the disk")
    for name, game in runtime.node.games.items():
        if game.verdicts.refuted:
            found.append(f"{name}: {verdict_of(runtime, game, part_of(runtime, name).arms)['reason']}")
    return found


def expiring(runtime: RunningNode) -> list[tuple[str, float, str]]:
    """(whose, days, sentence) of the certificates that expire soon."""
    ends = runtime.transport.keys.expires.items()
    days = {whose: (end - runtime.clock()) / DAY for whose, end in ends if end - runtime.clock() < WARN_AHEAD}
    text = "the certificate of the {} expires in {:.1f} days: rumormill mesh rotate"
    return [(whose, left, text.format(whose, left)) for whose, left in days.items()]


def part_of(runtime: RunningNode, name: str) -> GamePart:
    """The part of the mesh file of a game that is played."""
    part = runtime.mesh.part(name)
    assert part is not None
    return part


def links(runtime: RunningNode) -> list[dict[str, Any]]:
    """One row per neighbour, linked or not."""
    node, names = runtime.node, runtime.mesh.names
    found = {link.peer: link for link in node.links.values()}
    return [
        {
            "node": names.get(peer, str(peer)),
            "up": (link := found.get(peer)) is not None and link.epoch is not None,
            "heard": None if link is None else round(node.now - link.last_frame, 1),
        }
        for peer in sorted(node.config.neighbours)
    ]


def game_status(runtime: RunningNode, game: LiveGame) -> dict[str, Any]:
    """One game: its arms in the units of the objective, its streams, their lag."""
    part = part_of(runtime, game.config.name)
    sign = sign_of(part.objective)
    arms = arm_rows(game, part.arms, sign)
    return {
        "objective": part.objective,
        "unit": part.unit,
        "gamma": game.config.gamma,
        "decisions": game.decisions.next_t - 1,
        "chosen": game.chosen,
        "observed": game.observed,
        "late": game.late,
        "open": len(game.decisions.open),
        "void": game.void,
        "regret": regret_of(arms, sign),
        "verdict": verdict_of(runtime, game, part.arms),
        "arms": arms,
        "streams": stream_rows(runtime, game, part.arms),
    }


def regret_of(arms: list[dict[str, Any]], sign: float) -> float:
    """Regret against the best common arm, by the means known now, over all samples."""
    known = [(row["samples"], row["mean"] * sign) for row in arms if row["mean"] is not None]
    best = max((mean for _, mean in known), default=0.0)
    return float(sum(n * (best - mean) for n, mean in known))


def note_history(runtime: RunningNode) -> None:
    """Add a point to the history, if one is due."""
    now = runtime.clock()
    if runtime.history.due(now):
        points = {}
        for name, game in runtime.node.games.items():
            part = part_of(runtime, name)
            sign = sign_of(part.objective)
            regret = regret_of(arm_rows(game, part.arms, sign), sign)
            game.verdicts.proof(now)  # so that it is known when an arm was proven best
            points[name] = GamePoint(game.chosen, regret, tuple(game.adapter.samples))
        runtime.history.add(now, points)


def verdict_of(runtime: RunningNode, game: LiveGame, names: list[str]) -> dict[str, Any]:
    """Which arm is proven best, by how much, since when; why not, where nothing can be proven."""
    proof = game.verdicts.proof(runtime.clock())
    why = None
    if game.verdicts.moments is None:
        why = "the game has no moments in the mesh file"
    elif game.verdicts.refuted:
        refuted = ", ".join(names[arm] for arm in game.verdicts.refuted)
        why = f"samples of {refuted} contradict the moments of the mesh file, or their mean has changed"
    found: dict[str, Any] = dict.fromkeys(("best", "margin", "samples", "proven_at"))
    if proof is not None:
        at = round(proof.at, 3) or None
        found = {"best": names[proof.arm], "margin": proof.margin, "samples": proof.samples, "proven_at": at}
    return {"confidence": CONFIDENCE, **found, "reason": why}


def arm_rows(game: LiveGame, names: list[str], sign: float) -> list[dict[str, Any]]:
    """Mean, samples and index of every arm, as of the last decision."""
    samples = getattr(game.adapter.agent, "samples", None)
    radius = getattr(samples, "radius", None)  # posterior draws have none
    latest = getattr(samples, "latest", ()) or ((math.inf, 0.0),) * len(names)
    t = max(game.decisions.next_t - 1, 2)
    intervals = game.verdicts.intervals or [(-math.inf, math.inf)] * len(names)
    rows = []
    for k, name in enumerate(names):
        mean, n = latest[k]
        index = None
        if samples is not None and radius is not None and n > 0 and math.isfinite(mean):
            index = radius.index(mean, n, samples.L(t))
        low, high = sorted((intervals[k][0] * sign, intervals[k][1] * sign))
        rows.append(
            {
                "arm": name,
                "samples": game.adapter.samples[k],
                "pending": game.decisions.pending[k],
                "mean": mean * sign if math.isfinite(mean) else None,
                "index": index * sign if index is not None and math.isfinite(index) else None,
                "low": low if math.isfinite(low) else None,
                "high": high if math.isfinite(high) else None,
            }
        )
    return rows


def stream_rows(runtime: RunningNode, game: LiveGame, arms: list[str]) -> list[dict[str, Any]]:
    """One row per stream: its last item, its lag, the arm that its origin prefers."""
    return [
        {
            "node": runtime.mesh.names.get(origin, str(origin)),
            "epoch": epoch,
            "upto": stream.upto,
            "lag": lag(runtime, game, (origin, epoch)),
            "prefers": preferred(stream, arms),
        }
        for (origin, epoch), stream in sorted(game.streams.items())
    ]


def preferred(stream: Stream, arms: list[str]) -> str | None:
    """The most frequent arm among the last observations of an origin; ties: the latest."""
    taken = Counter(arm for _, arm, _ in reversed(stream.retained.newest(RECENT)))
    return next((arms[arm] for arm, _ in taken.most_common() if arm < len(arms)), None)


def lag(runtime: RunningNode, game: LiveGame, key: tuple[int, int]) -> int:
    """The number of items of a stream that a neighbour has and this node has not."""
    most = 0
    for link in runtime.node.links.values():
        shared = link.games.get(game.config.name)
        if shared is not None:
            claimed = shared.claims.get(key, 0)
            if shared.floors.get(key, 0) < claimed:  # else the neighbour retains nothing of it
                most = max(most, claimed)
    return max(0, most - game.streams[key].upto)


Rows = list[tuple[str, float]]
"""(suffix of the name and labels, value) of the samples of one metric."""


def metrics(runtime: RunningNode) -> str:
    """The status in the text format of Prometheus."""
    node, journal, transport = runtime.node, runtime.journal, runtime.transport
    lines: list[str] = []

    def add(name: str, kind: str, text: str, rows: Rows) -> None:
        lines.extend((f"# HELP rumormill_{name} {text}", f"# TYPE rumormill_{name} {kind}"))
        lines.extend(f"rumormill_{name}{labels} {_number(value)}" for labels, value in rows)

    for name, kind, text, rows in _game_metrics(runtime):
        add(name, kind, text, rows)
    build = f'{{version="{_escaped(VERSION)}",python="{platform.python_version()}"}}'
    add("build_info", "gauge", "Version of rumormill and of Python.", [(build, 1)])
    linked = links(runtime)
    add("links", "gauge", "Neighbours that are linked.", [("", sum(row["up"] for row in linked))])
    each: Rows = [(f'{{node="{_escaped(row["node"])}"}}', row["up"]) for row in linked]
    add("link_up", "gauge", "1 if a neighbour is linked, else 0.", each)
    expires: Rows = [(f'{{certificate="{name}"}}', when) for name, when in transport.keys.expires.items()]
    text = "When a certificate of this node expires, in seconds since 1970."
    add("certificate_expiry_timestamp_seconds", "gauge", text, expires)
    revision = runtime.mesh.file.revision
    add("mesh_revision", "gauge", "Revision of the mesh file in use.", [("", revision)])
    lag_now = node.records - node.durable
    add("journal_lag", "gauge", "Records of the journal that are not on disk yet.", [("", lag_now)])
    add("neighbours", "gauge", "Neighbours in the mesh file.", [("", len(node.config.neighbours))])
    add("ready", "gauge", "1 if decisions can be made, else 0.", [("", runtime.not_ready is None)])
    alive = not runtime.not_alive
    add("alive", "gauge", "1 if all tasks run and the tick is in time, else 0.", [("", alive)])
    add("tick_age_seconds", "gauge", "Seconds since the last tick.", [("", runtime.tick_age)])
    add("backlog", "gauge", "Records that wait for the disk.", [("", journal.backlog)])
    refused: Rows = [(f'{{kind="{_escaped(k)}"}}', n) for k, n in sorted(node.violations.items())]
    add("violations_total", "counter", "Frames and connections refused, by kind.", refused)
    commits: Rows = [("_sum", journal.commit_seconds), ("_count", journal.commits)]
    add("commit_seconds", "summary", "Seconds of the transactions of the journal.", commits)
    times = runtime.history.times
    upto = [(f"{2**k / 1e6:g}", sum(times.bins[: k * PER_OCTAVE])) for k in range(4, 24)]
    bins: Rows = [(f'_bucket{{le="{edge}"}}', n) for edge, n in [*upto, ("+Inf", sum(times.bins))]]
    bins += [("_sum", times.seconds), ("_count", sum(times.bins))]
    add("choose_seconds", "histogram", "Seconds from a request of choose read to its answer ready.", bins)
    sent: Rows = [('{direction="in"}', transport.bytes_in), ('{direction="out"}', transport.bytes_out)]
    add("bytes_total", "counter", "Bytes exchanged with neighbours.", sent)
    return "\n".join(lines) + "\n"


def _game_metrics(runtime: RunningNode) -> list[tuple[str, str, str, Rows]]:
    """(name, kind, text, samples) of the metrics that every game has."""
    games = list(runtime.node.games.values())
    named = [(game, f'{{game="{_escaped(game.config.name)}"}}') for game in games]
    lists: list[Rows] = [[] for _ in range(6)]
    samples, means, behind, low, high, proven = lists
    for game in games:
        facts = game_status(runtime, game)
        for row in facts["arms"]:
            label = f'{{game="{_escaped(game.config.name)}",arm="{_escaped(row["arm"])}"}}'
            samples.append((label, row["samples"]))
            if row["mean"] is not None:
                means.append((label, row["mean"]))
            low.append((label, -math.inf if row["low"] is None else row["low"]))
            high.append((label, math.inf if row["high"] is None else row["high"]))
            proven.append((label, int(facts["verdict"]["best"] == row["arm"])))
        for row in facts["streams"]:
            origin = f'origin="{_escaped(row["node"])}",epoch="{row["epoch"]}"'
            behind.append((f'{{game="{_escaped(game.config.name)}",{origin}}}', row["lag"]))
    return [
        ("choices_total", "counter", "Decisions made.", [(label, game.chosen) for game, label in named]),
        ("observations_total", "counter", "Rewards accepted.", [(at, game.observed) for game, at in named]),
        ("late_total", "counter", "Rewards accepted late.", [(label, game.late) for game, label in named]),
        ("open", "gauge", "Decisions open.", [(label, len(game.decisions.open)) for game, label in named]),
        ("void_total", "counter", "Items that are no samples.", [(at, game.void) for game, at in named]),
        ("samples", "gauge", "Samples of an arm, own and others'.", samples),
        ("mean", "gauge", "Estimated mean of an arm, in the unit of the rewards.", means),
        ("mean_low", "gauge", "Lower bound of an arm's mean, 95 % at all times for all arms.", low),
        ("mean_high", "gauge", "Upper bound of an arm's mean, 95 % at all times for all arms.", high),
        ("proven_best", "gauge", "1 if an arm is proven to be the best, else 0.", proven),
        ("stream_lag", "gauge", "Items of a stream that a neighbour has and this node has not.", behind),
    ]


def _number(value: float) -> str:
    """A number with all its digits: a counter that is rounded stands still."""
    if isinstance(value, int):
        return str(int(value))
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def _escaped(text: str) -> str:
    """A label value with quotes, backslashes and line ends escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        row = {"time": round(record.created, 3), "level": record.levelname.lower()}
        row |= {"text": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            row["trace"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)
