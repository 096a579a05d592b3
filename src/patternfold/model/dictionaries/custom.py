"""A user's own function of (γ, x, y)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.dictionaries.base import AbstractDictionary, Points, Slopes


class CustomDictionary(AbstractDictionary):
    """A dictionary from a JAX function ``b(gamma, x, y) -> (u, v)``.

    Parameters
    ----------
    function : callable
        The coordinate map, smooth in all arguments and a bijection in (x, y). Define it at
        module level: compiled code is kept per function object.
    parameters : Box
        The domain Γ.

    Examples
    --------
    >>> def shrink(gamma, x, y):
    ...     return x / gamma[0], y / gamma[0]
    >>> dictionary = CustomDictionary(shrink, Box(["sigma"], [0.1], [1.0]))
    """

    function: Callable[..., Any] = eqx.field(static=True)
    parameters: Box

    def __init__(self, function: Callable[..., Any], parameters: Box):
        # The inherited annotation would put ``parameters`` first.
        self.function = function
        self.parameters = parameters

    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map with the user's function."""
        u, v = self.function(gamma, x, y)
        return jnp.broadcast_to(u, x.shape), jnp.broadcast_to(v, y.shape)

    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """Forward-mode derivatives in x and y, point by point."""
        one, zero = jnp.ones_like(x), jnp.zeros_like(x)

        def along(dx: Points, dy: Points) -> tuple[Points, Points]:
            return jax.jvp(lambda x, y: self.coordinates(gamma, x, y), (x, y), (dx, dy))[1]

        (ux, vx), (uy, vy) = along(one, zero), along(zero, one)
        return (ux, uy), (vx, vy)

    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Forward-mode derivatives in γ."""
        du, dv = jax.jacfwd(self.coordinates)(gamma, x, y)
        return list(jnp.moveaxis(du, -1, 0)), list(jnp.moveaxis(dv, -1, 0))
