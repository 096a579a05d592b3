"""The inverse multiquadric mother function."""

from __future__ import annotations

import math

import equinox as eqx
import jax.numpy as jnp

from patternfold.mothers.base import AbstractRadialMother, Points


class InverseMultiquadric(AbstractRadialMother):
    r"""Inverse multiquadric :math:`φ = (1 + x^2 + y^2)^μ`: a smooth bump with broader tails.

    Parameters
    ----------
    mu : float, default=-3
        Exponent μ < 0.
    """

    mu: float = eqx.field(default=-3.0, static=True)

    def __check_init__(self) -> None:
        """Refuse exponents for which φ does not decay."""
        if not (isinstance(self.mu, (int, float)) and math.isfinite(self.mu) and self.mu < 0):
            raise ValueError(f"mu={self.mu!r} must be a negative number, such as -3.")

    def profile(self, z: Points) -> tuple[Points, Points]:
        """Return φ and dφ/dz = μ φ / (1 + z)."""
        base = 1 + z
        if float(self.mu).is_integer():
            # Whole exponents become a few multiplications and one division.
            value = 1 / base ** int(-self.mu)
        else:
            value = jnp.exp(self.mu * jnp.log(base))
        return value, self.mu * value / base
