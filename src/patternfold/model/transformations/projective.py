"""Perspective (p, q): a plane seen at a slant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.transformations.base import Points
from patternfold.model.transformations.smooth import AbstractSmoothTransformation

HORIZON = 0.05
"""Least depth, relative to the origin's: what lies beyond the horizon is held this near to it."""


class Projective(AbstractSmoothTransformation):
    r"""See the pattern's plane at a slant, the origin and directions from it kept.

    .. math:: (x', y') = (x, y) / (1 + p x + q y)

    With an affine family it makes all homographies: ``"affine+projective"``.

    Examples
    --------
    Such families stand behind others:

    >>> from patternfold import Projective, Similarity
    >>> (Similarity() + Projective()).parameters.names
    ('theta', 'tx', 'ty', 's', 'tilt_x', 'tilt_y')
    """

    parameters: Box = Box(["tilt_x", "tilt_y"], [-0.3, -0.3], [0.3, 0.3])
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {
        "tilt_x": (-1.0, 1.0),
        "tilt_y": (-1.0, 1.0),
    }
    coarse_nodes: ClassVar[Mapping[str, int]] = {"tilt_x": 1, "tilt_y": 1}

    @property
    def identity(self) -> np.ndarray:
        """Seen from the front."""
        return np.zeros(2)

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Divide by the depth."""
        depth = jnp.maximum(1 + lam[0] * x + lam[1] * y, HORIZON)
        return x / depth, y / depth

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """(x', y') / (1 − p x' − q y')."""
        depth = jnp.maximum(1 - lam[0] * x - lam[1] * y, HORIZON)
        return x / depth, y / depth

    def formula(self) -> str:
        """Divide by the depth."""
        return f"""([tiltX, tiltY], x, y) => {{
            const depth = Math.max(1 + tiltX * x + tiltY * y, {HORIZON});
            return [x / depth, y / depth];
        }}"""
