"""The inverse multiquadric mother function."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, SupportsFloat

import equinox as eqx
import jax.numpy as jnp

from patternfold.model.mothers.base import AbstractRadialMother, Points


class InverseMultiquadric(AbstractRadialMother):
    r"""Inverse multiquadric :math:`φ = (1 + x^2 + y^2)^μ`: a smooth bump with broader tails.

    Parameters
    ----------
    mu : float, default=-3
        Exponent μ < 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from patternfold import InverseMultiquadric
    >>> float(InverseMultiquadric(mu=-1)(jnp.array(1.0), jnp.array(0.0)))
    0.5
    """

    is_elementary: ClassVar[bool] = True
    mu: float = eqx.field(static=True)

    def __init__(self, mu: SupportsFloat = -3.0):
        # φ decays for negative exponents only.
        if not (isinstance(mu, Real) and -math.inf < float(mu) < 0):
            raise ValueError(f"mu={mu!r} must be a negative number, such as -3.")
        self.mu = float(mu)

    def profile(self, z: Points) -> tuple[Points, Points]:
        """Return φ and dφ/dz = μ φ / (1 + z)."""
        base = 1 + z
        if self.mu.is_integer():
            # Whole exponents become a few multiplications and one division.
            value = 1 / base ** int(-self.mu)
        else:
            value = jnp.exp(self.mu * jnp.log(base))
        return value, self.mu * value / base

    def formula(self) -> str:
        """(1 + z)^μ; small whole exponents become products, which browsers do faster."""
        if self.mu.is_integer() and self.mu >= -8:
            product = " * ".join(["b"] * int(-self.mu))
            return f"(z) => {{ const b = 1 + z; return 1 / ({product}); }}"
        return f"(z) => Math.pow(1 + z, {self.mu!r})"

    def convex_profile(self, z: Any, n: int, functions: Any) -> Any:
        """(1 + z)^(nμ)."""
        return functions.power(z + 1.0, n * self.mu)
