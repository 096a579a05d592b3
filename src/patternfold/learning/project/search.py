"""The search of one projection, as one stage: candidates from the bank, improved and pruned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.effort import Effort
from patternfold.learning.project.apart import best_apart
from patternfold.learning.project.bank import Bank, choose_candidates, pool
from patternfold.learning.project.ends import best_ends
from patternfold.learning.project.found import Found
from patternfold.learning.project.refine import Pixels, make_rows, refine, single
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled

LARGE_SIDE = 24
"""Images of so many pixels along the shorter side have a stage on every other row and column."""

SCORED = {"cpu": 2**24, "gpu": 2**29, "tpu": 2**29}
"""Bytes of template scores that exist at a time."""


class Scope(NamedTuple):
    """What is searched: the whole box, the neighbourhood of known λ, or both; and for how long.

    ``steps`` on all pixels are taken at most, and never more than the effort allows. At most
    ``finalists`` go on to all pixels; code has room for those of the effort.
    """

    everywhere: Bool[Array | np.ndarray, ""]
    start: Bool[Array | np.ndarray, ""]
    steps: Int[Array | np.ndarray, ""]
    finalists: Int[Array | np.ndarray, ""]


@partial(compiled, hot=True, static_argnames=("effort", "grid", "describe"))
def search(
    chunk: Chunk,
    start: Float[Array, "B M d"],
    bank: Bank | None,
    distance: Distance,
    scope: Scope,
    effort: Effort,
    grid: Grid,
    describe: bool = True,
) -> Found | tuple[Float[Array, "B M d"], Float[Array, "B M"]]:
    """Project the images of a chunk on every pattern.

    Without a bank the search is local. Flags, not shapes, say what is searched: the same compiled
    code serves a global search, one that also knows λ, and a local one. λ that is no number is not
    known. Unless asked to ``describe`` its ends, the search tells λ and the distance alone.
    """
    starts, wanted = _finalists(chunk, start, bank, distance, scope, effort, grid)
    pixels = _pixels(distance, chunk.images, chunk.roots)
    rows = make_rows(starts, wanted)
    own = distance if starts.shape[1] > 1 else single(distance)
    steps = jnp.minimum(scope.steps, effort.max_iter)
    first = jnp.minimum(effort.newton_after, steps) if effort.newton else steps
    ends = refine(own, pixels, rows, first, steps - first, effort.newton)
    return best_ends(own, chunk, grid, rows, ends, starts.shape[:3], describe)


def _finalists(
    chunk: Chunk,
    start: Float[Array, "B M d"],
    bank: Bank | None,
    distance: Distance,
    scope: Scope,
    effort: Effort,
    grid: Grid,
) -> tuple[Float[Array, "B M F d"], Bool[Array, "B M F"]]:
    """Points from which to go on with all pixels, and which of them are worth it.

    Known λ always are: whatever the other stages say, no image ends worse than it began.
    """
    known = jnp.broadcast_to(scope.start, (*start.shape[:2], 1))
    known = known & (chunk.weights != 0)[:, None, None] & jnp.isfinite(start).all(2, keepdims=True)
    known_start = (start[:, :, None], known)
    if bank is None:
        return known_start

    def from_bank() -> tuple[Array, Array]:
        return _rivals(chunk, bank, effort)

    def nothing() -> tuple[Array, Array]:
        count = min(effort.n_candidates, bank.shape[2])
        count = min(effort.n_rivals, count) if effort.coarse_steps else count
        none = jnp.zeros((*start.shape[:2], count), bool)
        return jnp.zeros((*none.shape, start.shape[2]), start.dtype), none

    rivals = jax.lax.cond(scope.everywhere, from_bank, nothing)
    stride = 2 if min(grid.shape) >= LARGE_SIDE else 1
    if stride > 1 and effort.middle_steps:
        rivals = _middle(chunk, _joined(rivals, known_start), distance, effort, grid, stride)
        place = jnp.arange(rivals[1].shape[2], dtype=jnp.int32)[None, None]
        rivals = rivals[0], rivals[1] & (place < scope.finalists)
    return _joined(rivals, known_start)


def _joined(*parts: tuple[Array, Array]) -> tuple[Array, Array]:
    """Starts and whether they are wanted, put together."""
    lam, wanted = (jnp.concatenate(part, axis=2) for part in zip(*parts, strict=True))
    return lam, wanted


def _middle(
    chunk: Chunk,
    rivals: tuple[Array, Array],
    distance: Distance,
    effort: Effort,
    grid: Grid,
    stride: int,
) -> tuple[Float[Array, "B M F d"], Bool[Array, "B M F"]]:
    """Improve the rivals on part of the pixels; return the better ends."""
    index = np.arange(grid.n_pixels).reshape(grid.shape)
    some = index[stride // 2 :: stride, stride // 2 :: stride].ravel()
    terms = None if distance.terms is None else distance.terms.on(len(some) / grid.n_pixels)
    part = replace(distance, x=distance.x[some], y=distance.y[some], terms=terms)
    own = part if rivals[0].shape[1] > 1 else single(part)
    roots = None if chunk.roots is None else chunk.roots[:, some]
    pixels = _pixels(own, chunk.images[:, some], roots)
    ends = refine(own, pixels, make_rows(*rivals), effort.middle_steps)
    shape = rivals[1].shape
    share = effort.finalist_share * pixels.energies[:, None]
    share = share if effort.finalist_share else jnp.zeros((), ends.cost.dtype)
    return best_apart(
        distance.transformation.parameters,
        ends.lam.reshape(*shape, -1),
        ends.cost.reshape(shape),
        (effort.finalist_ratio, share),
        effort.n_finalists,
    )


def _rivals(
    chunk: Chunk, bank: Bank, effort: Effort
) -> tuple[Float[Array, "B M R d"], Bool[Array, "B M R"]]:
    """Improve the best templates on blurred images; return the better ends."""
    n_patterns, n_shifts, n_nodes = bank.shape
    pooled, roots = pool(bank, chunk.images, chunk.roots)
    bytes_per_image = n_patterns * n_shifts * n_nodes * pooled.dtype.itemsize
    at_once = max(1, SCORED.get(jax.default_backend(), 2**24) // bytes_per_image)
    at_once = min(2 ** (at_once.bit_length() - 1), len(pooled))

    def choose(part: tuple[Array, Array | None]) -> Array:
        return choose_candidates(bank, *part, effort.n_candidates)

    if len(pooled) % at_once == 0 and at_once < len(pooled):
        split = jax.tree.map(lambda a: a.reshape(-1, at_once, a.shape[1]), (pooled, roots))
        candidates = jax.lax.map(choose, split)
        candidates = candidates.reshape(len(pooled), *candidates.shape[2:])
    else:
        candidates = choose((pooled, roots))
    if effort.coarse_steps == 0:
        return candidates, jnp.broadcast_to(
            (chunk.weights != 0)[:, None, None], candidates.shape[:3]
        )
    pixels = _pixels(bank.coarse, pooled, roots)
    coarse = bank.coarse if n_patterns > 1 else single(bank.coarse)
    wanted = jnp.broadcast_to((chunk.weights != 0)[:, None, None], candidates.shape[:3])
    ends = refine(coarse, pixels, make_rows(candidates, wanted), effort.coarse_steps)
    return best_apart(
        coarse.transformation.parameters,
        ends.lam.reshape(candidates.shape),
        ends.cost.reshape(candidates.shape[:3]),
        (effort.rival_ratio, effort.rival_share * pixels.energies[:, None]),
        effort.n_rivals,
    )


def _pixels(distance: Distance, images: Array, roots: Array | None) -> Pixels:
    return Pixels(images, roots, distance.lighting.energies(images, roots))
