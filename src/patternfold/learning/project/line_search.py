"""The paper's projection: the best point of a lattice, then a line search along each dimension."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.project.bank import Bank, choose_candidates, pool
from patternfold.learning.project.found import CONVERGED, UNFINISHED
from patternfold.numerics.compilation import compiled

_FIRST_STEP, _LAST_STEP = 1 / 16, 1e-5
"""Lengths of the first and last steps as a share of the box."""


@partial(compiled, hot=True)
def line_search(
    chunk: Chunk,
    start: Float[Array, "B M d"] | None,
    bank: Bank | None,
    distance: Distance,
    max_iter: int | Int[Array, ""],
) -> tuple[Array, Array, Array]:
    """Walk along one parameter at a time, halving the steps when no walk helps any more.

    Returns λ, the squared distance and the status by image and pattern.
    """
    if bank is not None:
        pooled, roots = pool(bank, chunk.images, chunk.roots)
        start = choose_candidates(bank, pooled, roots, 1)[:, :, 0]
    assert start is not None
    n_images, n_patterns, _ = start.shape
    image = jnp.repeat(jnp.arange(n_images), n_patterns)
    which = jnp.tile(jnp.arange(n_patterns), n_images)
    images = chunk.images[image]
    pixel_roots = None if chunk.roots is None else chunk.roots[image]
    box = distance.transformation.parameters
    lam = start.reshape(n_images * n_patterns, -1)
    width = jnp.asarray(box.width, lam.dtype)

    def cost_at(lam: Float[Array, "R d"]) -> Float[Array, " R"]:
        return distance.squares(images, pixel_roots, lam, which)

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

    first = jnp.full(len(lam), _FIRST_STEP, lam.dtype)
    carry = (jnp.asarray(0), lam, cost_at(lam), first)
    _, lam, cost, step = jax.lax.while_loop(unfinished, sweep, carry)
    status = jnp.where(step < _LAST_STEP, CONVERGED, UNFINISHED).astype(jnp.int8)
    two = (n_images, n_patterns)
    return box.put_inside(lam).reshape(*two, -1), cost.reshape(two), status.reshape(two)
