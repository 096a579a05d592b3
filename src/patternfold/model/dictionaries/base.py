"""What a dictionary is: b(γ, x, y), its derivatives, and what others may ask of its atoms."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.component import Family

Points = Float[Array, "*p"]
Slopes = Float[Array, "*p"] | Float[Array, ""]
Scalar = Float[Array, ""] | float

USUAL_WIDTH = 0.1
"""Width σ of an atom that a stroke is made of, where half the image is 1."""


class AbstractDictionary(Family):
    """A family of coordinate maps b(γ, x, y) that turn the mother function into atoms.

    A subclass supplies the box Γ as ``parameters``, the map and its derivatives. `formula`, where
    there is one, is a function ``(gamma, x, y) => [u, v]``. The other methods are for what is known
    of special atoms; each says what is done where nothing is.
    """

    parameters: eqx.AbstractVar[Box]
    """The domain Γ."""

    is_affine: ClassVar[bool] = False
    """Whether the map is affine in (x, y) for every γ."""

    is_dict_model: ClassVar[bool] = False
    """Whether b is the paper's eq. DictModel, for which DC decompositions are known."""

    positions: ClassVar[tuple[str, str] | None] = None
    """Names of the parameters that merely shift the atom."""

    @abstractmethod
    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Map pattern coordinates to the mother function's, (u, v) = b(γ, x, y)."""

    @abstractmethod
    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """Return ((∂u/∂x, ∂u/∂y), (∂v/∂x, ∂v/∂y))."""

    @abstractmethod
    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Return ∂u/∂γ_k and ∂v/∂γ_k for every k."""

    def centred(self, gamma: Float[Array, " s"]) -> Float[Array, " 6"] | None:
        """Return B and c of a map b(γ, x) = B (x − c) as (B_11, B_12, B_21, B_22, c_x, c_y).

        Sums over atoms work them out once instead of at every step; None where it is not known.
        """
        return None

    def check(self, gamma: np.ndarray) -> None:
        """Refuse atom parameters for which b(γ, ·) is no bijection."""

    def resolved(self, pixel: float) -> Box:
        """Return Γ with widths that pixels of this size can show; by default all of it."""
        return self.parameters

    def shapes(self, narrow: float, wide: float, radial: bool) -> np.ndarray | None:
        """Return γ at the origin, rows of all shapes that the global search tries everywhere.

        Their widths lie between ``narrow`` and ``wide``; a ``radial`` mother function makes some
        angles look alike. Without `shapes` or `positions`, atoms drawn at random are tried.
        """
        return None

    def extent(self, gamma: np.ndarray) -> np.ndarray:
        """Return the narrow half-width of each atom, 0 where nothing is known."""
        ellipses = self.ellipses(gamma)
        return np.zeros(len(gamma)) if ellipses is None else ellipses[:, 2:4].min(axis=1)

    def ellipses(self, gamma: np.ndarray) -> np.ndarray | None:
        """Return where ‖b(γ, x, y)‖ = 1 for each atom: rows (x, y, a, b, angle), or None.

        a and b are half-axes, the angle is that of a. Known for all maps that are affine.
        """
        if not self.is_affine:
            return None
        linear, offset = _affine_parts(self, gamma)
        # B = U diag(1/a, 1/b) Vᵀ: the circle |B x + o| = 1 has its axes along V.
        _, singular, right = np.linalg.svd(linear)
        centre = -np.linalg.solve(linear, offset[:, :, None])[:, :, 0]
        angle = np.arctan2(right[:, 0, 1], right[:, 0, 0])
        return np.column_stack([centre, 1 / singular, angle])

    def in_frame(
        self, gamma: np.ndarray, linear: np.ndarray, shift: np.ndarray, radial: bool
    ) -> np.ndarray | None:
        """Return γ of q(x) = p(D x + g), for atoms γ of p, or None if q has no such atoms.

        ``linear`` is D, ``shift`` is g, and ``radial`` tells whether turning φ changes nothing.
        """
        return None

    def blurred(
        self, coef: Float[Array, "*m K"], gamma: Float[Array, "*m K s"], width: Scalar
    ) -> tuple[Float[Array, "*m K"], Float[Array, "*m K s"]] | None:
        """Return c and γ of the atoms convolved with exp(−r²/w²) / (π w²), or None.

        Exact for the Gaussian mother function, near enough for others of that shape.
        """
        return None

    def widening(self, gamma: Float[Array, " s"], spread: Any) -> tuple[Any, Any, Any]:
        """Return factors (h, k_u, k_v) with which h φ(k_u u, k_v v) is the atom, widened.

        ``spread``, of any shape, is what is added to the squares of the atom's widths; less than 0
        it makes the atom narrower. Where no widths are known, atoms count as round ones of a usual
        width. Lines made of many atoms keep their brightness.
        """
        factor = 1 / jnp.sqrt(widened(spread / USUAL_WIDTH**2))
        return factor, factor, factor

    def widening_formula(self) -> str | None:
        """Return `widening` as a JavaScript function ``(gamma, spread) => [h, kU, kV]``."""
        return f"""(gamma, spread) => {{
            const z = spread / {USUAL_WIDTH**2!r}, k = Math.sqrt(z < 0 ? 1 - z : 1 / (1 + z));
            return [k, k, k];
        }}"""


def widened(share: Any) -> Any:
    """By how much the square of a width grows: 1 + z, or 1 / (1 − z) to make it smaller."""
    # Smooth to first order at 0, and above 0 however much is taken away.
    return (1 + jnp.maximum(share, 0)) / (1 - jnp.minimum(share, 0))


def _affine_parts(
    dictionary: AbstractDictionary, gamma: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return B (K, 2, 2) and o (K, 2) of b(γ, x) = B x + o, from its values at three points."""
    x, y = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    at_points = jax.vmap(dictionary.coordinates, in_axes=(0, None, None))
    with jax.enable_x64(True):
        uv = np.stack(at_points(*(jnp.asarray(a) for a in (gamma, x, y))), axis=1)
    return uv[:, :, 1:] - uv[:, :, :1], uv[:, :, 0]
