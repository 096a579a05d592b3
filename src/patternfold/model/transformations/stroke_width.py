"""Width of strokes: the atoms themselves are widened (w)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model import units
from patternfold.model.box import Box
from patternfold.model.transformations.base import AbstractAffineTransformation

USUAL_WIDTH = 0.1
"""Width σ of strokes that w is read for, where half the image is 1."""


class StrokeWidth(AbstractAffineTransformation):
    """Draw the pattern with a broader or a finer pen: no point moves, and atoms are widened.

    Squares of the atoms' widths grow by 2 σ₀ w with σ₀ = 0.1, so that a stroke of that width grows
    wider by about w; wide atoms hardly change. Widening a Gaussian blurs it. Negative w makes atoms
    narrower, none of them to nothing.

    Examples
    --------
    Such families stand behind others:

    >>> from patternfold import StrokeWidth, Similarity
    >>> (Similarity() + StrokeWidth()).parameters.names
    ('theta', 'tx', 'ty', 's', 'stroke')
    """

    parameters: Box = Box(["stroke"], [-0.06], [0.06])
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"stroke": (-1.0, 1.0)}
    measures: ClassVar[Mapping[str, str]] = {"stroke": units.LENGTH}
    coarse_nodes: ClassVar[Mapping[str, int]] = {"stroke": 1}
    widening: ClassVar[tuple[str, ...]] = ("stroke",)
    is_group: ClassVar[bool] = False

    @property
    def identity(self) -> np.ndarray:
        """The pattern's own strokes."""
        return np.zeros(1)

    def spread(self, lam: Float[Array, " d"]) -> Float[Array, ""]:
        """2 σ₀ w."""
        return 2 * USUAL_WIDTH * lam[0]

    def linear(self, lam: Float[Array, " d"]) -> Float[Array, "2 2"]:
        """F = I."""
        return jnp.eye(2, dtype=lam.dtype)

    def shift(self, lam: Float[Array, " d"]) -> Float[Array, " 2"]:
        """t = 0."""
        return jnp.zeros(2, lam.dtype)

    def from_linear(
        self, linear: Float[Array, "2 2"], shift: Float[Array, " 2"]
    ) -> Float[Array, " d"]:
        """The map tells nothing about w."""
        return jnp.zeros(1, linear.dtype)

    def formula(self) -> str:
        """No point moves."""
        return "(lam, x, y) => [x, y]"

    def spread_formula(self) -> str:
        """2 σ₀ w."""
        return f"([stroke]) => {2 * USUAL_WIDTH!r} * stroke"
