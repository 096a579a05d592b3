"""The images that `JPATS` learns from, and what is kept in their order and unit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from patternfold.estimators.images import Pixels, distinct_rows
from patternfold.estimators.options import make_problem
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.joint import JointProblem
from patternfold.learning.jpats import JointLearned
from patternfold.learning.retune import known_terms
from patternfold.learning.state import INTERRUPTED

REJECTED_SHARE = 0.025
"""Share of the training images that a calibrated threshold takes for outliers."""


def joint_problem(
    estimator: Any, pixels: Pixels, labels: np.ndarray, weights: np.ndarray, amplitude: Amplitude
) -> tuple[JointProblem, np.ndarray]:
    """Return the images to learn from, and the place of each of the user's among them."""
    pixels = pixels.lowered(amplitude)
    index, summed, place = distinct_rows(pixels, weights, labels)
    images, labels = pixels.take(index), labels[index]
    blank = images.blank(estimator.offset)
    for m, name in enumerate(estimator.classes_):
        if blank[labels == m].all():
            raise ValueError(
                f"All images of class {name!s} are blank or have no weight: there is no "
                "pattern to learn. Leave the class out."
            )
    names = tuple(str(label) for label in estimator.classes_)
    whole = make_problem(estimator, images, summed, amplitude)
    return JointProblem(whole, labels, len(names), names), place


def store_joint(
    estimator: Any,
    learned: JointLearned,
    problem: JointProblem,
    inverse: np.ndarray,
    amplitude: Amplitude,
) -> None:
    """Set the fitted attributes, in the order and the unit of the user's images."""
    state, weights = learned.state, problem.all.weights
    estimator.patterns_ = [amplitude.raised_pattern(p) for p in state.patterns]
    owners = state.owners or range(len(estimator.classes_))
    estimator.pattern_labels_ = estimator.classes_[list(owners)]
    estimator.transformation_ = problem.all.transformation
    _store_terms(estimator, learned, problem, amplitude)
    # Images without weight took no part and have no λ.
    estimator.cross_parameters_ = state.lam[inverse]
    estimator.cross_parameters_[inverse < 0] = np.nan
    scale = np.array([weights.sum(), problem.all.energy])
    estimator.error_path_ = np.array(learned.path, np.float64) / scale
    estimator.n_iter_ = max(1, len(learned.path) - 1)
    estimator.stop_reason_ = learned.reason
    if learned.reason == INTERRUPTED:
        warnings.warn(
            "Learning was interrupted; the model holds the patterns found so far.",
            stacklevel=3,
        )
    _store_outliers(estimator, amplitude.raised(np.sqrt(state.squares.min(axis=1))))


def _store_terms(
    estimator: Any, learned: JointLearned, problem: JointProblem, amplitude: Amplitude
) -> None:
    """Set the loss, whose scale is common to all patterns, and the prior of each."""
    own = learned.terms or [None] * len(learned.state.patterns)
    terms = [known_terms(problem.all, some) for some in own]
    estimator.loss_ = amplitude.raised_loss(terms[0][0])
    priors = [amplitude.raised_prior(prior) for _, prior in terms if prior is not None]
    estimator.prior_ = [p for p in priors if p is not None] or None


def _store_outliers(estimator: Any, nearest: np.ndarray) -> None:
    """Set which distance makes an outlier, and what it is called."""
    threshold, label = estimator.outlier_threshold, estimator.outlier_label
    if threshold == "calibrate":
        threshold = calibrated_threshold(nearest)
    estimator.outlier_threshold_ = np.inf if threshold is None else float(threshold)
    named = estimator.classes_.dtype.kind in "OSU"
    default = "outlier" if named else -1
    estimator.outlier_label_ = default if label is None else label


def calibrated_threshold(nearest: np.ndarray) -> float:
    """The distance to the nearest manifold that few training images exceed."""
    return float(np.quantile(nearest, 1 - REJECTED_SHARE))
