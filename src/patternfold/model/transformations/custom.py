"""A user's own function of (λ, x, y)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import Points
from patternfold.model.transformations.smooth import AbstractSmoothTransformation, inverse_point


class CustomTransformation(AbstractSmoothTransformation):
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
        The inverse map ``(lam, x', y') -> (x, y)``, which aligning images takes; without it Newton
        steps find it point by point.
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

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map image coordinates to pattern coordinates with the user's function."""
        x_new, y_new = self.function(lam, x, y)
        return jnp.broadcast_to(x_new, x.shape), jnp.broadcast_to(y_new, y.shape)

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """Map pattern coordinates to image coordinates with the user's inverse, or a local one."""
        if self.inverse_function is None:
            return inverse_point(lambda u, v: self.coordinates(lam, u, v), x, y)
        x_new, y_new = self.inverse_function(lam, x, y)
        return jnp.broadcast_to(x_new, x.shape), jnp.broadcast_to(y_new, y.shape)
