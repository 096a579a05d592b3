"""Rotation and translation (θ, t_x, t_y)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of, rotation


class RotationTranslation(AbstractAffineTransformation):
    """Rigid motion: (x', y') = R(−θ) (x − t_x, y − t_y).

    Examples
    --------
    >>> from patternfold import RotationTranslation
    >>> RotationTranslation().parameters.names
    ('theta', 'tx', 'ty')
    >>> RotationTranslation().identity
    array([0., 0., 0.])
    """

    parameters: Box = Box(
        ["theta", "tx", "ty"], [-np.pi, -0.5, -0.5], [np.pi, 0.5, 0.5], periodic=["theta"]
    )
    translation: tuple[str, str] | None = eqx.field(default=("tx", "ty"), static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of("theta", "tx", "ty")
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """No rotation, no shift."""
        return np.zeros(3)

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = R(θ)."""
        return rotation(lam[0])

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = (t_x, t_y)."""
        return lam[1:3]

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """θ is the angle of F's first column."""
        theta = jnp.arctan2(linear[1, 0], linear[0, 0])
        return jnp.concatenate([theta[None], shift])

    def formula(self) -> str:
        """R(−θ) (x − t)."""
        return """([theta, tx, ty], x, y) => {
            const c = Math.cos(theta), n = Math.sin(theta);
            return [c * (x - tx) + n * (y - ty), c * (y - ty) - n * (x - tx)];
        }"""
