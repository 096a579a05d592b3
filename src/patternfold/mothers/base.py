"""What a mother function is: φ(x, y) with its gradient."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

Points = Float[Array, "*p"]


class AbstractMother(eqx.Module):
    """A smooth function φ of the plane, from which all atoms are made."""

    @abstractmethod
    def __call__(self, x: Points, y: Points) -> Points:
        """Evaluate φ(x, y)."""

    @abstractmethod
    def field(self, x: Points, y: Points) -> tuple[Points, Points, Points]:
        """Return (φ, ∂φ/∂x, ∂φ/∂y) in one pass."""


class AbstractRadialMother(AbstractMother):
    """A mother function of z = x² + y² alone, so that turning it changes nothing."""

    @abstractmethod
    def profile(self, z: Points) -> tuple[Points, Points]:
        """Return φ and dφ/dz as functions of z."""

    def __call__(self, x: Points, y: Points) -> Points:
        """Evaluate φ(x² + y²)."""
        return self.profile(x * x + y * y)[0]

    def field(self, x: Points, y: Points) -> tuple[Points, Points, Points]:
        """Return (φ, 2x φ', 2y φ')."""
        value, slope = self.profile(x * x + y * y)
        return value, 2 * x * slope, 2 * y * slope
