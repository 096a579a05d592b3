"""The squared loss: the paper's, and the default."""

from __future__ import annotations

from typing import ClassVar, SupportsFloat

import equinox as eqx
import jax.numpy as jnp

from patternfold.model.losses.base import AbstractLoss, Values, scale_of


class Squared(AbstractLoss):
    """ρ(r) = r²: right for Gaussian noise; one outlying pixel may outweigh all others.

    Examples
    --------
    The weight of a residual, by its square in units of s²:

    >>> import jax.numpy as jnp
    >>> from patternfold import Squared
    >>> loss = Squared()
    >>> [round(float(weight), 2) for weight in loss.pixels(jnp.array([1.0, 16.0]))[1]]
    [1.0, 1.0]
    """

    scale: float | None = eqx.field(static=True)

    reweights: ClassVar[bool] = False
    is_elementary: ClassVar[bool] = True

    def __init__(self, scale: SupportsFloat | None = None):
        self.scale = scale_of(scale)

    def pixels(self, z: Values) -> tuple[Values, Values]:
        """Return z and 1."""
        return z, jnp.ones_like(z)

    def images(self, t: Values) -> tuple[Values, Values]:
        """Return t and 1."""
        return t, jnp.ones_like(t)
