"""The engines: `reference` reads, `fast` runs; `simulate` picks."""

from rumormill.engine.result import Result, Trial
from rumormill.engine.simulate import simulate
from rumormill.engine.trial import Contender, play_trial, prepare
from rumormill.seeds import RandomSource, Role, root_seed, stream_seed

__all__ = [
    "Contender",
    "RandomSource",
    "Result",
    "Role",
    "Trial",
    "play_trial",
    "prepare",
    "root_seed",
    "simulate",
    "stream_seed",
]
