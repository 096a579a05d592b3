"""Large images on fewer pixels: where search and learning begin.

Patterns and λ live in continuous coordinates, so that what is found on averages over cells holds
for all pixels, but for what averaging blurs. The averages of all pixels tell more than some of the
pixels would.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.observations import Observations
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled

LARGE = 128
"""Images with a longer side than this begin on fewer pixels."""

SIDES = (96, 80, 128)
"""Cells along the longer side then, as many as there are parts to see in pictures of objects and
letters: about the first number, between the others where that makes cells of whole pixels."""


def coarse_grid(grid: Grid) -> Grid | None:
    """Return the grid of cells for large images, None for others."""
    longer = max(grid.shape)
    if longer <= LARGE:
        return None
    usual, fewest, most = SIDES
    whole = [side for side in range(fewest, most + 1) if longer % side == 0]
    side = min(whole, key=lambda side: abs(side - usual), default=usual)
    height, width = (max(1, round(n * side / longer)) for n in grid.shape)
    return Grid(height, width)


def coarsened(observations: Observations) -> Observations | None:
    """Return the averages of large images over cells, None for others."""
    fine, grid = observations.grid, coarse_grid(observations.grid)
    if grid is None:
        return None
    axes = ((grid.rows, fine.rows), (grid.columns, fine.columns))
    down, across = (
        _shares(*axis, grid.pixel, fine.pixel).astype(observations.dtype) for axis in axes
    )
    images, mass = observations.map(partial(_averages, down=down, across=across))
    return Observations.put(
        images, grid, observations.weights, mass, lighting=observations.lighting
    )


def _shares(coarse: np.ndarray, fine: np.ndarray, cell: float, pixel: float) -> np.ndarray:
    """Share of each pixel in each cell along an axis; those of a cell add up to 1."""
    right = np.minimum(coarse[:, None] + cell / 2, fine[None] + pixel / 2)
    left = np.maximum(coarse[:, None] - cell / 2, fine[None] - pixel / 2)
    overlap = np.clip(right - left, 0, None)
    return overlap / overlap.sum(axis=1, keepdims=True)


@compiled
def _averages(
    chunk: Chunk, down: Float[Array, "h H"], across: Float[Array, "w W"]
) -> tuple[Float[Array, "B p"], Float[Array, "B p"] | None]:
    """Averages over cells, and the mean weight of their pixels where these have weights."""

    def average(values: Float[Array, "B n"]) -> Float[Array, "B p"]:
        square = values.reshape(len(values), down.shape[1], across.shape[1])
        cells = down[None] @ square @ across.T[None]
        return cells.reshape(len(values), -1)

    if chunk.roots is None:
        return average(chunk.images), None
    mass = average(chunk.roots**2)
    known = mass > 0
    inside = average(chunk.images * chunk.roots**2)
    return jnp.where(known, inside / jnp.where(known, mass, 1), 0), mass
