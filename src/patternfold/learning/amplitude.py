"""The unit that images are computed in: a power of two, so that nothing is rounded.

Errors are squares. Those of images far from 1 leave the range of floating point long before the
images do, and thresholds mean something else there. Such images, and patterns with them, are
divided by a power of two before anything is computed, and results multiplied by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from patternfold.model.losses import AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior

ORDINARY = 2.0**-16, 2.0**17
"""Amplitudes that are left alone: all usual formats of pixels, and images of unit norm."""


@dataclass(frozen=True)
class Amplitude:
    """Images are computed with in units of 2 to this power."""

    exponent: int = 0

    @classmethod
    def of_images(cls, name: str, images: np.ndarray, always: bool = False) -> Amplitude:
        """That of images to learn from; refuses images whose norms are too large for their type.

        With ``always`` even ordinary amplitudes are not left alone.
        """
        peak = _peak(images)
        amplitude = cls(_exponent(peak, always))
        if not amplitude.exponent:
            return amplitude
        norm = np.linalg.norm(amplitude.lowered(images).astype(np.float64), axis=-1).max()
        if math.frexp(norm)[1] + amplitude.exponent > np.finfo(images.dtype).maxexp:
            raise ValueError(
                f"{name} holds values up to {peak:.3g}: the norm of an image is too large for "
                f"{images.dtype}. Divide the images by {peak:.0e}, or give them as float64."
            )
        return amplitude

    @classmethod
    def of_patterns(cls, patterns: Sequence[Pattern]) -> Amplitude:
        """That of the images of patterns."""
        return cls(_exponent(max((_peak(p.coef) for p in patterns), default=0.0)))

    def lowered(self, images: np.ndarray) -> np.ndarray:
        """Images in this unit."""
        return np.ldexp(images, -self.exponent) if self.exponent else images

    def raised(self, distances: np.ndarray) -> np.ndarray:
        """Distances in the user's unit."""
        return np.ldexp(distances, self.exponent) if self.exponent else distances

    def lowered_pattern(self, pattern: Pattern) -> Pattern:
        """A pattern in this unit."""
        return _scaled(pattern, -self.exponent)

    def lowered_loss(self, loss: AbstractLoss) -> AbstractLoss:
        """A loss with its scale in this unit."""
        return _scaled_loss(loss, -self.exponent)

    def raised_loss(self, loss: AbstractLoss) -> AbstractLoss:
        """A loss with its scale in the user's unit."""
        return _scaled_loss(loss, self.exponent)

    def lowered_prior(self, prior: Prior | None) -> Prior | None:
        """A prior with its noise in this unit."""
        return _scaled_prior(prior, -self.exponent)

    def raised_prior(self, prior: Prior | None) -> Prior | None:
        """A prior with its noise in the user's unit."""
        return _scaled_prior(prior, self.exponent)

    def raised_pattern(self, pattern: Pattern) -> Pattern:
        """A pattern in the user's unit."""
        return _scaled(pattern, self.exponent)


def _peak(values: np.ndarray) -> float:
    return float(max(values.max(initial=0), -values.min(initial=0)))


def _exponent(peak: float, always: bool = False) -> int:
    """Exponent of the power of two to divide by; 0 for ordinary amplitudes."""
    low, high = ORDINARY
    alone = low <= peak < high and not always
    return 0 if peak == 0 or alone else math.frexp(peak)[1] - 1


def _scaled(pattern: Pattern, exponent: int) -> Pattern:
    if not exponent:
        return pattern
    return pattern.replace(np.ldexp(pattern.coef, exponent), pattern.gamma)


def _scaled_loss(loss: AbstractLoss, exponent: int) -> AbstractLoss:
    if not exponent or loss.scale is None:
        return loss
    return loss.with_scale(math.ldexp(loss.scale, exponent))


def _scaled_prior(prior: Prior | None, exponent: int) -> Prior | None:
    if not exponent or prior is None or prior.noise is None:
        return prior
    return prior.with_noise(math.ldexp(prior.noise, 2 * exponent))
