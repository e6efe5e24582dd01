"""Things of the catalogue from words on the command line; own modules are looked for in this folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.cli.words import network_part, part_of_spec, split

if TYPE_CHECKING:
    from rumormill.arms import Arm
    from rumormill.estimators import Estimator
    from rumormill.graphs import Network


def made_network(words: Sequence[str], seed: int) -> Network:
    """The network that the first trial of a spec with this part and seed would play on."""
    import numpy as np

    from rumormill.seeds import Role, root_seed, stream_seed

    # Here there is one network: whether every trial has its own does not matter.
    part = {key: value for key, value in network_part(words).items() if key != "fresh"}
    rng = np.random.default_rng(stream_seed(root_seed(seed), 0, Role.NETWORK))
    network: Network = _made("network", part, "network").build(rng)
    return network


def made_law(text: str, mean: float) -> Arm:
    """The law, moved to the mean."""
    law: Arm = _made("law", part_of_spec(split(text), "law"), "arms")
    return law.at_mean(mean)


def made_estimator(text: str) -> Estimator:
    """A robust mean by its name."""
    words = split(text)
    part = part_of_spec(words, "type")
    estimator: Estimator = _made("estimator", part if len(words) > 1 else words[0], "estimator")
    return estimator


def _made(kind: str, given: Any, where: str) -> Any:
    from rumormill import catalogue

    return catalogue.make(kind, given, where=where, folder=Path.cwd())
