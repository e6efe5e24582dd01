"""The engines: `reference` reads, `compiled` runs; `simulate` picks."""

from rumormill.engine.result import Result, Trial
from rumormill.engine.simulate import simulate
from rumormill.engine.trial import Contender, play_trial, prepare

__all__ = ["Contender", "Result", "Trial", "play_trial", "prepare", "simulate"]
