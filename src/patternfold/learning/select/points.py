"""Images seen from the pattern: every pixel's residual and weight at its place a_λi(x, y)."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.observations import Observations
from patternfold.model.manifold import warped_pixels
from patternfold.numerics.compilation import compiled


class Points(NamedTuple):
    """Weighted values scattered in the pattern's frame, all of shape (P,) but for two numbers.

    ``weighted`` holds w·v and ``weights`` w: sums of these are all that Ẽ needs, and both may
    be gathered in cells. ``sizes`` holds ``|w|``, which tells where weights of both signs cancel.
    ``max_coef`` is C, the bound of ``|c|`` in Ẽ; with signed weights it must be finite.
    ``offset`` is 1/Σw where images have offsets of their own, else 0: an atom then counts less its
    mean over all pixels, as if all images had one offset.
    """

    x: np.ndarray
    y: np.ndarray
    weighted: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray
    max_coef: float = np.inf
    offset: float = 0.0


def pull_back(observations: Observations, lam: np.ndarray, distance: Distance) -> Points:
    """Carry the pixels of all residual images to the pattern's frame."""
    parts = observations.map(partial(_pulled_back, distance=distance), lam)
    return Points(*(part.reshape(-1) for part in parts))


def gather(
    observations: Observations,
    lam: np.ndarray,
    distance: Distance,
    cell: float,
    half_width: float,
) -> Points:
    """Share the pixels of all residual images among the nodes of a square grid, bilinearly.

    Returns the nodes as points, in row-major order. Pixels outside the square are left out.
    """
    side = 2 * round(half_width / cell) + 1
    dtype = observations.dtype
    stage = partial(_splat, distance=distance, cell=np.asarray(cell, dtype), side=side)
    sums = observations.total(stage, lam)
    axis = (np.arange(side) - (side - 1) / 2) * cell
    x, y = np.tile(axis, side).astype(dtype), np.repeat(axis, side).astype(dtype)
    weighted, weights, sizes = (np.asarray(a, dtype) for a in sums)
    centred = distance.lighting.offset and (weights >= 0).all() and weights.any()
    offset = 1 / float(weights.sum()) if centred else 0.0
    return Points(x, y, weighted, weights, sizes, offset=offset)


def residual_points(
    chunk: Chunk, lam: Float[Array, "B d"], distance: Distance
) -> tuple[Array, Array, Array, Array]:
    """Place, w·v and w of every pixel of a chunk, shape (B, n) each.

    An image in a light of its own, g and b, is (u − b)/g with the weight w g².
    """
    # A new atom is looked for as if nothing widened it; it is corrected with all others later.
    x, y, *_ = warped_pixels(distance.transformation, lam, distance.x, distance.y)
    fit = distance.fit(chunk.images, chunk.roots, distance.values(lam))
    scale = fit.scale(chunk.roots)
    weights = jnp.broadcast_to(chunk.weights[:, None], chunk.images.shape)
    if scale is None:
        return x, y, weights * fit.residual, weights
    return x, y, weights * scale * fit.residual, weights * scale**2


@compiled
def _pulled_back(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> tuple[Any, ...]:
    x, y, weighted, weights = residual_points(chunk, lam, distance)
    return x, y, weighted, weights, jnp.abs(weights)


@partial(compiled, scatters=True, static_argnames="side")
def _splat(
    chunk: Chunk, lam: Float[Array, "B d"], distance: Distance, cell: Array, side: int
) -> tuple[Float[Array, " m"], ...]:
    """Σ of w·v, w and |w| at each node."""
    x, y, weighted, weights = residual_points(chunk, lam, distance)
    column, row = x / cell + (side - 1) / 2, y / cell + (side - 1) / 2
    inside = (column >= 0) & (column < side - 1) & (row >= 0) & (row < side - 1)
    left, top = jnp.floor(column), jnp.floor(row)
    right_share, low_share = column - left, row - top
    cell_of = jnp.where(inside, top * side + left, 0).astype(jnp.int32).reshape(-1)
    values = jnp.stack([weighted, weights, jnp.abs(weights)], axis=-1)
    values = jnp.where(inside[..., None], values, 0).reshape(-1, 3)
    right, low = right_share.reshape(-1, 1), low_share.reshape(-1, 1)
    shares = ((1 - low) * (1 - right), (1 - low) * right, low * (1 - right), low * right)
    # What each of a cell's corners gets is added up by cell: one place for a pixel, not four.
    parts = jnp.concatenate([share * values for share in shares], axis=1)
    cells = jnp.zeros((side * side, 12), x.dtype).at[cell_of].add(parts)
    corners = zip(jnp.split(cells, 4, axis=1), (0, 1, side, side + 1), strict=True)
    # No pixel lies in the last column and row of cells: nothing comes around the end.
    sums = reduce(jnp.add, [jnp.roll(part, places, axis=0) for part, places in corners])
    return sums[:, 0], sums[:, 1], sums[:, 2]
