"""Bending along the pattern's x axis (κ): worms, larvae, letters."""

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

STRAIGHT = 0.01
"""Angles below which arctan is summed as a series, whose next term is rounding in float64. What is
divided by κ there, and differentiated by it, has lost its digits."""

CENTRE = 1e-6
"""How near to the centre of the circle nothing is computed."""


class Bend(AbstractSmoothTransformation):
    r"""Bend the pattern's x axis into an arc of curvature κ, its length kept.

    With the centre of the circle at (0, 1/κ), the pattern's x' is the length along the arc and y'
    the distance from it:

    .. math:: x' = \frac{1}{κ} \arctan\frac{κ x}{1 - κ y}, \quad
              y' = \frac{1}{κ} \left(1 - \sqrt{(κ x)^2 + (1 - κ y)^2}\right)

    Lengths along the axis and distances from it stay as they are. The centre of the circle itself,
    at least one half side away, is where the pattern has to be empty.

    Examples
    --------
    Such families stand behind others:

    >>> from patternfold import Bend, Similarity
    >>> (Similarity() + Bend()).parameters.names
    ('theta', 'tx', 'ty', 's', 'bend')
    """

    parameters: Box = Box(["bend"], [-1.0], [1.0])
    translation: tuple[str, str] | None = eqx.field(default=None, static=True)
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"bend": (-10.0, 10.0)}
    coarse_nodes: ClassVar[Mapping[str, int]] = {"bend": 3}
    has_axes: ClassVar[bool] = True

    @property
    def identity(self) -> np.ndarray:
        """Straight."""
        return np.zeros(1)

    def coordinates(self, lam: Float[Array, " d"], x: Points, y: Points) -> tuple[Points, Points]:
        """Length along the arc, and distance from it."""
        k = lam[0]
        across, toward = k * x, 1 - k * y
        # At the centre of the circle there are no derivatives, and no pattern either.
        toward = jnp.where(jnp.abs(toward) < CENTRE, CENTRE, toward)
        radius = jnp.sqrt(across**2 + toward**2)
        return _arc_length(k, x, toward), (2 * y - k * (x * x + y * y)) / (1 + radius)

    def inverse_coordinates(
        self, lam: Float[Array, " d"], x: Points, y: Points
    ) -> tuple[Points, Points]:
        """Along the arc by x', away from it by y'."""
        half = lam[0] * x / 2
        straight = jnp.abs(half) < STRAIGHT
        sound = jnp.where(straight, 1, half)
        # sin(h)/h, of which x and y are made without a difference of nearly equal numbers.
        series = 1 - half**2 / 6 + half**4 / 120
        share = jnp.where(straight, series, jnp.sin(sound) / sound)
        away = x * share * (1 - lam[0] * y)
        return away * jnp.cos(half), y + away * jnp.sin(half)

    def formula(self) -> str:
        """The same, with the series where the arc is straight."""
        return f"""([bend], x, y) => {{
            const toward = 1 - bend * y, z = bend * x / toward;
            const radius = Math.hypot(bend * x, toward);
            const series = (1 - z * z * (1 / 3 - z * z * (1 / 5 - z * z / 7))) * x / toward;
            const straight = Math.abs(bend * x) < {STRAIGHT} * toward;
            const along = straight ? series : Math.atan2(bend * x, toward) / bend;
            return [along, (2 * y - bend * (x * x + y * y)) / (1 + radius)];
        }}"""


def _arc_length(k: Float[Array, ""], x: Points, toward: Points) -> Points:
    """arctan(κ x / (1 − κ y)) / κ, also where κ x is small or 0."""
    straight = jnp.abs(k * x) < STRAIGHT * toward
    sound_toward = jnp.where(straight, toward, 1)
    z = jnp.where(straight, k * x / sound_toward, 0)
    series = (1 - z**2 * (1 / 3 - z**2 * (1 / 5 - z**2 / 7))) * x / sound_toward
    across = jnp.where(straight, 1, k * x)
    sound_k = jnp.where(straight, 1, k)
    return jnp.where(straight, series, jnp.arctan2(across, toward) / sound_k)
