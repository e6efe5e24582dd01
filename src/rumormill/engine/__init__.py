"""Two engines with equal results: `reference` to read, `compiled` to run; `simulate` selects one."""

from rumormill.engine.comparison import Comparison, compare
from rumormill.engine.episode import Episode, Step
from rumormill.engine.result import Result, Trial, load_result
from rumormill.engine.simulate import simulate
from rumormill.engine.trial import Contender, play_trial, prepare

__all__ = [
    "Comparison",
    "Contender",
    "Episode",
    "Result",
    "Step",
    "Trial",
    "compare",
    "load_result",
    "play_trial",
    "prepare",
    "simulate",
]
