"""Translations (t_x, t_y)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of


class Translation(AbstractAffineTransformation):
    """Shift by t: (x', y') = (x − t_x, y − t_y).

    Examples
    --------
    >>> from patternfold import Translation
    >>> Translation().parameters.names
    ('tx', 'ty')
    >>> Translation().identity
    array([0., 0.])
    """

    parameters: Box = Box(["tx", "ty"], [-0.5, -0.5], [0.5, 0.5])
    translation: tuple[str, str] | None = eqx.field(default=("tx", "ty"), static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of("tx", "ty")
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """No shift."""
        return np.zeros(2)

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = I."""
        return jnp.eye(2, dtype=lam.dtype)

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = (t_x, t_y)."""
        return lam

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """λ = t."""
        return shift

    def formula(self) -> str:
        """x − t."""
        return "([tx, ty], x, y) => [x - tx, y - ty]"
