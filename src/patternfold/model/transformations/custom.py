"""A user's own function of (λ, x, y)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractTransformation, Points


class CustomTransformation(AbstractTransformation):
    """A transformation from a function ``coordinates(lam, x, y) -> (x', y')`` written with JAX.

    Parameters
    ----------
    function : callable
        The coordinate map, smooth in ``lam`` and a bijection in (x, y). Define it at module
        level: compiled code is kept per function object, and models with it can be pickled.
    parameters : Box
        The domain Λ.
    identity : sequence of float
        The parameters for which the map is (x, y) itself.
    inverse : callable, optional
        The inverse map ``(lam, x', y') -> (x, y)``; aligning images needs it.
    translation : pair of str, optional
        Names of two parameters that merely shift the image.

    Examples
    --------
    >>> def shear(lam, x, y):
    ...     return x - lam[0] * y, y
    >>> transformation = CustomTransformation(shear, Box(["k"], [-1.0], [1.0]), identity=[0.0])
    """

    function: Callable[..., Any] = eqx.field(static=True)
    parameters: Box
    identity_values: tuple[float, ...] = eqx.field(static=True)
    inverse_function: Callable[..., Any] | None = eqx.field(static=True)
    translation: tuple[str, str] | None = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Box,
        identity: Sequence[float],
        inverse: Callable[..., Any] | None = None,
        translation: tuple[str, str] | None = None,
    ):
        self.function = function
        self.parameters = parameters
        self.identity_values = tuple(float(v) for v in identity)
        self.inverse_function = inverse
        self.translation = None if translation is None else (translation[0], translation[1])
        if len(self.identity_values) != parameters.dim:
            raise ValueError(
                f"identity={self.identity_values} has {len(self.identity_values)} values; "
                f"the box has {parameters.dim} parameters {parameters.names}."
            )
        for name in self.translation or ():
            parameters.index(name)

    @property
    def identity(self) -> np.ndarray:
        """The parameters for which the map is (x, y) itself."""
        return np.array(self.identity_values)

    @property
    def has_inverse(self) -> bool:
        """Whether the user gave one."""
        return self.inverse_function is not None

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map image coordinates to pattern coordinates with the user's function."""
        x_new, y_new = self.function(lam, x, y)
        return jnp.broadcast_to(x_new, x.shape), jnp.broadcast_to(y_new, y.shape)

    def derivatives(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Float[Array, "d *p"], Float[Array, "d *p"]]:
        """Derivatives in λ by forward-mode differentiation."""
        dx, dy = jax.jacfwd(self.coordinates)(lam, x, y)
        return jnp.moveaxis(dx, -1, 0), jnp.moveaxis(dy, -1, 0)

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """Map pattern coordinates to image coordinates with the user's inverse."""
        if self.inverse_function is None:
            raise TypeError(
                "This transformation has no inverse map, which aligning images needs: give one "
                "with CustomTransformation(..., inverse=function_of_lam_x_y)."
            )
        x_new, y_new = self.inverse_function(lam, x, y)
        return jnp.broadcast_to(x_new, x.shape), jnp.broadcast_to(y_new, y.shape)

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
