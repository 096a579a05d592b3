"""Images of a `PatternMixture`: as parts are learned from them, and as they are compared later."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from patternfold.estimators.images import Pixels, distinct_rows
from patternfold.estimators.options import family_of, lighting_of, transformation_of
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.coarse import coarsened
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem
from patternfold.model.grid import Grid


class Given(NamedTuple):
    """The images to learn from, in a unit of their own.

    ``place`` (N,) tells where each of the user's images stands among them, −1 for those without
    weight.
    """

    problem: Problem
    amplitude: Amplitude
    place: np.ndarray


def given_images(estimator: Any, pixels: Pixels, weights: np.ndarray) -> Given:
    """Put the images that differ on the devices; refuse those from which nothing is learned."""
    amplitude = Amplitude.of_images("X", pixels.rows)
    index, summed, place = distinct_rows(pixels.lowered(amplitude), weights)
    images = pixels.lowered(amplitude).take(index)
    if images.blank(estimator.offset).all():
        raise ValueError("All images with positive weight are blank: there is no pattern to learn.")
    require_enough(estimator.n_patterns, len(index))
    observations = _put(estimator, images, summed)
    problem = Problem(observations, transformation_of(estimator), family_of(estimator))
    return Given(problem, amplitude, place)


def require_enough(n_patterns: int | str, n_images: int) -> None:
    """Refuse more patterns than there are images that differ."""
    if not isinstance(n_patterns, str) and n_patterns > n_images:
        raise ValueError(
            f"n_patterns={n_patterns} but only n_samples={n_images} of the images in X differ. "
            "Ask for fewer patterns, or for 'auto'."
        )


def compared_images(estimator: Any, pixels: Pixels) -> tuple[Observations, float]:
    """Images in the unit of the parts, on few pixels; what distances are to be raised by."""
    images = _put(estimator, pixels.lowered(Amplitude(estimator._exponent)))
    return images, raised_by(estimator, images.grid)


def raised_by(estimator: Any, grid: Grid) -> float:
    """What distances on this grid are to be multiplied by for the user's pixels and unit."""
    pixels_each = np.prod(estimator.image_shape_) / grid.n_pixels
    return float(np.ldexp(np.sqrt(pixels_each), estimator._exponent))


def _put(estimator: Any, pixels: Pixels, weights: np.ndarray | None = None) -> Observations:
    grid, lighting = Grid(*estimator.image_shape_), lighting_of(estimator)
    images = Observations.put(pixels.rows, grid, weights, pixels.counted, lighting=lighting)
    smaller = coarsened(images)
    return images if smaller is None else smaller
