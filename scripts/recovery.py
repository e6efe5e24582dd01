"""Choices of a mesh after a change until 95 % take the new best arm, by how many it made before.

    python -m scripts.recovery                                # the table of docs/change.md
    python -m scripts.recovery --learned 1000 10000 --seeds 3

Ten agents on a ring play KMP: a choice is one pull of one agent, a round has ten. Two arms, Student t with 3
degrees of freedom, means 1 and 1/2; after the change 0 and 1/2 (brown-out: the best arm falls), -1 and 1/2
(outage: it falls further) or 1 and 2 (other better: one that is hardly pulled rises). Recovered: 190 of the
last 200 choices took the new best arm. Counted are choices after the change, median and maximum over seeds; a
dash stands for more than were played: 20,000, or as many as before the change if that is more. 0 before: a
mesh that knows nothing yet.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import rumormill as rm

AGENTS = 10
LAST, ENOUGH = 200, 190
LEAST_PLAYED = 20_000
MEANS = (1.0, 0.5)
CHANGES = {"brown-out": (0.0, 0.5), "outage": (-1.0, 0.5), "other better": (1.0, 2.0)}
WAYS: dict[str, Any] = {
    "no forgetting": None,
    "window 800": {"window": 800},
    "discount 0.998": {"discount": 0.998},
    "restart": "restart",
}


def bandit(means: Sequence[float]) -> rm.Bandit:
    """Two arms with these means."""
    return rm.Bandit([rm.StudentT(df=3.0, loc=mean) for mean in means])


def recoveries(
    forget: Any, learned: int, change: str, *, seeds: int, played: int | None = None
) -> list[float]:
    """Choices after the change until the mesh has recovered, by seed; infinite if more than `played`."""
    rounds = learned // AGENTS
    after = (played or max(LEAST_PLAYED, learned)) // AGENTS
    policy = rm.KMPUCB(gamma=2, zeta=0.5, forget=forget, moments=rm.Moments(eps=1.0, u=4.0, rho=3.0))
    later = bandit(CHANGES[change])
    source = rm.Piecewise([(1, bandit(MEANS)), (rounds + 1, later)]) if rounds else later
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forgetting runs on the reference engine
        game = rm.simulate(
            source,
            rm.Network.ring(AGENTS),
            policy,
            horizon=rounds + after,
            trials=seeds,
            rng=2021,
            actions=True,
            checkpoints=1,
        )
    assert game.actions is not None
    best = int(np.argmax(CHANGES[change]))
    right = (game.actions[:, rounds:] == best).reshape(seeds, -1)
    return [choices_until(one) for one in right]


def choices_until(right: Any) -> float:
    """The number of the first choice at which enough of the last ones were right."""
    total = np.concatenate([[0], np.cumsum(right)])
    enough = np.flatnonzero(total[LAST:] - total[:-LAST] >= ENOUGH)
    return float(enough[0] + LAST) if len(enough) else np.inf


def cell(found: Sequence[float]) -> str:
    """Median and maximum."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if np.isfinite(value) else "–"

    middle = sorted(found)[(len(found) - 1) // 2]
    return number(middle) if middle == max(found) else f"{number(middle)} ({number(max(found))})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--learned", type=int, nargs="+", default=[0, 1_000, 10_000, 100_000])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    print("| | | " + " | ".join(f"{learned:,}" for learned in given.learned) + " |")
    print("|---" * (len(given.learned) + 2) + "|")
    for change in CHANGES:
        for name, forget in WAYS.items():
            each = [recoveries(forget, learned, change, seeds=given.seeds) for learned in given.learned]
            print(f"| {change} | {name} | " + " | ".join(map(cell, each)) + " |", flush=True)


if __name__ == "__main__":
    main()
