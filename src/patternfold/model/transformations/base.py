"""What a transformation is: a(λ, x, y), its derivatives, its inverse and its group law."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model import units
from patternfold.model.box import Box
from patternfold.model.component import Family

Points = Float[Array, "*p"]
Entry = Float[Array, ""]
Entries = tuple[tuple[Entry, Entry], tuple[Entry, Entry]]

ANGLE, SHIFT, SCALE, SHEAR = (-100.0, 100.0), (-10.0, 10.0), (1e-3, 1e3), (-100.0, 100.0)
"""Limits of bounds: radians; half windows; factors, which must be above 0; slopes."""

LIMITS: dict[str, tuple[float, float]] = {
    "theta": ANGLE,
    "tx": SHIFT,
    "ty": SHIFT,
    "s": SCALE,
    "sx": SCALE,
    "sy": SCALE,
    "shear": SHEAR,
}
"""Those of the parameters that several families have."""


def limits_of(*names: str) -> dict[str, tuple[float, float]]:
    """Return the limits of parameters by name."""
    return {name: LIMITS[name] for name in names}


class AbstractTransformation(Family):
    """A family of coordinate maps a(λ, x, y) = (x', y'), so that A_λ(p)(x, y) = p(x', y').

    A subclass supplies the parameter domain Λ as ``parameters``, the identity, the map and its
    derivatives in λ. All methods take one λ of shape (d,) and points of any shape, and are
    written with JAX. `formula`, where there is one, is a function ``(lam, x, y) => [x', y']``.
    """

    parameters: eqx.AbstractVar[Box]
    """The domain Λ."""

    translation: eqx.AbstractVar[tuple[str, str] | None]
    """Names of the parameters that shift the image, a(λ, x, y) = a(λ₀, x − t_x, y − t_y) with
    λ₀ equal to λ but for t = 0. They let the global search try all shifts at once."""

    is_affine: ClassVar[bool] = False
    """Whether the map is affine in (x, y) for every λ."""

    coarse_nodes: ClassVar[Mapping[str, int]] = {}
    """Most values of a parameter that the global search tries: with 1, that of the identity alone.
    Parameters that change images little are left to the local search, whatever their bounds."""

    has_axes: ClassVar[bool] = False
    """Whether the family acts along the pattern's own axes: images then fit better with the pattern
    turned one way than another, and learning tries several."""

    widening: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that `spread` depends on; the map does not."""

    def spread(self, lam: Float[Array, " d"]) -> Float[Array, ""] | None:
        """Return what is added to the squares of the atoms' widths, in the pattern's frame.

        By default that is nothing, and nothing is computed for it.
        """
        return None

    def spread_formula(self) -> str | None:
        """Return `spread` as a JavaScript function ``(lam) => s``, or None where there is none."""
        return None

    @property
    def parts(self) -> tuple[AbstractTransformation, ...]:
        """The families of which this one is the sum, the outermost first; by default itself."""
        return (self,)

    def __add__(self, other: AbstractTransformation) -> AbstractTransformation:
        """Compose with a family that acts before this one, in the pattern's own frame."""
        if not isinstance(other, AbstractTransformation):
            return NotImplemented
        from patternfold.model.transformations.sum import sum_of  # a sum is made of what is here

        return sum_of((*self.parts, *other.parts))

    @property
    @abstractmethod
    def identity(self) -> np.ndarray:
        """The λ that leaves every pattern as it is, shape (d,)."""

    @abstractmethod
    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map image coordinates to pattern coordinates, (x', y') = a(λ, x, y)."""

    @abstractmethod
    def derivatives(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Float[Array, "d *p"], Float[Array, "d *p"]]:
        """Derivatives ∂x'/∂λ_k and ∂y'/∂λ_k for every k."""

    @abstractmethod
    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """Map pattern coordinates to image coordinates: the inverse of `coordinates`."""

    @property
    def has_inverse(self) -> bool:
        """Whether `inverse_coordinates` is known, which aligning images needs."""
        return True

    @abstractmethod
    def tangent_products(
        self,
        lam: Float[Array, " d"],
        x: Float[Array, " n"],
        y: Float[Array, " n"],
        along_x: Float[Array, " n"],
        along_y: Float[Array, " n"],
        w: Float[Array, " n"],
    ) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        """Return TᵀT, the manifold's metric, and Tᵀw, given ∇p at the warped pixels."""


class AbstractAffineTransformation(AbstractTransformation):
    """Transformations that are affine in (x, y): x = F(λ) x' + t(λ), so x' = F⁻¹ (x − t).

    F takes the pattern to the image: it carries the scales and the rotation as people read
    them. A subclass gives F and t; the coordinate map, its inverse and its derivatives follow.
    """

    is_affine: ClassVar[bool] = True
    measures: ClassVar[Mapping[str, str]] = {
        "theta": units.ANGLE,
        "tx": units.LENGTH,
        "ty": units.LENGTH,
    }
    is_group: ClassVar[bool]
    """Whether the composition of two members is a member, whatever their parameters."""

    @abstractmethod
    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F(λ), from the pattern to the image."""

    @abstractmethod
    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t(λ), where the pattern's origin lies in the image."""

    @abstractmethod
    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """Return the λ with F(λ) = linear and t(λ) = shift, for members of the family."""

    def matrix(self, lam: Float[Array, " d"]) -> Float[Array, "2 3"]:
        """Return [F⁻¹ | −F⁻¹ t]: the map from the image to the pattern."""
        (a, b), (c, d) = _inverse_entries(self.linear(lam))
        tx, ty = jnp.unstack(self.shift(lam))
        entries = [a, b, -(a * tx + b * ty), c, d, -(c * tx + d * ty)]
        return jnp.stack(entries).reshape(2, 3)

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map image coordinates to pattern coordinates, (x', y') = F⁻¹ ((x, y) − t)."""
        # Subtracting t first keeps float32 accurate for strong scalings.
        (a, b), (c, d) = _inverse_entries(self.linear(lam))
        tx, ty = jnp.unstack(self.shift(lam))
        dx, dy = x - tx, y - ty
        return a * dx + b * dy, c * dx + d * dy

    def derivatives(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Float[Array, "d *p"], Float[Array, "d *p"]]:
        """Derivatives ∂x'/∂λ_k and ∂y'/∂λ_k: affine in (x, y), as the map itself is."""
        slopes = jnp.moveaxis(jax.jacfwd(self.matrix)(lam), -1, 0)

        def along(row: Float[Array, " 3"]) -> Points:
            by_x, by_y, constant = jnp.unstack(row)
            return by_x * x + by_y * y + constant

        return jax.vmap(along)(slopes[:, 0]), jax.vmap(along)(slopes[:, 1])

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """Map pattern coordinates to image coordinates, F (x', y') + t."""
        a, b, c, d = jnp.unstack(self.linear(lam).reshape(4))
        tx, ty = jnp.unstack(self.shift(lam))
        return a * x + b * y + tx, c * x + d * y + ty

    def tangent_products(
        self,
        lam: Float[Array, " d"],
        x: Float[Array, " n"],
        y: Float[Array, " n"],
        along_x: Float[Array, " n"],
        along_y: Float[Array, " n"],
        w: Float[Array, " n"],
    ) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        """Return TᵀT and Tᵀw from moments of ∇p.

        Every tangent is a combination of the six images p_x'·(x, y, 1), p_y'·(x, y, 1), whatever
        d is: their inner products, the second moments of ∇p, are all that the pixels are for.
        """
        e = jnp.stack([x, y, jnp.ones_like(x)])
        metric = moments(x, y, along_x * along_x, along_x * along_y, along_y * along_y)
        along_w = jnp.concatenate([e @ (along_x * w), e @ (along_y * w)])
        return self.products_from_moments(lam, metric, along_w)

    def products_from_moments(
        self, lam: Float[Array, " d"], metric: Float[Array, "6 6"], along_w: Float[Array, " 6"]
    ) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        """Return TᵀT and Tᵀw from the inner products of those six images, with w and each other."""
        slopes = jnp.moveaxis(jax.jacfwd(self.matrix)(lam), -1, 0).reshape(-1, 6)
        return slopes @ metric @ slopes.T, slopes @ along_w

    def compose(self, outer: Float[Array, " d"], inner: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the λ of A_outer(A_inner(p)): first ``inner``, then ``outer``."""
        self._require_group("compose")
        f = self.linear(outer)
        linear = (f[:, :, None] * self.linear(inner)[None, :, :]).sum(axis=1)
        shift = (f * self.shift(inner)[None, :]).sum(axis=1) + self.shift(outer)
        return self.from_linear(linear, shift)

    def inverse(self, lam: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the λ that undoes ``lam``."""
        self._require_group("inverse")
        inverse = _inverse(self.linear(lam))
        return self.from_linear(inverse, -(inverse * self.shift(lam)[None, :]).sum(axis=1))

    def _require_group(self, what: str) -> None:
        if not self.is_group:
            raise TypeError(
                f"{type(self).__name__} is not a group, so it has no {what}: use 'affine', "
                "which contains it, or inverse_coordinates for the inverse map."
            )


def _inverse(m: Float[Array, "2 2"]) -> Float[Array, "2 2"]:
    """Inverse of a 2×2 matrix in closed form."""
    return jnp.stack([jnp.stack(row) for row in _inverse_entries(m)])


def _inverse_entries(m: Float[Array, "2 2"]) -> Entries:
    """Entries of the inverse, one by one, with one division: XLA makes kernels of few others."""
    a, b, c, d = jnp.unstack(m.reshape(4))
    share = 1 / (a * d - b * c)
    return (d * share, -b * share), (-c * share, a * share)


# int32, which means the same whether or not JAX has 64-bit types at the time.
_SECOND = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]], np.int32)
"""Where the product of two of (x, y, 1) stands among xx, xy, x, yy, y, 1."""

MOMENTS = np.block([[_SECOND, _SECOND + 6], [_SECOND + 6, _SECOND + 12]])
"""Where an entry of the metric stands among the 18 sums of p_x², p_x p_y and p_y² times these."""


def moments(
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    xx: Float[Array, " n"],
    xy: Float[Array, " n"],
    yy: Float[Array, " n"],
) -> Float[Array, "6 6"]:
    """Sums of (xx, xy; xy, yy) at all pixels times all products of two of (x, y, 1)."""
    monomials = jnp.stack([x * x, x * y, x, y * y, y, jnp.ones_like(x)])
    # One product at a time: XLA's CPU backend is slow at stacking images it has to compute.
    return jnp.concatenate([monomials @ image for image in (xx, xy, yy)])[MOMENTS]


def rotation(theta: Float[Array, ""]) -> Float[Array, "2 2"]:
    """Rotation matrix R(θ): with y pointing down it turns the image clockwise."""
    c, s = jnp.cos(theta), jnp.sin(theta)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])
