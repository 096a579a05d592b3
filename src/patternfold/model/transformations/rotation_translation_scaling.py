"""The paper's model (θ, t_x, t_y, s_x, s_y), eq. TransModel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation, limits_of, rotation


class RotationTranslationScaling(AbstractAffineTransformation):
    """Stretch each axis of the pattern, rotate, shift.

    .. math:: (x', y') = diag(s_x^{-1}, s_y^{-1}) R(-θ) (x - t_x, y - t_y)

    Two such maps compose to one with shear, so the family is not a group.

    Examples
    --------
    >>> from patternfold import RotationTranslationScaling
    >>> RotationTranslationScaling().parameters.names
    ('theta', 'tx', 'ty', 'sx', 'sy')
    >>> RotationTranslationScaling().identity
    array([0., 0., 0., 1., 1.])
    """

    parameters: Box = Box(
        ["theta", "tx", "ty", "sx", "sy"],
        [-np.pi, -0.5, -0.5, 0.5, 0.5],
        [np.pi, 0.5, 0.5, 2.0, 2.0],
        periodic=["theta"],
    )
    translation: tuple[str, str] | None = eqx.field(default=("tx", "ty"), static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = limits_of("theta", "tx", "ty", "sx", "sy")
    is_group: ClassVar[bool] = False

    @property
    def identity(self) -> np.ndarray:
        """No rotation, no shift, scale 1 on both axes."""
        return np.array([0.0, 0.0, 0.0, 1.0, 1.0])

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = R(θ) diag(s_x, s_y)."""
        return rotation(lam[0]) * lam[None, 3:5]

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = (t_x, t_y)."""
        return lam[1:3]

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """Angle of F's first column and the lengths of both columns."""
        theta = jnp.arctan2(linear[1, 0], linear[0, 0])
        scales = jnp.sqrt((linear**2).sum(axis=0))
        return jnp.concatenate([theta[None], shift, scales])

    def formula(self) -> str:
        """diag(s)⁻¹ R(−θ) (x − t)."""
        return """([theta, tx, ty, sx, sy], x, y) => {
            const c = Math.cos(theta), n = Math.sin(theta);
            return [(c * (x - tx) + n * (y - ty)) / sx, (c * (y - ty) - n * (x - tx)) / sy];
        }"""
