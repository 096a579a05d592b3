"""Maps B (x − c) by their own numbers: what sums over atoms are made of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.dictionaries.base import AbstractDictionary, Points, Slopes


class CentredMaps(AbstractDictionary):
    """Maps b(γ, x) = B (x − c) with γ = (B_11, B_12, B_21, B_22, c_x, c_y).

    Affine dictionaries say by `AbstractDictionary.centred` which of these their atoms are. What
    angles and widths amount to is worked out once then, not at every step of a loop.
    """

    parameters: Box = Box(["b11", "b12", "b21", "b22", "cx", "cy"], [-100.0] * 6, [100.0] * 6)

    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Shift by −c, multiply by B."""
        a, b, c, d, cx, cy = jnp.unstack(gamma)
        dx, dy = x - cx, y - cy
        return a * dx + b * dy, c * dx + d * dy

    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """B, the same at every point."""
        a, b, c, d, *_ = jnp.unstack(gamma)
        return (a, b), (c, d)

    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Forward-mode derivatives in γ."""
        du, dv = jax.jacfwd(self.coordinates)(gamma, x, y)
        return list(jnp.moveaxis(du, -1, 0)), list(jnp.moveaxis(dv, -1, 0))
