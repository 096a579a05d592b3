"""`PatternMixture` on stacks: parts and groups from some images, averages of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.estimators.images import as_weights
from patternfold.estimators.mixture_fitted import main_parts, store_shares
from patternfold.estimators.options import family_of, lighting_of
from patternfold.estimators.stack_classes import masks_of
from patternfold.estimators.streams import remember_shape
from patternfold.files.stacks import Stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.coarse import coarse_grid
from patternfold.learning.mixture.mixture import Mixture
from patternfold.learning.mixture.patterns import as_patterns
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem
from patternfold.learning.stream.cluster import active_place
from patternfold.learning.stream.learn import Source
from patternfold.learning.stream.mixture import settle_parts
from patternfold.learning.stream.sweep import Model
from patternfold.model.grid import Grid
from patternfold.numerics.precision import precision

LEARNED_FROM = 8192
"""Images, spread over the stack, from which parts and groups are learned: the most parts that there
may be of ten groups have twenty images each."""


def fit_mixture(estimator: Any, stack: Stack, sample_weight: Any, sample_mask: Any) -> None:
    """Learn from some images, let the parts settle on all of them, and assign all."""
    remember_shape(estimator, stack)
    weights = as_weights(sample_weight, len(stack))
    counting = np.flatnonzero(weights)
    index = counting[_spread(len(counting))]
    estimator.fit(stack.take(index), None, weights[index], masks_of(sample_mask, index))
    source = Source(stack, _model(estimator, stack), weights, sample_mask, active_place())
    with precision(stack.floats):
        if len(index) < len(counting):
            _settle(estimator, source)
    estimator.assignment_ = estimator.assign(stack, sample_mask=sample_mask)
    sizes = np.bincount(estimator.assignment_.parts, weights, len(estimator.parts_))
    main = main_parts(estimator.part_labels_, sizes)
    estimator.patterns_ = [estimator.parts_[k] for k in main]
    store_shares(estimator, weights)


def _spread(count: int) -> np.ndarray:
    """Places of at most so many images as are learned from, at even steps."""
    return np.unique(np.linspace(0, count - 1, min(count, LEARNED_FROM)).astype(int))


def _model(estimator: Any, stack: Stack) -> Model:
    return Model(
        Grid(*estimator.image_shape_),
        estimator.transformation_,
        family_of(estimator),
        lighting_of(estimator),
        Amplitude(estimator._exponent),
        block=stack.block,
    )


def _settle(estimator: Any, source: Source) -> None:
    """Replace the pictures of the parts by averages of all images, and their patterns with them."""
    mixture: Mixture = estimator.mixture_
    for settled, misfit in settle_parts(source, mixture, estimator._report(len(source))):
        mixture = settled
        estimator.error_path_ = np.append(estimator.error_path_, misfit)
    estimator.n_iter_ = len(estimator.error_path_)
    estimator._pictures = mixture.pictures
    patterns = as_patterns(_alone(estimator, mixture), mixture.pictures, estimator.n_atoms)
    amplitude = source.model.amplitude
    estimator.parts_ = [amplitude.raised_pattern(pattern) for pattern in patterns]


def _alone(estimator: Any, mixture: Mixture) -> Problem:
    """A problem on the grid of the pictures."""
    grid = Grid(*estimator.image_shape_)
    grid = coarse_grid(grid) or grid
    images = Observations.put(mixture.pictures[:1], grid, lighting=lighting_of(estimator))
    return Problem(images, mixture.transformation, family_of(estimator))
