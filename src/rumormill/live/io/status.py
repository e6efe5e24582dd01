"""The status of a node: as plain data for programs and the dashboard, as metrics for Prometheus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from rumormill.live.core.game import LiveGame
from rumormill.live.core.node import Node
from rumormill.live.core.streams import Stream
from rumormill.live.io.journal import Journal
from rumormill.live.io.transport import Transport
from rumormill.mesh.file import Mesh

# The last observations of a node from which its preferred arm is computed.
RECENT = 50


class RunningNode(Protocol):
    """The parts of a node's process that its status is read from."""

    name: str
    epoch: int
    started: float
    mesh: Mesh
    node: Node
    journal: Journal
    transport: Transport
    clock: Callable[[], float]

    @property
    def ready(self) -> bool:
        """Whether decisions can be made now."""

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
        "ready": runtime.ready,
        "trouble": runtime.journal.fault,  # plain-words: allow
        "uptime": round(runtime.clock() - runtime.started, 1),
        "bytes_in": runtime.transport.bytes_in,
        "bytes_out": runtime.transport.bytes_out,
        "backlog": runtime.journal.backlog,
        "violations": dict(node.violations),
        "links": links(runtime),
        "nodes": {name: mesh.links[name] for name in mesh.ids},
        "games": {name: game_status(runtime, game) for name, game in node.games.items()},
    }


def links(runtime: RunningNode) -> list[dict[str, Any]]:
    """One row per neighbour, linked or not."""
    node, names = runtime.node, runtime.mesh.names
    up = {link.peer: link for link in node.links.values()}
    rows = []
    for peer in sorted(node.config.neighbours):
        link = up.get(peer)
        heard = None if link is None else round(node.now - link.last_frame, 1)
        rows.append(
            {
                "node": names.get(peer, str(peer)),
                "up": link is not None and link.epoch is not None,
                "heard": heard,
            }
        )
    return rows


def game_status(runtime: RunningNode, game: LiveGame) -> dict[str, Any]:
    """One game: its arms in the units of the objective, its streams, their lag."""
    part = runtime.mesh.games[game.config.name]
    sign = -1.0 if part.objective == "minimise" else 1.0
    arms = arm_rows(game, part.arms, sign)
    best = max((row["mean"] * sign for row in arms if row["mean"] is not None), default=None)
    regret = sum(
        row["samples"] * (best - row["mean"] * sign)
        for row in arms
        if best is not None and row["mean"] is not None
    )
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
        "regret": regret,
        "arms": arms,
        "streams": stream_rows(runtime, game, part.arms),
    }


def arm_rows(game: LiveGame, names: list[str], sign: float) -> list[dict[str, Any]]:
    """Mean, samples and index of every arm, as of the last decision."""
    samples = getattr(game.adapter.agent, "samples", None)
    latest = getattr(samples, "latest", ()) or ((math.inf, 0.0),) * len(names)
    t = max(game.decisions.next_t - 1, 2)
    rows = []
    for k, name in enumerate(names):
        mean, n = latest[k]
        index = None
        if samples is not None and samples.radius is not None and n > 0 and math.isfinite(mean):
            index = samples.radius.index(mean, n, samples.L(t))
        rows.append(
            {
                "arm": name,
                "samples": game.adapter.samples[k],
                "pending": game.decisions.pending[k],
                "mean": mean * sign if math.isfinite(mean) else None,
                "index": index * sign if index is not None and math.isfinite(index) else None,
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
    count = min(RECENT, stream.upto - stream.retained.floor)
    taken = Counter(arm for _, arm, _ in reversed(stream.retained.between(stream.upto - count + 1, count)))
    return next((arms[arm] for arm, _ in taken.most_common() if arm < len(arms)), None)


def lag(runtime: RunningNode, game: LiveGame, key: tuple[int, int]) -> int:
    """The number of items of a stream that a neighbour has and this node has not."""
    most = 0
    for link in runtime.node.links.values():
        shared = link.games.get(game.config.name)
        if shared is not None:
            most = max(most, shared.claims.get(key, 0))
    return max(0, most - game.streams[key].upto)


def metrics(runtime: RunningNode) -> str:
    """The status in the text format of Prometheus."""
    node, journal, transport = runtime.node, runtime.journal, runtime.transport
    lines: list[str] = []

    def add(name: str, kind: str, rows: list[tuple[str, float]]) -> None:
        lines.append(f"# TYPE rumormill_{name} {kind}")
        lines.extend(f"rumormill_{name}{labels} {value:g}" for labels, value in rows)

    games = list(node.games.values())
    named = [(game, f'{{game="{_escaped(game.config.name)}"}}') for game in games]
    add("choices_total", "counter", [(label, game.chosen) for game, label in named])
    add("observations_total", "counter", [(label, game.observed) for game, label in named])
    add("late_total", "counter", [(label, game.late) for game, label in named])
    add("open", "gauge", [(label, len(game.decisions.open)) for game, label in named])
    add("void_total", "counter", [(label, game.void) for game, label in named])
    samples, means, behind = [], [], []
    for game in games:
        facts = game_status(runtime, game)
        for row in facts["arms"]:
            label = f'{{game="{_escaped(game.config.name)}",arm="{_escaped(row["arm"])}"}}'
            samples.append((label, float(row["samples"])))
            if row["mean"] is not None:
                means.append((label, row["mean"]))
        for row in facts["streams"]:
            origin = f'origin="{_escaped(row["node"])}",epoch="{row["epoch"]}"'
            label = f'{{game="{_escaped(game.config.name)}",{origin}}}'
            behind.append((label, float(row["lag"])))
    add("samples", "gauge", samples)
    add("mean", "gauge", means)
    add("stream_lag", "gauge", behind)
    add("links", "gauge", [("", sum(link.epoch is not None for link in node.links.values()))])
    add("ready", "gauge", [("", float(runtime.ready))])
    add("backlog", "gauge", [("", journal.backlog)])
    add("violations_total", "counter", [(f'{{kind="{k}"}}', n) for k, n in sorted(node.violations.items())])
    add("commit_seconds_sum", "counter", [("", journal.commit_seconds)])
    add("commit_seconds_count", "counter", [("", journal.commits)])
    sent = [('{direction="in"}', transport.bytes_in), ('{direction="out"}', transport.bytes_out)]
    add("bytes_total", "counter", [(label, float(n)) for label, n in sent])
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A label value with quotes, backslashes and line ends escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
