"""What follows from a smooth coordinate map alone: derivatives, tangents, and a local inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.model.transformations.base import AbstractTransformation, Points

NEWTON_STEPS = 16
"""Steps to the inverse of a map: mild ones take three to five, and halved steps add a few."""


class AbstractSmoothTransformation(AbstractTransformation):
    """A family that gives its map alone: the rest follows by differentiation.

    The inverse is found point by point, by Newton steps that are shortened where they lead away:
    it is that of the branch that a point of the pattern itself lies on.
    """

    def derivatives(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Float[Array, "d *p"], Float[Array, "d *p"]]:
        """Derivatives in λ by forward-mode differentiation."""
        dx, dy = jax.jacfwd(self.coordinates)(lam, x, y)
        return jnp.moveaxis(dx, -1, 0), jnp.moveaxis(dy, -1, 0)

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """Map pattern coordinates to image coordinates by Newton's method."""
        return inverse_point(lambda u, v: self.coordinates(lam, u, v), x, y)

    def tangent_products(
        self,
        lam: Float[Array, " d"],
        x: Float[Array, " n"],
        y: Float[Array, " n"],
        along_x: Float[Array, " n"],
        along_y: Float[Array, " n"],
        w: Float[Array, " n"],
    ) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        """Return TᵀT and Tᵀw from the tangent vectors themselves."""
        dx, dy = self.derivatives(lam, x, y)
        vectors = along_x[None] * dx + along_y[None] * dy
        return vectors @ vectors.T, vectors @ w


def inverse_point(
    move: Callable[[Points, Points], tuple[Points, Points]], x: Points, y: Points
) -> tuple[Points, Points]:
    """Return the points that ``move`` takes to (x, y), by damped Newton steps from there."""

    def missed(u: Points, v: Points) -> tuple[Points, Points, Points]:
        there_x, there_y = move(u, v)
        a, b = there_x - x, there_y - y
        return a, b, a * a + b * b

    def step(_: Any, state: tuple[Points, ...]) -> tuple[Points, ...]:
        u, v, a, b, square, share = state
        one, zero = jnp.ones_like(u), jnp.zeros_like(u)
        xu, yu = jax.jvp(move, (u, v), (one, zero))[1]
        xv, yv = jax.jvp(move, (u, v), (zero, one))[1]
        determinant = xu * yv - xv * yu
        sound = jnp.where(determinant == 0, 1, determinant)
        u_new = u - share * (yv * a - xv * b) / sound
        v_new = v - share * (xu * b - yu * a) / sound
        new = missed(u_new, v_new)
        # What is no number is no better, either.
        better = new[2] < square
        kept = tuple(
            jnp.where(better, p, q)
            for p, q in zip((u_new, v_new, *new), (u, v, a, b, square), strict=True)
        )
        return *kept, jnp.where(better, jnp.minimum(2 * share, 1), share / 4)

    start = (x, y, *missed(x, y), jnp.ones_like(x))
    u, v, *_ = jax.lax.fori_loop(0, NEWTON_STEPS, step, start)
    return u, v
