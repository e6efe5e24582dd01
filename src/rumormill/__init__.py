"""Cooperative multi-agent bandits with heavy tails.

Agents on a network play one bandit together, pass messages (what I pulled, what I got) a few hops, and
learn from rewards whose variance may be infinite.

simulate, compare         play one policy, or several on the same rewards
Episode                   one game, step by step
run, read_spec, open_run  experiments from a file, on disk
summarise, load           what a run found
read_log, advise          which policy fits a log or an experiment
evaluate                  what another policy would have paid, from a log with propensities
Client                    decisions of a live node
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing takes longer to import than this module; type checkers read it as true
if TYPE_CHECKING:
    from typing import Any

    from rumormill import catalogue as catalogue
    from rumormill import checks as checks
    from rumormill import recipes as recipes
    from rumormill import theory as theory
    from rumormill.api import advise as advise
    from rumormill.api import evaluate as evaluate
    from rumormill.api import read_log as read_log
    from rumormill.api import read_spec as read_spec
    from rumormill.api import run as run
    from rumormill.api import summarise as summarise
    from rumormill.arms import AlphaStable as AlphaStable
    from rumormill.arms import Arm as Arm
    from rumormill.arms import Bandit as Bandit
    from rumormill.arms import Bernoulli as Bernoulli
    from rumormill.arms import Clusters as Clusters
    from rumormill.arms import Empirical as Empirical
    from rumormill.arms import Gaussian as Gaussian
    from rumormill.arms import LogNormal as LogNormal
    from rumormill.arms import Moments as Moments
    from rumormill.arms import Pareto as Pareto
    from rumormill.arms import Piecewise as Piecewise
    from rumormill.arms import Replay as Replay
    from rumormill.arms import Seasonal as Seasonal
    from rumormill.arms import StudentT as StudentT
    from rumormill.arms import Trend as Trend
    from rumormill.arms import TwoPoint as TwoPoint
    from rumormill.arms import two_point_pair as two_point_pair
    from rumormill.engine.comparison import Comparison as Comparison
    from rumormill.engine.comparison import compare as compare
    from rumormill.engine.episode import Episode as Episode
    from rumormill.engine.episode import Step as Step
    from rumormill.engine.result import Result as Result
    from rumormill.engine.result import load_result as load_result
    from rumormill.engine.simulate import simulate as simulate
    from rumormill.errors import ContractError as ContractError
    from rumormill.errors import DataError as DataError
    from rumormill.errors import InputError as InputError
    from rumormill.errors import RumormillError as RumormillError
    from rumormill.errors import SimplifiedGraphNotice as SimplifiedGraphNotice
    from rumormill.errors import SlowEngineNotice as SlowEngineNotice
    from rumormill.errors import SolverError as SolverError
    from rumormill.estimators import MRUCB as MRUCB
    from rumormill.estimators import BucketMedian as BucketMedian
    from rumormill.estimators import Catoni as Catoni
    from rumormill.estimators import CatoniBound as CatoniBound
    from rumormill.estimators import ClippedMean as ClippedMean
    from rumormill.estimators import ConfidenceSequence as ConfidenceSequence
    from rumormill.estimators import EmpiricalMean as EmpiricalMean
    from rumormill.estimators import Estimator as Estimator
    from rumormill.estimators import HuberSGD as HuberSGD
    from rumormill.estimators import MedianBound as MedianBound
    from rumormill.estimators import MedianOfMeans as MedianOfMeans
    from rumormill.estimators import OnlineMean as OnlineMean
    from rumormill.estimators import RobustMOSS as RobustMOSS
    from rumormill.estimators import SelfTuned as SelfTuned
    from rumormill.estimators import TrimmedMean as TrimmedMean
    from rumormill.experiments.run.store import load as load
    from rumormill.experiments.run.store import open_run as open_run
    from rumormill.graphs import Network as Network
    from rumormill.graphs import Topology as Topology
    from rumormill.live.io.client import Client as Client
    from rumormill.policies import DDUCB as DDUCB
    from rumormill.policies import DPE2 as DPE2
    from rumormill.policies import HTHMUCB as HTHMUCB
    from rumormill.policies import KMPUCB as KMPUCB
    from rumormill.policies import RMMUCB as RMMUCB
    from rumormill.policies import AdaRUCB as AdaRUCB
    from rumormill.policies import Agent as Agent
    from rumormill.policies import AlphaStableTS as AlphaStableTS
    from rumormill.policies import CentralizedMPUCB as CentralizedMPUCB
    from rumormill.policies import ConsensusUCB as ConsensusUCB
    from rumormill.policies import CoopSE as CoopSE
    from rumormill.policies import CoopUCB2 as CoopUCB2
    from rumormill.policies import DecentralizedMPUCB as DecentralizedMPUCB
    from rumormill.policies import DecentralizedTS as DecentralizedTS
    from rumormill.policies import Default as Default
    from rumormill.policies import EpsilonGreedy as EpsilonGreedy
    from rumormill.policies import KLInfUCB as KLInfUCB
    from rumormill.policies import OriginMedianUCB as OriginMedianUCB
    from rumormill.policies import Plan as Plan
    from rumormill.policies import Policy as Policy
    from rumormill.policies import Prior as Prior
    from rumormill.policies import RobustDirichlet as RobustDirichlet
    from rumormill.policies import RobustGossip as RobustGossip
    from rumormill.policies import RobustUCB as RobustUCB
    from rumormill.policies import Seat as Seat
    from rumormill.policies import ThompsonKMP as ThompsonKMP
    from rumormill.policies import recommended as recommended
    from rumormill.protocol import Byzantine as Byzantine
    from rumormill.protocol import Carrier as Carrier
    from rumormill.protocol import Channel as Channel
    from rumormill.protocol import Churn as Churn
    from rumormill.protocol import Corruption as Corruption
    from rumormill.protocol import Imperfect as Imperfect
    from rumormill.protocol import Message as Message
    from rumormill.protocol import PerfectChannel as PerfectChannel
    from rumormill.protocol import Relay as Relay
    from rumormill.protocol import World as World
    from rumormill.text import VERSION

    __version__ = VERSION

# A room is imported when one of its names is first used, so that `import rumormill` costs nothing.
_ROOMS = {
    "api": "advise evaluate read_log read_spec run summarise",
    "arms": (
        "AlphaStable Arm Bandit Bernoulli Clusters Empirical Gaussian LogNormal Moments Pareto Piecewise "
        "Replay Seasonal StudentT Trend TwoPoint two_point_pair"
    ),
    "engine": "Comparison Episode Result Step compare load_result simulate",
    "errors": (
        "ContractError DataError InputError RumormillError SimplifiedGraphNotice SlowEngineNotice SolverError"
    ),
    "estimators": (
        "BucketMedian Catoni CatoniBound ClippedMean ConfidenceSequence EmpiricalMean Estimator HuberSGD "
        "MRUCB MedianBound MedianOfMeans OnlineMean RobustMOSS SelfTuned TrimmedMean"
    ),
    "experiments.run.store": "load open_run",
    "graphs": "Network Topology",
    "live.io.client": "Client",
    "policies": (
        "AdaRUCB Agent AlphaStableTS CentralizedMPUCB ConsensusUCB CoopSE CoopUCB2 DDUCB DPE2 "
        "DecentralizedMPUCB DecentralizedTS Default EpsilonGreedy HTHMUCB KLInfUCB KMPUCB OriginMedianUCB "
        "Plan Policy Prior RMMUCB RobustDirichlet RobustGossip RobustUCB Seat ThompsonKMP recommended"
    ),
    "protocol": "Byzantine Carrier Channel Churn Corruption Imperfect Message PerfectChannel Relay World",
}
_MODULES = ("catalogue", "checks", "recipes", "theory")
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted([*_ROOM_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        value = getattr(import_module(f"rumormill.{_ROOM_OF[name]}"), name)
    elif name == "__version__":
        value = import_module("rumormill.text").VERSION
    elif name in _MODULES:
        value = import_module(f"rumormill.{name}")
    else:
        raise AttributeError(f"module 'rumormill' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
