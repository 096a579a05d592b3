"""All affine maps that keep orientation (θ, t_x, t_y, s_x, s_y, shear)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of, rotation


class Affine(AbstractAffineTransformation):
    """Stretch each axis, shear along x, rotate, shift: (x, y) = R(θ) K(k) diag(s) (x', y') + t.

    K(k) = [[1, k], [0, 1]]. Every linear map with positive determinant has this form once.

    Examples
    --------
    >>> from patternfold import Affine
    >>> Affine().parameters.names
    ('theta', 'tx', 'ty', 'sx', 'sy', 'shear')
    >>> Affine().identity
    array([0., 0., 0., 1., 1., 0.])
    """

    parameters: Box = Box(
        ["theta", "tx", "ty", "sx", "sy", "shear"],
        [-np.pi, -0.5, -0.5, 0.5, 0.5, -0.5],
        [np.pi, 0.5, 0.5, 2.0, 2.0, 0.5],
        periodic=["theta"],
    )
    translation: tuple[str, str] | None = eqx.field(default=("tx", "ty"), static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of(
        "theta", "tx", "ty", "sx", "sy", "shear"
    )
    is_group: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """No rotation, no shift, scale 1 on both axes, no shear."""
        return np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = R(θ) K(k) diag(s_x, s_y)."""
        theta, _, _, sx, sy, k = jnp.unstack(lam)
        first, second = jnp.unstack(rotation(theta), axis=1)
        return jnp.stack([sx * first, sy * (k * first + second)], axis=1)

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = (t_x, t_y)."""
        return lam[1:3]

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """QR factorisation of F with a positive diagonal."""
        first, second = linear[:, 0], linear[:, 1]
        sx = jnp.hypot(first[0], first[1])
        unit = first / sx
        sy = unit[0] * second[1] - unit[1] * second[0]
        shear = (unit * second).sum() / sy
        theta = jnp.arctan2(first[1], first[0])
        return jnp.concatenate([theta[None], shift, jnp.stack([sx, sy, shear])])

    def formula(self) -> str:
        """diag(s)⁻¹ K(−k) R(−θ) (x − t)."""
        return """([theta, tx, ty, sx, sy, shear], x, y) => {
            const c = Math.cos(theta), n = Math.sin(theta);
            const across = c * (x - tx) + n * (y - ty), down = c * (y - ty) - n * (x - tx);
            return [(across - shear * down) / sx, down / sy];
        }"""
