"""Similarity (θ, t_x, t_y, s): the similitude group of the paper's second experiment set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of, rotation


class Similarity(AbstractAffineTransformation):
    """Rotate, shift and scale alike on both axes: (x', y') = s⁻¹ R(−θ) (x − t_x, y − t_y).

    Examples
    --------
    >>> from patternfold import Similarity
    >>> Similarity().parameters.names
    ('theta', 'tx', 'ty', 's')
    >>> Similarity().identity
    array([0., 0., 0., 1.])
    """

    parameters: Box = Box(
        ["theta", "tx", "ty", "s"],
        [-np.pi, -0.5, -0.5, 0.5],
        [np.pi, 0.5, 0.5, 2.0],
        periodic=["theta"],
    )
    translation: tuple[str, str] | None = eqx.field(default=("tx", "ty"), static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of("theta", "tx", "ty", "s")
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """No rotation, no shift, scale 1."""
        return np.array([0.0, 0.0, 0.0, 1.0])

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = s R(θ)."""
        return lam[3] * rotation(lam[0])

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = (t_x, t_y)."""
        return lam[1:3]

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """Angle and length of F's first column."""
        theta = jnp.arctan2(linear[1, 0], linear[0, 0])
        s = jnp.hypot(linear[0, 0], linear[1, 0])
        return jnp.concatenate([theta[None], shift, s[None]])

    def formula(self) -> str:
        """s⁻¹ R(−θ) (x − t)."""
        return """([theta, tx, ty, s], x, y) => {
            const c = Math.cos(theta) / s, n = Math.sin(theta) / s;
            return [c * (x - tx) + n * (y - ty), c * (y - ty) - n * (x - tx)];
        }"""
