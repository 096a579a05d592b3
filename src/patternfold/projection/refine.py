"""Local stage of the projection: batched Levenberg-Marquardt on the analytic tangents.

Minimises ‖u − U_λ(p)‖² over the box Λ for many (image, start) pairs at once. A step costs one
pass over the atoms: the field at the trial point serves both to judge it and to go on from it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from patternfold.atoms import Atoms, evaluate_field
from patternfold.box import Box
from patternfold.chunks import chunk_rows, padded_rows
from patternfold.compilation import compiled
from patternfold.descent import descend
from patternfold.manifold import warped_pixels
from patternfold.transformations import AbstractTransformation


class Refined(NamedTuple):
    """End points of the local stage, one row per (image, start) pair."""

    lam: np.ndarray
    cost: np.ndarray
    converged: np.ndarray
    degenerate: np.ndarray


def refine(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: np.ndarray,
    index: np.ndarray,
    starts: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    max_iter: int,
) -> Refined:
    """Refine ``starts[r]`` for image ``images[index[r]]``, for every pair r."""
    box, dtype = transformation.parameters, starts.dtype
    linearise = _Linearisation(atoms, transformation, images, index, x, y)
    energy = (images.astype(np.float64) ** 2).sum(axis=1)[index]
    # Rounding of the cost itself is no progress to wait for.
    rounding = 10 * np.finfo(dtype).eps ** 1.5 * energy
    lam, cost, gram, converged = descend(linearise, starts, box, max_iter, rounding)
    return Refined(lam.astype(dtype), cost.astype(dtype), converged, _is_degenerate(box, gram))


class _Linearisation:
    """Cost and normal equations of pairs at given λ, in batches of a few fixed sizes."""

    def __init__(
        self,
        atoms: Atoms,
        transformation: AbstractTransformation,
        images: np.ndarray,
        index: np.ndarray,
        x: np.ndarray,
        y: np.ndarray,
    ):
        self.model = (atoms, transformation)
        self.images, self.index, self.pixels = images, index, (x, y)
        dim = transformation.parameters.dim
        # Sizes go by the number of images, so that a few pairs more or less reuse compiled code.
        n_images = padded_rows(max(1, len(images)))
        self.large = min(
            chunk_rows((6 + dim) * len(x) * images.dtype.itemsize),
            3 * n_images if len(index) <= 3 * n_images else 6 * n_images,
        )
        self.small = self.large // 8 if self.large >= 512 else self.large

    def __call__(
        self, lam: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ‖w‖², TᵀT and Tᵀw of the pairs ``rows``."""
        size = self.large if len(rows) > self.small else self.small
        parts = []
        for begin in range(0, len(rows), size):
            chunk = rows[begin : begin + size]
            batch = np.resize(chunk, size)
            images = self.images[self.index[batch]]
            out = normal_equations(
                *self.model, images, lam[batch].astype(images.dtype), *self.pixels
            )
            parts.append([np.asarray(part, np.float64)[: len(chunk)] for part in out])
        cost, gram, slope = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cost, gram, slope


@compiled
def normal_equations(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: Float[Array, "B n"],
    lam: Float[Array, "B d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, " B"], Float[Array, "B d d"], Float[Array, "B d"]]:
    """Return ‖w‖², TᵀT and Tᵀw with w = u − U_λ(p)."""
    value, along_x, along_y = evaluate_field(atoms, *warped_pixels(transformation, lam, x, y))
    w = images - value
    products = jax.vmap(transformation.tangent_products, in_axes=(0, None, None, 0, 0, 0))
    return (w**2).sum(axis=1), *products(lam, x, y, along_x, along_y, w)


def _is_degenerate(box: Box, gram: np.ndarray) -> np.ndarray:
    """Tell whether some direction in Λ leaves the rendered pattern as it is."""
    values = np.linalg.eigvalsh(gram * box.width[:, None] * box.width)
    return values[:, 0] <= 1e-5 * values[:, -1]
