"""Runs with chosen numbers, for everything that reads a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.run.manifest import Machine, Manifest, fingerprint, of_spec
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import decode, encode

QUANTILES = ("agent_min", "agent_q10", "agent_q25", "agent_q50", "agent_q75", "agent_q90", "agent_max")
Key = str | tuple[Any, ...]


def made_up_run(spec: dict[str, Any], regret: dict[Key, float], *, noise: float = 0.05) -> RunFolder:
    """A run with these mean regrets: {policy: value}, or {(policy, value on every axis): value}."""
    ready = decode(spec)
    trials, horizon = ready.size.trials, ready.size.horizon
    chance = np.random.default_rng(ready.seed)
    hardness = chance.lognormal(sigma=1.0, size=trials)  # some trials are harder, for everybody
    rows = []
    for key, mean in regret.items():
        policy, *values = key if isinstance(key, tuple) else (key,)
        own = mean * hardness * (1 + noise * chance.standard_normal(trials))
        for trial in range(trials):
            for t, share in ((horizon // 2, 0.5), (horizon, 1.0)):
                agents = [share * own[trial] * size for size in (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.9)]
                rows.append((policy, *values, trial, t, share * own[trial], *agents, t * 10, t * 250))
    columns = ["policy", *ready.sweep, "trial", "t", "regret", *QUANTILES, "messages", "wire_bytes"]
    manifest = Manifest(
        **of_spec(ready),
        spec=encode(ready),
        spec_sha256=fingerprint(ready),
        versions={"rumormill": "0"},
        machine=Machine(cores=1, system="made up"),
        status="done",
    )
    run = RunFolder(Path("made-up"), manifest)
    # Fills the cache of the property: nothing is read.
    object.__setattr__(run, "frame", pl.DataFrame(rows, schema=columns, orient="row"))
    return run


def made_up(spec: dict[str, Any], regret: dict[Key, float], *, noise: float = 0.05) -> Summary:
    """The summary of such a run."""
    return summarise(made_up_run(spec, regret, noise=noise))
