"""Pictures that stand for parts while a mixture is learned: sampled between their pixels.

Averages of aligned images are at hand after one pass over the images, while atoms would have to be
selected for each of hundreds of parts at every step. Parts become patterns of atoms at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.learning.distance import Distance
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.model.atoms import evaluate
from patternfold.model.grid import Grid
from patternfold.model.manifold import warped_pixels


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Prototypes:
    """Pictures (P, n) on the grid with their slopes along x and y; 0 outside."""

    stack: Any  # (P, n, 3): the value and its two slopes
    grid: Grid = field(metadata={"static": True})

    def sample(self, which: Array, x: Array, y: Array, channels: int) -> Float[Array, "B n c"]:
        """Bilinear samples of each row's picture at places of its own."""
        grid = self.grid
        line = y / grid.pixel + (grid.height - 1) / 2
        column = x / grid.pixel + (grid.width - 1) / 2
        top, left = jnp.floor(line), jnp.floor(column)
        low, right = (line - top)[..., None], (column - left)[..., None]
        flat = self.stack[..., :channels].reshape(-1, channels)
        first = (which.astype(jnp.int32) * grid.n_pixels)[:, None]

        def at(i: Array, j: Array) -> Array:
            inside = (i >= 0) & (i < grid.height) & (j >= 0) & (j < grid.width)
            index = first + jnp.where(inside, i * grid.width + j, 0).astype(jnp.int32)
            return jnp.where(inside[..., None], flat[index], 0)

        above = (1 - right) * at(top, left) + right * at(top, left + 1)
        below = (1 - right) * at(top + 1, left) + right * at(top + 1, left + 1)
        return (1 - low) * above + low * below


def make_prototypes(pictures: Float[Array, "P n"], grid: Grid, blur: float = 0.0) -> Prototypes:
    """Pictures with their slopes, after a blur exp(−r²/s²) of width s; for compiled code."""
    square = pictures.reshape(len(pictures), grid.height, grid.width)
    if blur:
        down, across = (
            jnp.asarray(_blur_matrix(axis, blur), pictures.dtype)
            for axis in (grid.rows, grid.columns)
        )
        square = jnp.einsum("ih,phw,jw->pij", down, square, across)
    wide = jnp.pad(square, ((0, 0), (1, 1), (1, 1)))
    along_x = (wide[:, 1:-1, 2:] - wide[:, 1:-1, :-2]) / (2 * grid.pixel)
    along_y = (wide[:, 2:, 1:-1] - wide[:, :-2, 1:-1]) / (2 * grid.pixel)
    stack = jnp.stack([square, along_x, along_y], axis=-1)
    return Prototypes(stack.reshape(len(pictures), -1, 3), grid)


def _blur_matrix(axis: np.ndarray, blur: float) -> np.ndarray:
    """Weights of a Gaussian along an axis; those of a line add up to 1 far from the border."""
    gap = (axis[:, None] - axis[None]) / blur
    weights = np.exp(-(gap**2))
    return weights / weights.sum(axis=1).max()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PrototypeDistance(Distance):
    """‖u − U_λ(p)‖² where p is a picture; ``which`` always names the picture of a row."""

    atoms: Any  # Prototypes
    transformation: Any
    x: Any
    y: Any
    lighting: Lighting = field(default=PLAIN, metadata={"static": True})
    reference: Any = None
    terms: Any = None

    def with_reference(self) -> PrototypeDistance:
        """The same, with the energies of the pictures, which bound the gain."""
        if self.reference is not None:
            return self
        energies = self.lighting.energies(self.atoms.stack[..., 0], None)
        return replace(self, reference=energies)

    def _over_atoms(
        self, function: Callable[..., Any], lam: Float[Array, "B d"], which: Int[Array, " B"] | None
    ) -> Any:
        """Values, or values and slopes, at the warped pixels of every row."""
        assert which is not None
        warped = warped_pixels(self.transformation, lam, self.x, self.y)
        if function is evaluate:
            return self.atoms.sample(which, *warped, 1)[..., 0]
        sampled = self.atoms.sample(which, *warped, 3)
        return sampled[..., 0], sampled[..., 1], sampled[..., 2]
