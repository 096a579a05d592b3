"""What a mother function is: φ(x, y) with its gradient."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from jaxtyping import Array, Float

from patternfold.model.component import Component

Points = Float[Array, "*p"]
Slopes = Float[Array, "*p"] | Float[Array, ""]
Jacobian = tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]


class AbstractMother(Component):
    """A smooth function φ of the plane, from which all atoms are made.

    `formula`, where there is one, is a function ``(u, v) => φ``.
    """

    is_radial: ClassVar[bool] = False
    """Whether φ depends on z = x² + y² alone."""

    gaussian_height: ClassVar[float | None] = None
    """a of φ = a·exp(−x² − y²), for which inner products of atoms have a closed form; else None."""

    @abstractmethod
    def __call__(self, x: Points, y: Points) -> Points:
        """Evaluate φ(x, y)."""

    @abstractmethod
    def field(self, x: Points, y: Points) -> tuple[Points, Points, Points]:
        """Return (φ, ∂φ/∂x, ∂φ/∂y) in one pass."""

    def field_through(
        self, u: Points, v: Points, jacobian: Jacobian
    ) -> tuple[Points, Points, Points]:
        """Return φ(u, v) and its gradient in (x, y), with ((u_x, u_y), (v_x, v_y)) given."""
        (ux, uy), (vx, vy) = jacobian
        value, du, dv = self.field(u, v)
        return value, du * ux + dv * vx, du * uy + dv * vy

    def convex_profile(self, z: Any, n: int, functions: Any) -> Any:
        """Return φⁿ as a function of z = x² + y², convex in z, or None if it is not.

        DC programming needs it: ``z`` may be a number, a DC value or a jet, and ``functions`` the
        module `patternfold.dc.elementary`, whose functions take all of them.
        """
        return None


class AbstractRadialMother(AbstractMother):
    """A mother function of z = x² + y² alone, so that turning it changes nothing.

    `formula`, where there is one, is a function ``(z) => φ``.
    """

    is_radial: ClassVar[bool] = True

    is_elementary: ClassVar[bool] = False
    """Whether `profile` takes nothing but sums, products, quotients, exponentials and logarithms,
    which kernels for GPUs know."""

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

    def field_through(
        self, u: Points, v: Points, jacobian: Jacobian
    ) -> tuple[Points, Points, Points]:
        """Chain rule through z: one multiplication by φ' for each direction."""
        (ux, uy), (vx, vy) = jacobian
        value, slope = self.profile(u * u + v * v)
        return value, 2 * slope * (u * ux + v * vx), 2 * slope * (u * uy + v * vy)
