"""Local stage of the projection: batched Levenberg-Marquardt on the analytic tangents.

Minimises ‖u − U_λ(p)‖² over the box Λ for many (image, start) pairs at once. A step costs one
pass over the atoms: the field at the trial point serves both to judge it and to go on from it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from patternfold.atoms import Atoms, evaluate_field
from patternfold.box import Box
from patternfold.chunks import chunk_rows, padded_rows
from patternfold.compilation import compiled
from patternfold.manifold import warped_pixels
from patternfold.transformations import AbstractTransformation

ROUND = 6
"""Steps between two looks at which pairs are done; these then make room for others."""

TOLERANCE = 1e-6
"""A pair is done when its next step promises a decrease below this share of ‖u − U_λ(p)‖²."""

_START_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-2, 1e-7, 1e7


class Refined(NamedTuple):
    """End points of the local stage, one row per (image, start) pair."""

    lam: np.ndarray
    cost: np.ndarray
    converged: np.ndarray
    degenerate: np.ndarray


class _State(NamedTuple):
    """Where each pair stands: its best λ with the normal equations, and the point to try next."""

    lam: Float[Array, "B d"]
    cost: Float[Array, " B"]
    gram: Float[Array, "B d d"]
    slope: Float[Array, "B d"]
    damping: Float[Array, " B"]
    trial: Float[Array, "B d"]
    done: Bool[Array, " B"]


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
    n_pairs, dim = starts.shape
    lam, damping = starts.copy(), np.full(n_pairs, _START_DAMPING, starts.dtype)
    cost = np.empty(n_pairs, starts.dtype)
    converged, degenerate = np.zeros(n_pairs, bool), np.zeros(n_pairs, bool)
    outputs = (lam, cost, damping, converged, degenerate)
    # Two sizes of batch are enough: many pairs at first, and what is left of them later. Sizes
    # go by the number of images, so that a few pairs more or less reuse compiled code.
    n_images = padded_rows(max(1, len(images)))
    large = min(
        chunk_rows((6 + dim) * len(x) * starts.dtype.itemsize),
        -(-max(1, n_pairs) // n_images) * n_images,
    )
    small = large // 8 if large >= 512 else large
    waiting = np.arange(n_pairs)
    for first in range(0, max_iter, ROUND):
        steps = min(ROUND, max_iter - first)
        size = large if len(waiting) > small else small
        for begin in range(0, len(waiting), size):
            chunk = waiting[begin : begin + size]
            rows = np.resize(chunk, size)
            out = _round(
                atoms, transformation, images[index[rows]], lam[rows], damping[rows], x, y, steps
            )
            for array, result in zip(outputs, out, strict=True):
                array[chunk] = np.asarray(result)[: len(chunk)]
        waiting = np.flatnonzero(~converged)
        if not len(waiting):
            break
    return Refined(lam, cost, converged, degenerate)


@compiled
def _round(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: Float[Array, "B n"],
    lam: Float[Array, "B d"],
    damping: Float[Array, " B"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    steps: Int[Array, ""] | int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Take up to ``steps`` damped steps with every pair."""
    box = transformation.parameters
    # Rounding of the cost itself is no progress to wait for.
    rounding = 10 * jnp.finfo(images.dtype).eps ** 1.5 * (images**2).sum(axis=1)

    def step(carry: tuple[Int[Array, ""], _State]) -> tuple[Int[Array, ""], _State]:
        count, state = carry
        cost, gram, slope = normal_equations(atoms, transformation, images, state.trial, x, y)
        better = (cost < state.cost) & ~state.done
        damping = jnp.where(better, state.damping / 5, state.damping * 4)
        state = _State(
            jnp.where(better[:, None], state.trial, state.lam),
            jnp.where(better, cost, state.cost),
            jnp.where(better[:, None, None], gram, state.gram),
            jnp.where(better[:, None], slope, state.slope),
            # The first trial is the start itself: nothing is learned from it about the damping.
            jnp.where(count > 0, jnp.maximum(damping, _LEAST_DAMPING), state.damping),
            state.trial,
            state.done,
        )
        delta, promised = _damped_step(box, state)
        done = promised <= TOLERANCE * state.cost + rounding
        done = state.done | done | (state.damping > _MOST_DAMPING)
        trial = box.put_inside(state.lam + delta)
        return count + 1, state._replace(trial=trial, done=done)

    def unfinished(carry: tuple[Int[Array, ""], _State]) -> Bool[Array, ""]:
        count, state = carry
        return (count <= steps) & ~state.done.all()

    size, dim = lam.shape
    start = _State(
        lam,
        jnp.full(size, jnp.inf, lam.dtype),
        jnp.zeros((size, dim, dim), lam.dtype),
        jnp.zeros((size, dim), lam.dtype),
        damping,
        lam,
        jnp.zeros(size, bool),
    )
    _, state = jax.lax.while_loop(unfinished, step, (jnp.asarray(0), start))
    return state.lam, state.cost, state.damping, state.done, _is_degenerate(box, state.gram)


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


def _damped_step(box: Box, state: _State) -> tuple[Float[Array, "B d"], Float[Array, " B"]]:
    """Solve (TᵀT + μ diag(TᵀT)) δ = Tᵀw over the parameters that are free to move.

    Returns δ and the decrease of the cost that it promises if the manifold were flat.
    """
    dtype = state.lam.dtype
    width = jnp.asarray(box.width, dtype)
    lower, upper = jnp.asarray(box.lower, dtype), jnp.asarray(box.upper, dtype)
    edge = 1e-6 * width
    # A parameter on a bound that wants to leave is held there for this step.
    held = ~jnp.asarray(box.periodic)[None] & (
        ((state.lam <= (lower + edge)[None]) & (state.slope < 0))
        | ((state.lam >= (upper - edge)[None]) & (state.slope > 0))
    )
    free = (~held).astype(dtype)
    # In units of the box the parameters are comparable, and a small ridge keeps directions in
    # which the pattern does not move (a round pattern's angle) where they are.
    gram = state.gram * (width[:, None] * width[None, :])[None]
    gram = gram * free[:, :, None] * free[:, None, :]
    diagonal = jnp.diagonal(gram, axis1=1, axis2=2)
    ridge = 1e-6 * diagonal.max(axis=1, keepdims=True) + jnp.finfo(dtype).tiny
    diagonal = state.damping[:, None] * (diagonal + ridge) + 1e-3 * ridge + (1 - free)
    matrix = gram + jax.vmap(jnp.diag)(diagonal)
    slope = state.slope * width[None] * free
    delta = jnp.linalg.solve(matrix, slope[..., None])[..., 0]
    # At most a quarter of the box at a time: the tangents know only the neighbourhood.
    longest = jnp.abs(delta).max(axis=1, keepdims=True)
    delta = delta * jnp.minimum(1, 0.25 / jnp.maximum(longest, 0.25))
    curved = (delta * (gram * delta[:, None, :]).sum(axis=2)).sum(axis=1)
    return width[None] * delta, 2 * (delta * slope).sum(axis=1) - curved


def _is_degenerate(box: Box, gram: Float[Array, "B d d"]) -> Bool[Array, " B"]:
    """Tell whether some direction in Λ leaves the rendered pattern as it is."""
    width = jnp.asarray(box.width, gram.dtype)
    values = jnp.linalg.eigvalsh(gram * (width[:, None] * width[None, :])[None])
    return values[:, 0] <= 1e-5 * values[:, -1]
