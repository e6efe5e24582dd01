"""The engines: `reference` reads, `fast` runs; `simulate` picks."""

from rumormill.engine.result import Result, Trial
from rumormill.engine.seeds import RandomSource, Role, root_seed, stream_seed
from rumormill.engine.simulate import simulate
from rumormill.engine.trial import Contender, play_trial, prepare

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
