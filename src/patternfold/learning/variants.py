"""Variants of images: what they show, a little stretched, slanted and bent, in the same pose.

A classifier that sees them beside the images themselves knows more ways of writing a 2 than it was
shown. Moving what is seen as a whole would tell it nothing: that is what alignment undoes.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.observations import Observations
from patternfold.learning.project.align import bilinear, pixel_places
from patternfold.model.grid import Grid
from patternfold.model.prior import as_prior
from patternfold.model.transformations import (
    AbstractTransformation,
    Elastic,
    Scaling,
    Shear,
    sum_of,
)
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

DEFORMATION = sum_of([Scaling(), Shear(), Elastic()])
"""What shapes are deformed by, in the frame of their pattern."""

SIZES = as_prior({"sx": (1, 0.15), "sy": (1, 0.15), "shear": (0, 0.25)}, DEFORMATION)
"""How much: as handwriting differs from hand to hand. Elastic modes may be as large as their box
allows. Half and one and a half times as much served digits as well within a point."""


def deformations(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw deformations, shape (n, e)."""
    assert SIZES is not None
    return SIZES.sample(DEFORMATION, rng, n)


def deformed(
    rows: np.ndarray,
    grid: Grid,
    lam: Float[np.ndarray, "N d"],
    family: AbstractTransformation,
    shapes: Float[np.ndarray, "N e"],
    mirrored: np.ndarray,
) -> np.ndarray:
    """Return images (N, n) as they were, had what they show been deformed.

    A pixel is taken to the pattern's frame by a_λ, displaced there, and taken back: the image is
    sampled once. Beyond its edges it is 0.

    Parameters
    ----------
    rows : array of shape (N, n)
        Images.
    grid : Grid
        Their pixels.
    lam, family
        The pose of each.
    shapes : array of shape (N, e)
        Its `deformations`.
    mirrored : array of shape (N,)
        Whether it is turned over as well.
    """
    with precision(rows.dtype):
        stage = partial(_deformed, family=family, grid=grid)
        sign = np.where(mirrored, -1, 1)
        own = (v.astype(rows.dtype, copy=False) for v in (lam, shapes, sign))
        return Observations.put(rows, grid).map(stage, *own)


@partial(compiled, static_argnames=("grid",))
def _deformed(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    shapes: Float[Array, "B e"],
    sign: Float[Array, " B"],
    family: AbstractTransformation,
    grid: Grid,
) -> Float[Array, "B n"]:
    x, y = (jnp.asarray(c, lam.dtype) for c in (grid.x, grid.y))

    def source(lam: Array, shape: Array, sign: Array) -> tuple[Array, Array]:
        there = DEFORMATION.coordinates(shape, *family.coordinates(lam, x, y))
        return family.inverse_coordinates(lam, sign * there[0], there[1])

    places = pixel_places(*jax.vmap(source)(lam, shapes, sign), grid)
    return bilinear(chunk.images, *places, grid)
