"""Parts from the images that belong to them: averages of the aligned images, in a common frame."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.learning.chunk import Chunk
from patternfold.learning.lighting import Lighting
from patternfold.learning.mixture.assign import Nearest
from patternfold.learning.motions import members, motions_of
from patternfold.learning.observations import Observations
from patternfold.learning.project.align import sample
from patternfold.model.grid import Grid
from patternfold.model.transformations import (
    AbstractAffineTransformation,
    AbstractTransformation,
)
from patternfold.numerics.compilation import compiled

LEAST_SEEN = 0.1
"""Share of a part's weight that must have seen a pixel; what fewer have seen is taken for 0."""


def average(
    observations: Observations,
    transformation: AbstractTransformation,
    nearest: Nearest,
    share: np.ndarray,
    n_parts: int,
) -> np.ndarray:
    """Pictures (P, n) that minimise Σ share·‖u − g·p − b‖² in the parts' own frame.

    ``share`` (N, r) is how much of an image belongs to each of its parts.
    """
    sums = part_sums(observations, transformation, nearest, share, n_parts)
    return pictures_of(*sums, observations.lighting)


def part_sums(
    observations: Observations,
    transformation: AbstractTransformation,
    nearest: Nearest,
    share: np.ndarray,
    n_parts: int,
) -> tuple[np.ndarray, np.ndarray]:
    """What `pictures_of` makes pictures of: two sums over the images, (P, n) each."""
    dtype = observations.dtype
    stage = partial(
        _sums,
        family=transformation,
        grid=observations.grid,
        n_parts=n_parts,
    )
    rows = (nearest.part.astype(np.int32), nearest.lam, nearest.gain, nearest.offset, share)
    return observations.total(stage, *(np.asarray(v, _kind(v, dtype)) for v in rows))


def pictures_of(above: np.ndarray, below: np.ndarray, lighting: Lighting) -> np.ndarray:
    """Pictures (P, n) from the sums over the images of each part."""
    known = below > LEAST_SEEN * np.maximum(below.max(axis=1, keepdims=True), 1e-300)
    pictures = np.where(known, above / np.where(known, below, 1), 0)
    return normalised(pictures, lighting)


def _kind(values: np.ndarray, dtype: np.dtype) -> np.dtype:
    return values.dtype if values.dtype.kind == "i" else dtype


def normalised(pictures: np.ndarray, lighting: Lighting) -> np.ndarray:
    """Pictures of unit norm where images have gains, less their mean where they have offsets."""
    if lighting.offset:
        pictures = pictures - pictures.mean(axis=1, keepdims=True)
    if lighting.gain:
        norm = np.linalg.norm(pictures, axis=1, keepdims=True)
        pictures = pictures / np.where(norm > 0, norm, 1)
    return pictures


@partial(compiled, static_argnames=("grid", "n_parts"))
def _sums(
    chunk: Chunk,
    part: Int[Array, "B r"],
    lam: Float[Array, "B r d"],
    gain: Float[Array, "B r"],
    offset: Float[Array, "B r"],
    share: Float[Array, "B r"],
    family: AbstractTransformation,
    grid: Grid,
    n_parts: int,
) -> tuple[Float[Array, "P n"], Float[Array, "P n"]]:
    """Σ share·w·g·(u − b) and Σ share·w·g² of every part, pixel by pixel of its own frame."""
    above = jnp.zeros((n_parts, grid.n_pixels), lam.dtype)
    below = above
    for k in range(part.shape[1]):
        mass = jnp.ones_like(chunk.images) if chunk.roots is None else chunk.roots**2
        values = (chunk.images - offset[:, k, None]) * mass
        aligned = sample(values, lam[:, k], family, grid, True)
        seen = sample(mass, lam[:, k], family, grid, True)
        weight = (chunk.weights * share[:, k])[:, None]
        g = gain[:, k, None]
        above += jax.ops.segment_sum(weight * g * aligned, part[:, k], n_parts)
        below += jax.ops.segment_sum(weight * g**2 * seen, part[:, k], n_parts)
    return above, below


def centred(
    transformation: AbstractTransformation,
    nearest: Nearest,
    weights: np.ndarray,
    n_parts: int,
) -> np.ndarray:
    """λ (N, r, d) in frames in which the images of each part have the identity on average.

    Full turns have no average: they are left alone. Families that are not affine keep their λ.
    """
    if not isinstance(transformation, AbstractAffineTransformation):
        return nearest.lam
    box, first = transformation.parameters, nearest.part[:, 0]
    lam = nearest.lam.astype(np.float64)
    total = np.bincount(first, weights, n_parts)
    mean = np.tile(transformation.identity.astype(np.float64), (n_parts, 1))
    still = {box.index(name) for name in transformation.translation or ()}
    for k in range(box.dim):
        if not box.periodic[k] and k not in still:
            summed = np.bincount(first, weights * lam[:, 0, k], n_parts)
            mean[:, k] = np.where(total > 0, summed / np.maximum(total, 1e-300), mean[:, k])
    linear, _ = motions_of(transformation, box.put_inside(mean))
    back = np.linalg.inv(linear)
    motions = motions_of(transformation, lam.reshape(-1, lam.shape[2]))
    f, t = (v.reshape(*lam.shape[:2], *v.shape[1:]) for v in motions)
    f = f @ back[nearest.part]
    if transformation.translation is not None:
        g = _least_shifts(f, t, first, weights, n_parts)
        t = t + np.einsum("nrij,nrj->nri", f, g[nearest.part])
    flat = members(transformation, f.reshape(-1, 2, 2), t.reshape(-1, 2))
    return box.put_inside(box.wrap(flat)).reshape(lam.shape).astype(nearest.lam.dtype)


def _least_shifts(
    f: np.ndarray, t: np.ndarray, first: np.ndarray, weights: np.ndarray, n_parts: int
) -> np.ndarray:
    """g of each part for which the shifts t + F g of its images are smallest in the mean square."""
    own_f, own_t = f[:, 0], t[:, 0]
    gram = np.zeros((n_parts, 2, 2))
    along = np.zeros((n_parts, 2))
    np.add.at(gram, first, weights[:, None, None] * np.einsum("nji,njk->nik", own_f, own_f))
    np.add.at(along, first, weights[:, None] * np.einsum("nji,nj->ni", own_f, own_t))
    gram += 1e-12 * np.eye(2)
    return -np.linalg.solve(gram, along[:, :, None])[:, :, 0]
