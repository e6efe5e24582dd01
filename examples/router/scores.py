"""What a routing rule cost, from what the gateways and the fleet wrote down."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleet import FLEET, TIMEOUT

Row = dict[str, Any]
NEXT = 20
"""Requests of a gateway over which a share is taken."""


@dataclass(frozen=True)
class Truth:
    """The laws of the fleet, and when the brown-out was."""

    seed: int
    scale: float
    brown_out: tuple[float, float]

    def means(self, brown: bool) -> dict[str, float]:
        """The mean time to the first token of every provider, in seconds."""
        return {each.name: self.scale * each.mean(brown) for each in FLEET}

    def best_draw(self, name: str, key: str, brown: bool) -> float:
        """The time that the first attempt of a request takes at a provider."""
        (provider,) = [each for each in FLEET if each.name == name]
        rng = random.Random(f"{self.seed}/{name}/{key}/1")
        return self.scale * min(provider.draw(rng, brown), TIMEOUT)


def score(rule: str, rows: Sequence[Row], log: Sequence[Row], truth: Truth) -> Row:
    """One row of the table, from the rows of the gateways (key, first) and the log of the fleet."""
    means = {brown: truth.means(brown) for brown in (False, True)}
    best = {brown: min(means[brown], key=means[brown].__getitem__) for brown in means}
    attempts: dict[str, list[Row]] = defaultdict(list)
    for row in log:
        attempts[row["key"]].append(row)
    known, seen, took, dollars, lost = [], [], [], 0.0, 0
    price = {each.name: each.dollars for each in FLEET}
    for row in rows:
        tries = attempts.get(row["key"])
        if not tries:
            lost += 1
            continue
        brown = truth.brown_out[0] <= tries[0]["at"] < truth.brown_out[1]
        known.append(means[brown][tries[0]["provider"]] - means[brown][best[brown]])
        first = row["first"] if row["first"] is not None else truth.scale * TIMEOUT
        took.append(first)
        seen.append(first - truth.best_draw(best[brown], row["key"], brown))
        dollars += sum(price[each["provider"]] for each in tries if each["status"] == 200)
    took.sort()
    away, back = recovery([each[0] for each in attempts.values()], truth, best)
    return {
        "rule": rule,
        "requests": len(rows),
        "excess": 1000 * sum(known) / max(1, len(known)),
        "measured": 1000 * sum(seen) / max(1, len(seen)),
        "p50": 1000 * took[len(took) // 2],
        "p95": 1000 * took[int(0.95 * len(took))],
        "failed": sum(row["first"] is None for row in rows),
        "lost": lost,
        "retries": sum(len(each) - 1 for each in attempts.values()),
        "dollars": 1000 * dollars / max(1, len(rows)),
        "leaves": away,
        "returns": back,
    }


def recovery(firsts: Sequence[Row], truth: Truth, best: dict[bool, str]) -> tuple[int | None, int | None]:
    """Requests of the slowest gateway until it leaves the provider in its brown-out, and until it comes back.

    It has left when at most 4 of its next 20 requests go there, it is back when at least 14 do. None: never.
    """
    away, back = [], []
    gateways = sorted({row["key"].partition("/")[0] for row in firsts})
    for gateway in gateways:
        own = sorted((row["at"], row["provider"]) for row in firsts if row["key"].startswith(f"{gateway}/"))
        first, last = truth.brown_out
        during = [provider == best[False] for at, provider in own if first <= at < last]
        after = [provider == best[False] for at, provider in own if at >= last]
        away.append(next((i for i in range(len(during) - NEXT) if sum(during[i : i + NEXT]) <= 4), None))
        back.append(next((i for i in range(len(after) - NEXT) if sum(after[i : i + NEXT]) >= 14), None))

    def worst(found: list[int | None]) -> int | None:
        return None if None in found or not found else max(each for each in found if each is not None)

    return worst(away), worst(back)


def table(found: Sequence[Row]) -> str:
    """All rules, best first."""
    lines = [
        "rule            excess ms  measured   median     95 %  failed  retries  $/1000  leaves  returns",
        "-" * 94,
    ]
    for row in sorted(found, key=lambda row: row["excess"]):
        leaves, returns = ("never" if row[key] is None else str(row[key]) for key in ("leaves", "returns"))
        lines.append(
            f"{row['rule']:<15} {row['excess']:9.0f} {row['measured']:9.0f} {row['p50']:8.0f} "
            f"{row['p95']:8.0f} {row['failed']:7d} {row['retries']:8d} {row['dollars']:7.3f} "
            f"{leaves:>7} {returns:>8}"
        )
    return "\n".join(lines)
