"""Huber's loss: squares up to a threshold, then absolute values."""

from __future__ import annotations

from typing import ClassVar, SupportsFloat

import equinox as eqx
import jax.numpy as jnp

from patternfold.model.losses.base import AbstractLoss, Values, positive, scale_of


class Huber(AbstractLoss):
    r"""Huber's loss :math:`ρ(r) = r^2` for :math:`|r| ≤ k s`, then :math:`2 k s |r| - k^2 s^2`.

    Parameters
    ----------
    k : float, default=1.345
        Where residuals begin to be large, in units of s; by default estimates from Gaussian noise
        are 95 % as efficient as with squares.
    scale : float, optional
        s in the unit of the images, by default estimated from the residuals.

    Examples
    --------
    The weight of a residual, by its square in units of s²:

    >>> import jax.numpy as jnp
    >>> from patternfold import Huber
    >>> loss = Huber(k=2)
    >>> [round(float(weight), 2) for weight in loss.pixels(jnp.array([1.0, 16.0]))[1]]
    [1.0, 0.5]
    """

    k: float = eqx.field(static=True)
    scale: float | None = eqx.field(static=True)

    is_elementary: ClassVar[bool] = True

    def __init__(self, k: SupportsFloat = 1.345, scale: SupportsFloat | None = None):
        self.k = positive("k", k, "1.345")
        self.scale = scale_of(scale)

    def pixels(self, z: Values) -> tuple[Values, Values]:
        """Return h and h' = min(1, k/√z)."""
        large = z > self.k**2
        root = jnp.sqrt(jnp.where(large, z, 1))
        value = jnp.where(large, 2 * self.k * root - self.k**2, z)
        return value, jnp.where(large, self.k / root, 1)

    def images(self, t: Values) -> tuple[Values, Values]:
        """Return H and H' = min(1, k/t)."""
        large = t > self.k
        far = jnp.where(large, t, self.k) / self.k
        return jnp.where(large, self.k * (1 + jnp.log(far)), t), 1 / far
