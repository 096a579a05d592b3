"""The images that `PATS` learns from, and what is kept in their order and unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.estimators.fitting import record_run
from patternfold.estimators.images import Pixels, distinct_rows
from patternfold.estimators.options import make_problem
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.pats import Learned
from patternfold.learning.problem import Problem
from patternfold.learning.retune import known_terms, with_terms
from patternfold.numerics.precision import precision


def pattern_problem(
    estimator: Any, pixels: Pixels, weights: np.ndarray, amplitude: Amplitude
) -> tuple[Problem, np.ndarray]:
    """Return the images to learn from, and the place of each of the user's among them."""
    index, summed, place = distinct_rows(pixels, weights)
    images = pixels.take(index)
    if images.blank(estimator.offset).all():
        raise ValueError("All images with positive weight are blank: there is no pattern to learn.")
    return make_problem(estimator, images, summed, amplitude), place


def store_pattern(
    estimator: Any,
    learned: Learned,
    problem: Problem,
    pixels: Pixels,
    inverse: np.ndarray,
    amplitude: Amplitude,
) -> None:
    """Set the fitted attributes, in the order and the unit of the user's images."""
    estimator.pattern_ = amplitude.raised_pattern(learned.state.pattern)
    estimator.transformation_ = problem.transformation
    with precision(problem.observations.dtype):
        problem = with_terms(problem, *learned.state[:2])
        gain, offset = problem.light(learned.state.pattern, learned.state.lam)
    loss, prior = known_terms(problem, problem.terms)
    estimator.loss_, estimator.prior_ = amplitude.raised_loss(loss), amplitude.raised_prior(prior)
    estimator.parameters_ = learned.state.lam[inverse]
    estimator.gain_, estimator.offset_ = gain[inverse], amplitude.raised(offset)[inverse]
    idle = inverse < 0
    if idle.any():
        # Images without weight took no part; they have a place on the manifold all the same.
        found = estimator._project(pixels.take(idle))
        estimator.parameters_[idle] = found.parameters
        estimator.gain_[idle], estimator.offset_[idle] = found.gain, found.offset
    record_run(estimator, learned, problem.energy)
