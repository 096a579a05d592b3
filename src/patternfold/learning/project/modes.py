"""How many poses of an image are as good as the best one, and the noise that decides it.

The noise is taken for white, its variance from what is left over at λ*: the squared distance over
the pixels that count, less the parameters that were fitted.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from patternfold.learning.lighting import Lighting

LESS_LIKELY = 20.0
"""A pose counts as long as the best one is not so many times as likely, given the noise. Squared
distances then differ by at most 2 ln 20, or 6, times the variance of the noise."""

ROUNDING = 1e-6
"""Share of an image's energy below which squared distances of perfect fits are equal."""


def noise_variance(square: Any, n_pixels: Any, dim: int, lighting: Lighting) -> Any:
    """Variance of the noise of each pixel, infinite where there are too few pixels to tell."""
    xp = np if isinstance(square, np.ndarray) else jnp
    left = n_pixels - (dim + lighting.gain + lighting.offset)
    return xp.where(left > 0, square / xp.where(left > 0, left, 1), xp.inf)


def count_modes(mode_squares: Any, variance: Any, energies: Any) -> Any:
    """Number of poses, the best one first, that fit as well as it does within the noise."""
    allowed = 2 * np.log(LESS_LIKELY) * variance + ROUNDING * energies
    as_good = mode_squares - mode_squares[..., :1] <= allowed[..., None]
    return (as_good & (mode_squares < np.inf)).sum(axis=-1)
