"""Anisotropic scaling (s_x, s_y)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of


class Scaling(AbstractAffineTransformation):
    """Stretch each axis about the centre: (x', y') = (x / s_x, y / s_y).

    Examples
    --------
    >>> from patternfold import Scaling
    >>> Scaling().parameters.names
    ('sx', 'sy')
    >>> Scaling().identity
    array([1., 1.])
    """

    parameters: Box = Box(["sx", "sy"], [0.5, 0.5], [2.0, 2.0])
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of("sx", "sy")
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """Scale 1 on both axes."""
        return np.ones(2)

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = diag(s_x, s_y)."""
        return jnp.diag(lam)

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = 0."""
        return jnp.zeros_like(lam)

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """λ = (F₁₁, F₂₂)."""
        return jnp.diag(linear)

    def formula(self) -> str:
        """Each axis divided by its scale."""
        return "([sx, sy], x, y) => [x / sx, y / sy]"
