"""Elastic deformation: a few smooth displacements beyond the affine ones."""

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

MODES = ("xx", "xy", "yy")
"""The monomials of second order."""

MOST = 0.35
"""Largest coefficient, for which the map is one to one: each mode's slopes, |∂/∂x| + |∂/∂y|, stay
below 0.9, so that three of them displace points by less than what lies between these."""


class Elastic(AbstractSmoothTransformation):
    r"""Displace points by bounded quadratic modes: curving, bulging, tapering, all at once.

    .. math:: x' = x + \sum_k a_k m_k(x, y), \quad y' = y + \sum_k b_k m_k(x, y), \quad
              m = \frac{(x^2, x y, y^2)}{1 + x^2 + y^2}

    The modes turned are modes again, so that no frame is better than another. Displacements end at
    what the coefficients are, however far out a point is; their bounds keep them small, and the map
    one to one.

    Examples
    --------
    Such families stand behind others:

    >>> from patternfold import Elastic, Similarity
    >>> family = Similarity() + Elastic()
    >>> len(family.parameters.names)
    10
    """

    parameters: Box = Box(
        [f"elastic_{side}{mode}" for side in "xy" for mode in MODES], [-0.2] * 6, [0.2] * 6
    )
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {
        f"elastic_{side}{mode}": (-MOST, MOST) for side in "xy" for mode in MODES
    }
    coarse_nodes: ClassVar[Mapping[str, int]] = {
        f"elastic_{side}{mode}": 1 for side in "xy" for mode in MODES
    }

    @property
    def identity(self) -> np.ndarray:
        """No displacement."""
        return np.zeros(6)

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Add the modes."""
        modes = _modes(x, y)
        along_x = sum(a * mode for a, mode in zip(lam[:3], modes, strict=True))
        along_y = sum(b * mode for b, mode in zip(lam[3:], modes, strict=True))
        return x + along_x, y + along_y

    def derivatives(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Float[Array, "d *p"], Float[Array, "d *p"]]:
        """The modes themselves, whatever λ is."""
        modes = jnp.stack(_modes(x, y))
        none = jnp.zeros_like(modes)
        return jnp.concatenate([modes, none]), jnp.concatenate([none, modes])

    def formula(self) -> str:
        """Add the modes."""
        return """([a, b, c, d, e, f], x, y) => {
            const s = 1 + x * x + y * y, xx = x * x / s, xy = x * y / s, yy = y * y / s;
            return [x + a * xx + b * xy + c * yy, y + d * xx + e * xy + f * yy];
        }"""


def _modes(x: Points, y: Points) -> tuple[Points, Points, Points]:
    size = 1 + x * x + y * y
    return x * x / size, x * y / size, y * y / size
