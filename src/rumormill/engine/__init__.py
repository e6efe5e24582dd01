"""The engines: `reference` reads, `fast` runs; `simulate` picks."""

from rumormill.engine.result import Result, Trial
from rumormill.engine.seeds import RandomSource, Role, root_seed, stream_seed
from rumormill.engine.simulate import simulate

__all__ = ["RandomSource", "Result", "Role", "Trial", "root_seed", "simulate", "stream_seed"]
