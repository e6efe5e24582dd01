"""Request classes: games made on demand from a template, `TEMPLATE/CLASS`, with a prior from all of them.

The name says which game it is: nodes agree on a class without a centre. A class is made when it is used, or
when a neighbour reports it and there is room; if it is used and there is none, the least recently used
one is forgotten. docs/live.md, "Request classes".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from rumormill.live.core.game import LiveGame
from rumormill.live.core.node_config import GameConfig
from rumormill.live.core.records import Born
from rumormill.policies import Prior
from rumormill.stats import winsorised

LABEL = re.compile(r"[A-Za-z0-9._:+-]{1,64}")
"""Names of classes."""
# Names of classes that a node remembers, with those it has forgotten: their numbers are not used again.
MOST_NAMES = 10_000
# The newest items of each stream that a prior is made of, and the samples that it counts as at most.
POOLED, WEIGHT = 200, 10


def template_of(name: str, games: Mapping[str, GameConfig]) -> GameConfig | None:
    """The template of a class by its name; None if it is no class."""
    template, _, label = name.rpartition("/")
    found = games.get(template)
    return found if found is not None and found.classes and LABEL.fullmatch(label) else None


def pooled_prior(name: str, n_arms: int, games: Iterable[LiveGame]) -> Born:
    """What the newest samples of all games of a template say, as the record of a new class."""
    pooled: list[list[float]] = [[] for _ in range(n_arms)]
    for game in games:
        for stream in game.streams.values():
            for _, arm, reward in stream.retained.newest(POOLED):
                if game.is_sample(arm, reward):
                    pooled[arm].append(reward)
    values = [winsorised(np.array(each)) for each in pooled]
    return Born(
        name,
        [float(each.mean()) if len(each) else 0.0 for each in values],
        [min(len(each), WEIGHT) if len(each) > 1 else 0 for each in values],
        [float(each.std(ddof=1)) if len(each) > 1 else 0.0 for each in values],
    )


def prior_from(born: Born) -> Prior | None:
    """The prior that a class begins with; None if nothing was known."""
    if not any(born.n):
        return None
    return Prior(mean=born.mean, n=born.n, spread=born.spread)
