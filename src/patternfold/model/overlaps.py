"""Inner products of a pattern with itself, turned or mirrored about a centre.

    ⟨p, g p⟩ = ∫ p(x) p(g⁻¹x) exp(−2‖x − c‖²/R²) dx

for isometries g about c. The weight leaves out what lies far outside the window, where no image
tells anything. For atoms of a Gaussian the integral is known in closed form, as that of a product
of three Gaussians; for others it is a sum over a grid.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from patternfold.model.pattern import Pattern

REACH = 1.5
"""R, in half sides of the window."""

QUADRATURE = 96
"""Points along each side of the grid, from −2 to 2 about the centre."""

Overlap = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From isometries (G, 2, 2) and a centre (2,) to ⟨p, g p⟩ of each, shape (G,)."""


def turns(angles: np.ndarray) -> np.ndarray:
    """Rotations by angles, as matrices (G, 2, 2)."""
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def mirrors(angles: np.ndarray) -> np.ndarray:
    """Reflections at axes with these angles, as matrices (G, 2, 2)."""
    c, s = np.cos(2 * angles), np.sin(2 * angles)
    return np.stack([np.stack([c, s], -1), np.stack([s, -c], -1)], -2)


def overlap_of(pattern: Pattern) -> Overlap:
    """Return ⟨p, g p⟩ as a function of g and the centre."""
    parts = _gaussians(pattern)
    if parts is None:
        return lambda isometries, centre: _on_grid(pattern, isometries, centre)[0]
    return lambda isometries, centre: _in_closed_form(*parts, isometries, centre)[0]


def centroid(pattern: Pattern, steps: int = 20) -> np.ndarray:
    """Centroid of p²: symmetric patterns have their centre there, or their axis through it."""
    parts, centre, same = _gaussians(pattern), np.zeros(2), np.eye(2)[None]
    for _ in range(steps):
        if parts is None:
            energy, moment = _on_grid(pattern, same, centre)
        else:
            energy, moment = _in_closed_form(*parts, same, centre)
        centre = centre + moment[0] / energy[0]
    return centre


def _gaussians(pattern: Pattern) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Heights, middles and matrices of atoms a exp(−(x − m)ᵀ A (x − m)), None if they are not."""
    height, rows = pattern.mother.gaussian_height, None
    if height is not None and pattern.n_atoms:
        with jax.enable_x64(True):
            gamma = jnp.asarray(pattern.gamma)
            first = pattern.dictionary.centred(gamma[0])
            rows = (
                None if first is None else np.asarray(jax.vmap(pattern.dictionary.centred)(gamma))
            )
    if height is None or rows is None:
        return None
    linear = rows[:, :4].reshape(-1, 2, 2)
    return height * pattern.coef, rows[:, 4:], np.swapaxes(linear, 1, 2) @ linear


def _in_closed_form(
    height: np.ndarray,
    middle: np.ndarray,
    matrix: np.ndarray,
    isometries: np.ndarray,
    centre: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """⟨p, g p⟩ and its first moment about the centre: products of three Gaussians."""
    middle = middle - centre
    moved = np.einsum("gij,kj->gki", isometries, middle)
    turned = np.einsum("gij,kjl,gml->gkim", isometries, matrix, isometries)
    pulls = np.einsum("kij,kj->ki", matrix, middle)
    moved_pulls = np.einsum("gkij,gkj->gki", turned, moved)
    total = matrix[None, :, None] + turned[:, None] + 2 / REACH**2 * np.eye(2)
    pull = pulls[None, :, None] + moved_pulls[:, None]
    deficit = (pulls * middle).sum(-1)[None, :, None] + (moved_pulls * moved).sum(-1)[:, None]
    determinant = total[..., 0, 0] * total[..., 1, 1] - total[..., 0, 1] ** 2
    x = (total[..., 1, 1] * pull[..., 0] - total[..., 0, 1] * pull[..., 1]) / determinant
    y = (total[..., 0, 0] * pull[..., 1] - total[..., 0, 1] * pull[..., 0]) / determinant
    exponent = pull[..., 0] * x + pull[..., 1] * y - deficit
    products = height[:, None] * height * np.pi / np.sqrt(determinant) * np.exp(exponent)
    moment = np.stack([(products * x).sum((1, 2)), (products * y).sum((1, 2))], -1)
    return products.sum((1, 2)), moment


def _on_grid(
    pattern: Pattern, isometries: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same, by sums over a grid."""
    side = np.linspace(-2, 2, QUADRATURE)
    points = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    weights = np.exp(-2 / REACH**2 * (points**2).sum(1)) * (side[1] - side[0]) ** 2
    own = pattern(*(points + centre).T) * weights
    products = []
    for isometry in isometries:
        moved = pattern(*(points @ isometry + centre).T)  # the inverse is the transpose
        products.append(own * moved)
    table = np.stack(products)
    return table.sum(axis=1), table @ points
