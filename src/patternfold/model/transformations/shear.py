"""Shear along the pattern's x axis (k)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of


class Shear(AbstractAffineTransformation):
    """Slant upright lines, as handwriting is slanted: (x', y') = (x − k y, y).

    Examples
    --------
    Such families stand behind others:

    >>> from patternfold import Shear, Similarity
    >>> (Similarity() + Shear()).parameters.names
    ('theta', 'tx', 'ty', 's', 'shear')
    """

    parameters: Box = Box(["shear"], [-0.5], [0.5])
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of("shear")
    coarse_nodes: ClassVar[Mapping[str, int]] = {"shear": 3}
    has_axes: ClassVar[bool] = True
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """No shear."""
        return np.zeros(1)

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = [[1, k], [0, 1]]."""
        one, zero = jnp.ones_like(lam[0]), jnp.zeros_like(lam[0])
        return jnp.stack([jnp.stack([one, lam[0]]), jnp.stack([zero, one])])

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = 0."""
        return jnp.zeros(2, lam.dtype)

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """k = F₁₂."""
        return linear[0, 1:]

    def formula(self) -> str:
        """x − k y."""
        return "([shear], x, y) => [x - shear * y, y]"
