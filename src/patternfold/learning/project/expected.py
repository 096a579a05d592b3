"""What a projection with a loss or a prior must know beforehand: the size of ordinary residuals.

Models tell it, with the loss and the prior that they have learned. Otherwise some of the images
are projected by squares first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from patternfold.learning.effort import Effort
from patternfold.learning.noise import Noise, settled_noise
from patternfold.learning.observations import Observations
from patternfold.learning.project.locate import distance_to, locate
from patternfold.learning.terms import Penalty, Terms
from patternfold.model.atoms import stack_atoms
from patternfold.model.losses import AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import LEARNED, Prior, as_prior
from patternfold.model.transformations import AbstractTransformation

FEWEST, SHARE, MOST = 8, 16, 64
"""Images that tell the noise: one in so many, but at least and at most these."""

NO_OUTLIERS = 1e4
"""Scale at which a loss is the squared one, in units of the images' brightness."""


def as_priors(
    prior: Any, family: AbstractTransformation, count: int, pixel: float
) -> list[Prior | None]:
    """Check the option ``prior``: one for all patterns, or one for each."""
    if isinstance(prior, str):
        hint = "PATS(prior='learned') learns it; " if prior == LEARNED else ""
        raise ValueError(f"prior={prior!r}: {hint}here it is a dict such as {{'theta': (0, 0.2)}}.")
    several = isinstance(prior, Sequence) and not isinstance(prior, Prior)
    given = list(prior) if several else [prior] * count
    if len(given) != count:
        raise ValueError(f"prior holds {len(given)} priors for {count} patterns; give one of each.")
    return [as_prior(own, family, pixel) for own in given]


def terms_of(
    loss: AbstractLoss | None,
    prior: Prior | None,
    family: AbstractTransformation,
    noise: Noise,
    dtype: Any,
) -> Terms | None:
    """Put a loss and a prior into the terms of an objective, scales that they lack from the noise.

    A loss that reweights nothing is None.
    """
    if prior is None and loss is None:
        return None
    scale, penalty = None, None
    if loss is not None:
        scale = np.asarray(noise.scale if loss.scale is None else loss.scale, dtype)
        loss = loss.with_scale(None)  # a number in the code would be compiled anew
    if prior is not None:
        variance = noise.variance if prior.noise is None else prior.noise
        penalty = Penalty.of(prior, family, variance, dtype)
    return Terms(loss, scale, penalty)


def expected_terms(
    observations: Observations,
    patterns: Sequence[Pattern],
    family: AbstractTransformation,
    loss: AbstractLoss,
    priors: Sequence[Prior | None],
    effort: Effort,
) -> list[Terms | None] | None:
    """Return the terms of a projection on each pattern; None where squares are all there is."""
    own = loss if loss.reweights else None
    if own is None and not any(priors):
        return None
    # All patterns have the same parts in their terms: a prior that says nothing for those without.
    if any(priors):
        free = next(prior for prior in priors if prior is not None)
        free = replace(free, std=(np.inf,) * len(free.std))
        priors = [free if prior is None else prior for prior in priors]
    noise = Noise(1.0, 1.0)
    unknown = own is not None and own.scale is None
    if unknown or any(prior is not None and prior.noise is None for prior in priors):
        noise = noise_of(observations, patterns, family, own, priors, effort)
    return [terms_of(own, prior, family, noise, observations.dtype) for prior in priors]


def noise_of(
    observations: Observations,
    patterns: Sequence[Pattern],
    family: AbstractTransformation,
    loss: AbstractLoss | None,
    priors: Sequence[Prior | None],
    effort: Effort,
) -> Noise:
    """Measure the noise of some images on the nearest of the patterns.

    They are projected by the code that all images will be, at a scale at which nothing is an
    outlier and λ costs nothing; with a loss once more, from there, at the scale found.
    """
    count = min(len(observations), max(FEWEST, min(len(observations) // SHARE, MOST)))
    some = np.unique(np.linspace(0, len(observations) - 1, count).round().astype(int))
    # On a CPU in a chunk as large as the others, by the same code; elsewhere chunks are too large.
    cpu = jax.default_backend() == "cpu"
    images = observations.take(some, size=len(observations.chunks[0].images) if cpu else None)
    effort = replace(effort, again=None)
    brightness = np.sqrt(images.energy / max(images.counted.sum(), 1))
    noise, lam = Noise(max(NO_OUTLIERS * float(brightness), 1e-30), 0.0), None
    for _ in range(1 if loss is None else 2):
        terms = [terms_of(loss, prior, family, noise, images.dtype) for prior in priors]
        found = locate(images, patterns, family, effort, lam, lam is None, terms=terms)
        lam = found.lam
        noise = _nearest_noise(images, patterns, family, lam, found.square, loss)
    return noise


def _nearest_noise(
    images: Observations,
    patterns: Sequence[Pattern],
    family: AbstractTransformation,
    lam: np.ndarray,
    squares: np.ndarray,
    loss: AbstractLoss | None,
) -> Noise:
    """The median over patterns, each judged by the images that are nearest to it."""
    nearest, known = squares.argmin(axis=1), []
    for m, pattern in enumerate(patterns):
        own = images.with_weights((nearest == m).astype(np.float64))
        atoms = stack_atoms([pattern], images.dtype).of(0)
        noise = settled_noise(own, lam[:, m], distance_to(atoms, family, images), loss)
        known += [] if noise is None else [noise]
    if not known:
        return Noise(1.0, 1.0)
    return Noise(*(float(np.median(part)) for part in zip(*known, strict=True)))
