"""The Gaussian mother function, eq. gaussMotherfunc."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax.numpy as jnp

from patternfold.model.mothers.base import AbstractRadialMother, Points


class Gaussian(AbstractRadialMother):
    r"""Gaussian of unit norm, :math:`φ = \sqrt{2/π}\, e^{-(x^2+y^2)}`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from patternfold import Gaussian
    >>> round(float(Gaussian()(jnp.array(0.0), jnp.array(0.0))), 4)
    0.7979
    """

    is_elementary: ClassVar[bool] = True
    gaussian_height: ClassVar[float | None] = math.sqrt(2 / math.pi)

    def profile(self, z: Points) -> tuple[Points, Points]:
        """Return φ and dφ/dz = −φ."""
        value = math.sqrt(2 / math.pi) * jnp.exp(-z)
        return value, -value

    def formula(self) -> str:
        """√(2/π) e^(−z)."""
        return "(z) => Math.sqrt(2 / Math.PI) * Math.exp(-z)"

    def convex_profile(self, z: Any, n: int, functions: Any) -> Any:
        """(√(2/π) e^(−z))ⁿ."""
        return functions.exp(z * float(-n)) * math.sqrt(2 / math.pi) ** n
