"""The Gaussian mother function, eq. gaussMotherfunc."""

from __future__ import annotations

import math

import jax.numpy as jnp

from patternfold.model.mothers.base import AbstractRadialMother, Points


class Gaussian(AbstractRadialMother):
    r"""Gaussian of unit norm, :math:`φ = \sqrt{2/π}\, e^{-(x^2+y^2)}`."""

    def profile(self, z: Points) -> tuple[Points, Points]:
        """Return φ and dφ/dz = −φ."""
        value = math.sqrt(2 / math.pi) * jnp.exp(-z)
        return value, -value
