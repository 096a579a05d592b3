"""Local improvement of one new atom: on Ẽ with the coefficient in closed form, then on Ê."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.atoms import atom_derivatives
from patternfold.box import Box
from patternfold.compilation import compiled
from patternfold.dictionary import AbstractDictionary
from patternfold.grid import Grid
from patternfold.mothers import AbstractMother
from patternfold.objectives import frozen_gain, tangent_model
from patternfold.selection.points import Points
from patternfold.transformations import AbstractTransformation

Model = tuple[Float[Array, ""], Float[Array, " a"], Float[Array, "a a"]]
"""A value to be raised, its slope, and a positive matrix that scales the slope to a step."""


def refine_frozen(
    gamma: np.ndarray,
    points: Points,
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    box: Box,
    max_iter: int = 25,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Climb to the nearest maximum of the gain in Ẽ from each row of ``gamma``, all at once.

    Returns γ (S, s), the coefficients c (S,) and the gains (S,).
    """
    starts = box.put_inside(gamma).astype(points.x.dtype)
    end, coef, gain = _climb_frozen(mother, dictionary, box, starts, Points(*points), max_iter)
    return np.asarray(end, np.float64), np.asarray(coef, np.float64), np.asarray(gain, np.float64)


@compiled
def _climb_frozen(
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    box: Box,
    starts: Float[Array, "S s"],
    points: Any,
    max_iter: int | Int[Array, ""],
) -> tuple[Float[Array, "S s"], Float[Array, " S"], Float[Array, " S"]]:
    """Climb on the gain, the coefficient eliminated (variable projection).

    Signed weights enter the gain and its slope as they are and the matrix by their size.
    """
    size = jnp.abs(points.weights)

    def model(gamma: Float[Array, " s"]) -> Model:
        phi, columns = atom_derivatives(mother, dictionary, gamma, points.x, points.y)
        columns = jnp.stack(columns)
        gain, coef = frozen_gain(phi, points.weighted, points.weights)
        slope = coef * (columns @ (points.weighted - coef * points.weights * phi))
        along, energy = columns @ (size * phi), (size * phi**2).sum()
        matrix = (columns * size[None]) @ columns.T
        matrix = matrix - along[:, None] * along[None] / (energy + jnp.finfo(phi.dtype).tiny)
        return gain, slope, coef**2 * matrix

    def climb(start: Float[Array, " s"]) -> tuple[Array, Array, Array]:
        gamma = _climb(model, box, start, max_iter)
        phi, _ = atom_derivatives(mother, dictionary, gamma, points.x, points.y)
        gain, coef = frozen_gain(phi, points.weighted, points.weights)
        return gamma, coef, gain

    return jax.vmap(climb)(starts)


def refine_tangent(
    gamma: np.ndarray,
    coef: float,
    residuals: np.ndarray,
    base_gradient: tuple[np.ndarray, np.ndarray],
    lam: np.ndarray,
    weights: np.ndarray,
    transformation: AbstractTransformation,
    grid: Grid,
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    box: Box,
    max_iter: int = 8,
) -> tuple[np.ndarray, float]:
    """Descend on Ê over (γ, c), as line 9 of Algorithm 1."""
    dtype = residuals.dtype
    x, y = grid.x.astype(dtype), grid.y.astype(dtype)
    data = (residuals, *base_gradient, lam, weights.astype(dtype), x, y)
    components = (mother, dictionary, transformation)
    # The coefficient may grow or change sign within reason: where signed weights outweigh, Ê is
    # unbounded in it.
    reach = np.asarray(4 * abs(coef) + np.finfo(dtype).tiny, dtype)
    start = np.append(box.put_inside(gamma), coef).astype(dtype)
    atom = np.asarray(_descend_tangent(components, box, start, reach, data, max_iter), np.float64)
    return box.put_inside(atom[:-1]), float(atom[-1])


@compiled
def _descend_tangent(
    components: tuple[AbstractMother, AbstractDictionary, AbstractTransformation],
    box: Box,
    start: Float[Array, " a"],
    reach: Float[Array, ""],
    data: tuple[Any, ...],
    max_iter: int | Int[Array, ""],
) -> Float[Array, " a"]:
    # In units of its bound the coefficient lies in [-1, 1].
    names = [name for name, periodic in zip(box.names, box.periodic, strict=True) if periodic]
    both = Box((*box.names, "coef"), (*box.lower, -1.0), (*box.upper, 1.0), periodic=names)
    unit = jnp.append(jnp.ones(len(start) - 1, start.dtype), reach)

    def model(atom: Float[Array, " a"]) -> Model:
        error, slope, matrix = tangent_model(*components, atom * unit, *data)
        return -error, slope * unit, matrix * unit[:, None] * unit[None]

    return _climb(model, both, start / unit, max_iter) * unit


def _climb(
    model: Callable[[Float[Array, " a"]], Model],
    box: Box,
    start: Float[Array, " a"],
    max_iter: int | Int[Array, ""],
) -> Float[Array, " a"]:
    """Damped Gauss-Newton inside the box; the value never falls."""
    width = jnp.asarray(box.width, start.dtype)

    def step(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        point, damping, trial, value, slope, matrix = state
        new_value, new_slope, new_matrix = model(trial)
        better = new_value > value
        point = jnp.where(better, trial, point)
        value = jnp.where(better, new_value, value)
        slope = jnp.where(better, new_slope * width, slope)
        matrix = jnp.where(better, new_matrix * width[:, None] * width[None], matrix)
        damping = jnp.clip(jnp.where(better, damping / 4, damping * 6), 1e-6, 1e8)
        diagonal = jnp.diag(matrix)
        ridge = 1e-6 * diagonal.max() + jnp.finfo(point.dtype).tiny
        delta = jnp.linalg.solve(matrix + jnp.diag(damping * diagonal + ridge), slope)
        delta = delta * jnp.minimum(1, 0.2 / (jnp.abs(delta).max() + 1e-12))
        return point, damping, box.put_inside(point + width * delta), value, slope, matrix

    # The first trial is the start itself: it sets value, slope and matrix.
    dim = len(start)
    nothing = jnp.zeros(dim, start.dtype), jnp.zeros((dim, dim), start.dtype)
    lowest = jnp.asarray(-jnp.inf, start.dtype)
    state = (start, jnp.asarray(4e-3, start.dtype), start, lowest, *nothing)
    return jax.lax.fori_loop(0, max_iter + 1, step, state)[0]
