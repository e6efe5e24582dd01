"""Robust means: each file has the definition over a list, the online form and the theory constants."""

from rumormill.estimators.base import Estimator, OnlineMean, Theory
from rumormill.estimators.catoni import Catoni
from rumormill.estimators.empirical import EmpiricalMean
from rumormill.estimators.median_of_means import MedianOfMeans
from rumormill.estimators.radius import Radius
from rumormill.estimators.trimmed import TrimmedMean

__all__ = [
    "Catoni",
    "EmpiricalMean",
    "Estimator",
    "MedianOfMeans",
    "OnlineMean",
    "Radius",
    "Theory",
    "TrimmedMean",
]
