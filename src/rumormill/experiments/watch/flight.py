"""Where bundles are between two agents, for films; the page has the same in watch.js."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.engine.record import Bundle, Record

State = Literal["on time", "late", "lost"]
HALF = 0.5


@dataclass(frozen=True)
class Seen:
    """A bundle in a moment of a round."""

    bundle: Bundle
    along: float
    """How far it is, from 0 to 1."""
    state: State


def by_round(record: Record) -> dict[int, list[Bundle]]:
    """All bundles to be seen in every round: those sent then, and those still under way."""
    found: dict[int, list[Bundle]] = defaultdict(list)
    for bundle in record.bundles:
        for t in range(bundle.sent, min(bundle.arrived or bundle.sent, record.rounds) + 1):
            found[t].append(bundle)
    return found


def seen_at(bundle: Bundle, t: int, part: float) -> Seen:
    """How far a bundle is when so much of round t has passed."""
    if bundle.fate == "down":
        return Seen(bundle, 0.15, "lost")
    rounds = 1 if bundle.arrived is None else bundle.arrived - bundle.sent + 1
    along = (t - bundle.sent + part) / rounds
    if bundle.fate == "lost":
        return Seen(bundle, min(along, HALF), "lost" if along >= HALF else "on time")
    if bundle.fate == "away" and bundle.arrived == t and part >= HALF:
        return Seen(bundle, along, "lost")
    return Seen(bundle, along, "late" if rounds > 1 else "on time")


def spots(seen: list[Seen], places: NDArray[np.float64], margin: float, side: float) -> NDArray[np.float64]:
    """(bundles, 2): where they are; each direction of a link keeps to its own side.

    `margin` is the radius of an agent, `side` the distance from the middle of the link.
    """
    if not seen:
        return np.empty((0, 2))
    start = places[[each.bundle.sender for each in seen]]
    way = places[[each.bundle.receiver for each in seen]] - start
    far = np.maximum(np.hypot(*way.T), 1e-9)[:, None]
    skip = np.minimum(0.45, margin / far)
    along = skip + np.array([each.along for each in seen])[:, None] * (1 - 2 * skip)
    spot: NDArray[np.float64] = start + along * way + side * np.column_stack([way[:, 1], -way[:, 0]]) / far
    return spot
