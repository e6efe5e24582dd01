"""Looking at running nodes from a terminal: one row for each that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rumormill.live.client import Client, NodeError

PATIENCE = 5.0


def look(urls: Sequence[str], token: str | None = None) -> list[dict[str, Any] | NodeError]:
    """What every node says of itself, or why it does not."""
    with ThreadPoolExecutor(min(len(urls), 32)) as asking:
        return list(asking.map(lambda url: _ask(url, token), urls))


def _ask(url: str, token: str | None) -> dict[str, Any] | NodeError:
    try:
        with Client(url, token=token, timeout=PATIENCE, attempts=1) as client:
            return client.status()
    except NodeError as error:
        return error


def row(url: str, found: dict[str, Any] | NodeError) -> dict[str, Any]:
    """One node in a line; all its games together."""
    if isinstance(found, NodeError):
        state = f"answers {found.status}" if found.status else "does not answer"
        return {"node": url, "state": state} | dict.fromkeys(
            ("links", "rewards", "prefers", "behind", "refused"), "–"
        )
    games = list(found["games"].values())
    prefers = [
        each["prefers"]
        for game in games
        for each in game["streams"]
        if (each["node"], each["epoch"]) == (found["node"], found["epoch"]) and each["prefers"]
    ]
    return {
        "node": found["node"],
        "state": "ready" if found["ready"] else found["trouble"] or "not ready",
        "links": f"{sum(link['up'] for link in found['links'])} of {len(found['links'])}",
        "rewards": sum(game["observed"] for game in games),
        "prefers": ", ".join(prefers) or "–",
        "behind": sum(each["lag"] for game in games for each in game["streams"]),
        "refused": sum(found["violations"].values()),
    }


def others(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What one node knows of everybody: a row per game and stream."""
    return [
        {
            "game": name,
            "of": each["node"],
            "items": each["upto"],
            "behind": each["lag"],
            "prefers": each["prefers"] or "–",
        }
        for name, game in found["games"].items()
        for each in game["streams"]
    ]
