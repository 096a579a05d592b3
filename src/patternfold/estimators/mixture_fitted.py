"""Fitted attributes of `PatternMixture`."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.learning.amplitude import Amplitude
from patternfold.learning.mixture.mixture import Assigned, MixtureLearned
from patternfold.learning.mixture.outliers import usual_limits


def store_mixture(estimator: Any, learned: MixtureLearned, amplitude: Amplitude) -> None:
    """Set the parts, their groups, and how learning went."""
    mixture, found = learned.mixture, learned.assigned
    estimator._exponent, estimator._pictures = amplitude.exponent, mixture.pictures
    estimator.part_labels_ = mixture.groups
    estimator.temperature_, estimator.noise_ = mixture.temperature, mixture.noise
    estimator.transformation_ = mixture.transformation
    estimator.parts_ = [amplitude.raised_pattern(p) for p in learned.patterns]
    estimator.patterns_ = [estimator.parts_[k] for k in main_parts(mixture.groups, learned.sizes)]
    estimator.limits_ = np.full(mixture.n_groups, np.inf)
    if estimator.outliers:
        estimator.limits_ = usual_limits(learned.left, found.group, mixture.n_groups)
    estimator.merge_tree_ = learned.merged.tree
    estimator.eigenvalues_ = learned.merged.eigenvalues
    estimator.error_path_ = np.array(learned.path)
    estimator.n_iter_ = len(learned.path)
    estimator.stop_reason_ = learned.reason


def store_shares(estimator: Any, weights: np.ndarray) -> None:
    """Set what is known of the training images as a whole, from ``assignment_``."""
    labels, n_groups = estimator.assignment_.labels, len(estimator.patterns_)
    estimator.labels_, estimator.parameters_ = labels, estimator.assignment_.parameters
    inside = labels >= 0
    shares = np.bincount(labels[inside], weights[inside], n_groups) / weights.sum()
    estimator.proportions_ = shares
    estimator.outlier_share_ = float(weights[~inside].sum() / weights.sum())


def main_parts(groups: np.ndarray, sizes: np.ndarray) -> list[int]:
    """The part of each group with the most images."""
    parts = [np.flatnonzero(groups == g) for g in range(int(groups.max()) + 1)]
    return [int(own[np.argmax(sizes[own])]) for own in parts]


def at_places(found: Assigned, place: np.ndarray) -> Assigned:
    """What was found of images, in another order."""
    return Assigned(*(values[place] for values in found))
