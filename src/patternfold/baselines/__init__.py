"""The methods that the paper compares with, as scikit-learn estimators."""

from patternfold.baselines.aligned import discriminant_analyses, neural_network
from patternfold.baselines.locally_linear import (
    LocallyLinearApproximation,
    LocallyLinearClassifier,
)
from patternfold.baselines.manifold_classifiers import (
    SimultaneousMatchingPursuitClassifier,
    SupervisedAtomSelection,
    with_first_atoms,
)
from patternfold.baselines.matching_pursuit import MatchingPursuit, SimultaneousMatchingPursuit
from patternfold.baselines.sampled_dictionary import SampledDictionary, sampled_dictionary
from patternfold.baselines.supervised_lle import SupervisedLLE, SupervisedLLEClassifier

__all__ = [
    "LocallyLinearApproximation",
    "LocallyLinearClassifier",
    "MatchingPursuit",
    "SampledDictionary",
    "SimultaneousMatchingPursuit",
    "SimultaneousMatchingPursuitClassifier",
    "SupervisedAtomSelection",
    "SupervisedLLE",
    "SupervisedLLEClassifier",
    "discriminant_analyses",
    "neural_network",
    "sampled_dictionary",
    "with_first_atoms",
]
