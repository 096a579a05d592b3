"""Distances up to what a pattern does not tell: small smooth displacements, and the stroke's width.

Two images of one kind differ by more than a transformation. What is left of an image, w, is
compared with the changes T a that bumps of displacement on a net and an even growth of all edges
make, to first order, at a price: min_a ‖w − T a‖² + μ‖a‖², with μ the variance of a pixel over that
of a displacement. It is a tangent distance with a prior.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.learning.chunk import Chunk
from patternfold.learning.lighting import Lighting
from patternfold.learning.mixture.prototypes import PrototypeDistance, make_prototypes
from patternfold.learning.observations import Observations
from patternfold.learning.project.refine import block_rows
from patternfold.model.grid import Grid
from patternfold.model.manifold import warped_pixels
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled

NET, NET_WIDTH = 4, 1.2
"""Bumps along a side of the net, and the width that it spans; the image spans 2."""

DISPLACEMENT = 0.03
"""Standard deviation of a bump's displacement: half a pixel of an image of 40."""


def flexible_squares(
    observations: Observations,
    transformation: AbstractTransformation,
    pictures: np.ndarray,
    part: np.ndarray,
    lam: np.ndarray,
    noise: float,
) -> np.ndarray:
    """Squared distances (N, r) of each image to some parts, less what small changes make up for.

    ``noise`` is the variance of a pixel about its part.
    """
    dtype = observations.dtype
    stage = partial(
        _flexible,
        pictures=pictures.astype(dtype),
        family=transformation,
        price=np.asarray(max(noise, float(np.finfo(dtype).tiny)) / DISPLACEMENT**2, dtype),
        lighting=observations.lighting,
        grid=observations.grid,
    )
    squares = observations.map(stage, part.astype(np.int32), lam.astype(dtype, copy=False))
    return squares.astype(np.float64)


@partial(compiled, hot=True, static_argnames=("lighting", "grid"))
def _flexible(
    chunk: Chunk,
    part: Int[Array, "B r"],
    lam: Float[Array, "B r d"],
    pictures: Array,
    family: AbstractTransformation,
    price: Array,
    lighting: Lighting,
    grid: Grid,
) -> Float[Array, "B r"]:
    x, y = (jnp.asarray(c, lam.dtype) for c in (grid.x, grid.y))
    prototypes = make_prototypes(pictures, grid)
    distance = PrototypeDistance(prototypes, family, x, y, lighting).with_reference()
    n_rows = part.size
    size = min(max(1, block_rows(grid.n_pixels) // NET**2), n_rows)
    n_blocks = -(-n_rows // size)
    rows = jnp.minimum(jnp.arange(n_blocks * size, dtype=jnp.int32), n_rows - 1)
    rows = rows.reshape(n_blocks, size)
    flat = lam.reshape(n_rows, -1)

    def block(index: Int[Array, " b"]) -> Float[Array, " b"]:
        image, which = index // part.shape[1], part.reshape(-1)[index]
        x_new, y_new = warped_pixels(family, flat[index], x, y)
        sampled = prototypes.sample(which, x_new, y_new, 3)
        value, along_x, along_y = (sampled[..., k] for k in range(3))
        roots = None if chunk.roots is None else chunk.roots[image]
        fit = distance.fit(chunk.images[image], roots, value, which)
        changes = _changes(x_new, y_new, along_x, along_y, fit.scale(roots))
        return _left(fit.residual, fit.without(changes), price)

    return jax.lax.map(block, rows).reshape(-1)[:n_rows].reshape(part.shape)


def _changes(x: Array, y: Array, along_x: Array, along_y: Array, scale: Array | None) -> Array:
    """T (b, a, n): displacements of a picture's bumps along both axes, and growth of its edges."""
    step = NET_WIDTH / (NET - 1)
    knots = jnp.asarray(np.linspace(-NET_WIDTH / 2, NET_WIDTH / 2, NET), x.dtype)

    def bumps(place: Array) -> Array:
        return jnp.exp(-(((place[:, None] - knots[None, :, None]) / step) ** 2))

    net = (bumps(x)[:, :, None] * bumps(y)[:, None]).reshape(len(x), NET**2, -1)
    growth = jnp.sqrt(along_x**2 + along_y**2)[:, None]
    changes = jnp.concatenate([net * along_x[:, None], net * along_y[:, None], growth], axis=1)
    return changes if scale is None else changes * scale[:, None]


def _left(residual: Array, changes: Array, price: Array) -> Array:
    """min_a ‖w − T a‖² + μ‖a‖² of each row."""
    gram = jnp.einsum("ban,bcn->bac", changes, changes)
    along = jnp.einsum("ban,bn->ba", changes, residual)
    ridge = price * jnp.eye(gram.shape[1], dtype=gram.dtype)
    factor = jax.scipy.linalg.cho_factor(gram + ridge[None])
    best = jax.scipy.linalg.cho_solve(factor, along[..., None])[..., 0]
    return jnp.maximum((residual**2).sum(axis=1) - (along * best).sum(axis=1), 0)
