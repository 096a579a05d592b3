"""Images in the frames of manifolds: compiled stages of `AlignedViews`."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.estimators.gradients import gathered_gradients
from patternfold.learning.chunk import Chunk
from patternfold.learning.lighting import Lighting
from patternfold.learning.project.align import sample
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled


@compiled
def lit(chunk: Chunk, offset: Float[Array, "B M"], lighting: Lighting) -> Float[Array, "B M n"]:
    """Images without their own light, as each manifold sees it."""
    return jax.vmap(partial(_in_one_light, chunk, lighting), in_axes=1, out_axes=1)(offset)


def _in_one_light(chunk: Chunk, lighting: Lighting, offset: Float[Array, " B"]) -> Array:
    """Images less their offset, of one norm about their mean; pixels that don't count are 0."""
    images = chunk.images
    if lighting.offset:
        images = images - offset[:, None]
    if chunk.roots is not None:
        images = jnp.where(chunk.roots > 0, images, 0)
    if lighting.gain:
        norms = jnp.sqrt(lighting.energies(chunk.images, chunk.roots))[:, None]
        images = images / jnp.where(norms > 0, norms, 1)
    return images


@partial(compiled, hot=True, static_argnames=("grid", "gradients"))
def views_of_chunk(
    chunk: Chunk,
    lam: Float[Array, "B M d"],
    offset: Float[Array, "B M"],
    family: AbstractTransformation,
    grid: Grid,
    gradients: bool,
    lighting: Lighting,
) -> Float[Array, "B f"]:
    """Views of a chunk in the frame of every manifold, side by side."""

    def view(pose: tuple[Array, Array]) -> Float[Array, "B v"]:
        images = _in_one_light(chunk, lighting, pose[1])
        aligned = sample(images, pose[0], family, grid, inverse=True)
        return gathered_gradients(aligned, grid.shape) if gradients else aligned

    views = jax.lax.map(view, (jnp.moveaxis(lam, 1, 0), offset.T))
    return jnp.moveaxis(views, 0, 1).reshape(len(lam), -1)
