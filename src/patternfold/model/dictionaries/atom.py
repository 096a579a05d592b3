"""The paper's dictionary: the mother function turned, shifted and stretched, eq. DictModel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.box import Box
from patternfold.model.dictionaries.base import (
    AbstractDictionary,
    Points,
    Scalar,
    Slopes,
    widened,
)

MOST_ELONGATED = 6
"""Largest ratio of the widths of an atom that the global search tries."""

N_WIDTHS, N_ANGLES = 6, 8
"""Number of widths and of angles that it tries."""


class AtomDictionary(AbstractDictionary):
    """Rotation, translation and anisotropic scaling of the mother function, eq. DictModel.

    .. math:: (u, v) = diag(σ_x^{-1}, σ_y^{-1}) R(-ψ) (x - τ_x, y - τ_y)

    Examples
    --------
    >>> from patternfold import AtomDictionary
    >>> AtomDictionary().parameters.names
    ('psi', 'tau_x', 'tau_y', 'sigma_x', 'sigma_y')
    """

    parameters: Box = Box(
        ["psi", "tau_x", "tau_y", "sigma_x", "sigma_y"],
        [-math.pi, -1.0, -1.0, 0.02, 0.02],
        [math.pi, 1.0, 1.0, 2.0, 2.0],
        periodic=["psi"],
    )
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {
        "psi": (-100.0, 100.0),
        "tau_x": (-100.0, 100.0),
        "tau_y": (-100.0, 100.0),
        "sigma_x": (1e-4, 1e3),
        "sigma_y": (1e-4, 1e3),
    }
    is_affine: ClassVar[bool] = True
    is_dict_model: ClassVar[bool] = True
    positions: ClassVar[tuple[str, str] | None] = ("tau_x", "tau_y")

    def centred(self, gamma: Float[Array, " s"]) -> Float[Array, " 6"]:
        """diag(1/σ) R(−ψ) and τ."""
        (ux, uy), (vx, vy) = AtomDictionary.jacobian(self, gamma, gamma[1], gamma[2])
        return jnp.stack([ux, uy, vx, vy, gamma[1], gamma[2]])

    def coordinates(self, gamma: Float[Array, " s"], x: Points, y: Points) -> tuple[Points, Points]:
        """Shift by −τ, turn by −ψ, divide by σ."""
        (ux, uy), (vx, vy) = self.jacobian(gamma, x, y)
        _, tau_x, tau_y, *_ = jnp.unstack(gamma)
        dx, dy = x - tau_x, y - tau_y
        return ux * dx + uy * dy, vx * dx + vy * dy

    def jacobian(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[tuple[Slopes, Slopes], tuple[Slopes, Slopes]]:
        """Rows of diag(1/σ) R(−ψ), the same at every point."""
        psi, _, _, sigma_x, sigma_y = jnp.unstack(gamma)
        c, s = jnp.cos(psi), jnp.sin(psi)
        return (c / sigma_x, s / sigma_x), (-s / sigma_y, c / sigma_y)

    def derivatives(
        self, gamma: Float[Array, " s"], x: Points, y: Points
    ) -> tuple[list[Points], list[Points]]:
        """Closed form: turning mixes u and v, scaling shrinks them, shifting is the Jacobian."""
        (ux, uy), (vx, vy) = self.jacobian(gamma, x, y)
        u, v = self.coordinates(gamma, x, y)
        zero, one = jnp.zeros_like(u), jnp.ones_like(u)
        sigma_x, sigma_y = gamma[3], gamma[4]
        du = [v * (sigma_y / sigma_x), -ux * one, -uy * one, -u / sigma_x, zero]
        dv = [-u * (sigma_x / sigma_y), -vx * one, -vy * one, zero, -v / sigma_y]
        return du, dv

    def check(self, gamma: np.ndarray) -> None:
        """Refuse widths σ ≤ 0."""
        for name in ("sigma_x", "sigma_y"):
            values = gamma[:, self.parameters.index(name)]
            if (values <= 0).any():
                row = int(np.argmax(values <= 0))
                raise ValueError(
                    f"gamma[{row}] has {name}={values[row]:.6g}; the widths of an atom must be "
                    "positive."
                )

    def formula(self) -> str:
        """diag(σ)⁻¹ R(−ψ) (x − τ)."""
        return """([psi, tauX, tauY, sigmaX, sigmaY], x, y) => {
            const c = Math.cos(psi), s = Math.sin(psi), dx = x - tauX, dy = y - tauY;
            return [(c * dx + s * dy) / sigmaX, (c * dy - s * dx) / sigmaY];
        }"""

    def resolved(self, pixel: float) -> Box:
        """Widths of at least three quarters of a pixel."""
        box, bounds = self.parameters, {}
        for name in ("sigma_x", "sigma_y"):
            low, high = box.lower[box.index(name)], box.upper[box.index(name)]
            bounds[name] = (max(low, min(0.75 * pixel, 0.5 * high)), high)
        return box.with_bounds(bounds)

    def shapes(self, narrow: float, wide: float, radial: bool) -> np.ndarray:
        """Widths in geometric steps, angles in even ones."""
        box = self.parameters
        narrow = max(*box.lower[3:], narrow)
        wide = max(narrow, min(*box.upper[3:], wide))
        widths = np.geomspace(narrow, wide, N_WIDTHS)
        return shapes_at_origin(widths, N_ANGLES, radial, MOST_ELONGATED)

    def ellipses(self, gamma: np.ndarray) -> np.ndarray:
        """Around τ, with half-axes σ, the first at the angle ψ."""
        return gamma[:, [1, 2, 3, 4, 0]]

    def in_frame(
        self, gamma: np.ndarray, linear: np.ndarray, shift: np.ndarray, radial: bool
    ) -> np.ndarray | None:
        """Multiply each atom's matrix by D and split it into widths and an angle again."""
        moved = np.array(gamma)
        moved[:, 1:3] = np.linalg.solve(linear, (gamma[:, 1:3] - shift).T).T
        if np.array_equal(linear, np.eye(2)):
            return moved
        c, s = np.cos(gamma[:, 0]), np.sin(gamma[:, 0])
        rows = np.stack([np.stack([c, s], axis=1), np.stack([-s, c], axis=1)], axis=1)
        matrix = rows / gamma[:, 3:5, None] @ linear
        split = _split_radial(matrix) if radial else _split(matrix)
        if split is None:
            return None
        moved[:, 0], moved[:, 3:5] = split
        return moved

    def blurred(
        self, coef: Float[Array, "*m K"], gamma: Float[Array, "*m K s"], width: Scalar
    ) -> tuple[Float[Array, "*m K"], Float[Array, "*m K s"]]:
        """σ² + w² instead of σ², and the same integral."""
        sigma = gamma[..., 3:5]
        wider = jnp.sqrt(sigma**2 + width**2)
        return coef * (sigma / wider).prod(axis=-1), jnp.concatenate([gamma[..., :3], wider], -1)

    def widening(self, gamma: Float[Array, " s"], spread: Any) -> tuple[Any, Any, Any]:
        """σ² + s instead of σ², less high as the atom grows longer: exact blurs of a Gaussian."""
        square_x, square_y = gamma[3] ** 2, gamma[4] ** 2
        x, y = widened(spread / square_x), widened(spread / square_y)
        # Atoms side by side along a line share its length: their heights go down as they grow.
        height = jnp.sqrt((square_x + square_y) / (square_x * x + square_y * y))
        return height, 1 / jnp.sqrt(x), 1 / jnp.sqrt(y)

    def widening_formula(self) -> str:
        """The same."""
        return """([psi, tauX, tauY, sigmaX, sigmaY], spread) => {
            const grown = (z) => (z < 0 ? 1 / (1 - z) : 1 + z), a = sigmaX ** 2, b = sigmaY ** 2;
            const x = grown(spread / a), y = grown(spread / b);
            return [Math.sqrt((a + b) / (a * x + b * y)), 1 / Math.sqrt(x), 1 / Math.sqrt(y)];
        }"""


def shapes_at_origin(
    widths: np.ndarray, n_angles: int, radial: bool, most_elongated: float = np.inf
) -> np.ndarray:
    """γ at the origin: all pairs of widths, at all angles that look different."""
    # A radial mother looks the same after half a turn, and after swapping its axes by a quarter.
    angles = np.arange(n_angles) * (np.pi if radial else 2 * np.pi) / n_angles
    rows = [
        (psi, 0.0, 0.0, a, b)
        for i, a in enumerate(widths)
        for b in (widths[: i + 1] if radial else widths)
        for psi in (angles[:1] if radial and a == b else angles)
        if max(a, b) <= most_elongated * min(a, b)
    ]
    return np.array(rows)


def _split_radial(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ψ and σ of B = U diag(1/σ) R(−ψ); a radial mother does not see U."""
    _, singular, right = np.linalg.svd(matrix)
    return np.arctan2(right[:, 0, 1], right[:, 0, 0]), 1 / singular


def _split(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ψ and σ of B = diag(1/σ) R(−ψ), or None where B is not of that form."""
    lengths = np.linalg.norm(matrix, axis=2)
    first, second = (matrix / lengths[:, :, None]).transpose(1, 0, 2)
    # The second row must be the first, turned by a quarter; off by rounding only.
    turned = np.stack([-first[:, 1], first[:, 0]], axis=1)
    if np.abs(second - turned).max(initial=0.0) > 1e-9:
        return None
    return np.arctan2(first[:, 1], first[:, 0]), 1 / lengths
