"""The paper's projection: the best point of a grid, then a line search along each dimension."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.learning.project.refine import Refined
from patternfold.model.atoms import Atoms, evaluate
from patternfold.model.manifold import warped_pixels
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.chunks import map_chunks
from patternfold.numerics.compilation import compiled

_FIRST_STEP, _LAST_STEP = 1 / 16, 1e-5
"""Lengths of the first and last steps as a share of the box."""


def line_search(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: np.ndarray,
    starts: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    max_iter: int,
) -> Refined:
    """Walk along one parameter at a time, halving the steps when no walk helps any more."""

    def chunk(rows: np.ndarray, lam: np.ndarray) -> tuple[Array, ...]:
        return _search(atoms, transformation, rows, lam, x, y, max_iter)

    bytes_per_row = 8 * len(x) * images.dtype.itemsize
    lam, cost, converged = map_chunks(chunk, (images, starts), bytes_per_row)
    return Refined(lam, cost, converged, np.zeros(len(images), bool))


@compiled
def _search(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: Float[Array, "N n"],
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    max_iter: int | Int[Array, ""],
) -> tuple[Array, Array, Array]:
    box = transformation.parameters
    width = jnp.asarray(box.width, lam.dtype)

    def cost_at(lam: Float[Array, "N d"]) -> Float[Array, " N"]:
        values = evaluate(atoms, *warped_pixels(transformation, lam, x, y))
        return ((images - values) ** 2).sum(axis=1)

    def try_step(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        lam, cost, step = carry
        # k runs over the 2d signed directions.
        direction = jax.nn.one_hot(k // 2, box.dim, dtype=lam.dtype) * (1 - 2 * (k % 2))
        trial = box.put_inside(lam + step[:, None] * (direction * width)[None])
        trial_cost = cost_at(trial)
        better = trial_cost < cost
        return jnp.where(better[:, None], trial, lam), jnp.where(better, trial_cost, cost), step

    def sweep(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        count, lam, cost, step = carry
        new_lam, new_cost, _ = jax.lax.fori_loop(0, 2 * box.dim, try_step, (lam, cost, step))
        return count + 1, new_lam, new_cost, jnp.where(new_cost < cost, step, step / 2)

    def unfinished(carry: tuple[Array, ...]) -> Array:
        count, _, _, step = carry
        return (count < max_iter) & (step >= _LAST_STEP).any()

    first = jnp.full(len(images), _FIRST_STEP, lam.dtype)
    start = (jnp.asarray(0), lam, cost_at(lam), first)
    _, lam, cost, step = jax.lax.while_loop(unfinished, sweep, start)
    return lam, cost, step < _LAST_STEP
