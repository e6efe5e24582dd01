"""Robust means: each file has the definition over a list, the online form and the theory constants."""

from rumormill.estimators.base import Estimator, OnlineMean, OwnIndexEstimator, Terms, Theory, TopSketch
from rumormill.estimators.catoni import Catoni, CatoniBound
from rumormill.estimators.clipped import ClippedMean
from rumormill.estimators.confidence_sequence import ConfidenceSequence
from rumormill.estimators.empirical import EmpiricalMean
from rumormill.estimators.huber_sgd import HuberSGD
from rumormill.estimators.median_bound import MedianBound
from rumormill.estimators.median_of_means import BucketMedian, MedianOfMeans
from rumormill.estimators.mr_ucb import MRUCB
from rumormill.estimators.radius import Radius
from rumormill.estimators.robust_moss import RobustMOSS
from rumormill.estimators.self_tuned import SelfTuned
from rumormill.estimators.trimmed import TrimmedMean

__all__ = [
    "BucketMedian",
    "MRUCB",
    "Catoni",
    "CatoniBound",
    "ClippedMean",
    "ConfidenceSequence",
    "EmpiricalMean",
    "Estimator",
    "HuberSGD",
    "OwnIndexEstimator",
    "MedianBound",
    "MedianOfMeans",
    "OnlineMean",
    "Radius",
    "RobustMOSS",
    "SelfTuned",
    "Terms",
    "Theory",
    "TopSketch",
    "TrimmedMean",
]
