"""Local improvement of one new atom: on Ẽ with the coefficient in closed form, then on Ê."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.objectives import frozen_gain, tangent_model
from patternfold.learning.select.points import Points
from patternfold.model.atoms import atom_derivatives
from patternfold.model.box import Box
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.mothers import AbstractMother
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import Model, descend


def refine_frozen(
    gamma: np.ndarray,
    points: Points,
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    box: Box,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Climb to the nearest maximum of the gain in Ẽ from each row of ``gamma``, all at once.

    Returns γ (S, s), the coefficients c (S,) and the gains (S,).
    """
    dtype = points.x.dtype
    components = (mother, dictionary)

    def model_at(gamma: np.ndarray, rows: np.ndarray, count: int) -> Model:
        # All rows, done or not, keep the shape that is compiled.
        out = _frozen_model(*components, gamma.astype(dtype), Points(*points))
        gain, _, slope, matrix = (np.asarray(part, np.float64)[rows] for part in out)
        return Model(-gain, slope, matrix)

    end = descend(model_at, box.put_inside(gamma), box, max_iter)
    gain, coef, *_ = _frozen_model(*components, end.point.astype(dtype), Points(*points))
    return end.point, np.asarray(coef, np.float64), np.asarray(gain, np.float64)


@compiled
def _frozen_model(
    mother: AbstractMother, dictionary: AbstractDictionary, gamma: Float[Array, "S s"], points: Any
) -> tuple[Float[Array, " S"], Float[Array, " S"], Float[Array, "S s"], Float[Array, "S s s"]]:
    """Gain in Ẽ, coefficient, slope and Gauss-Newton matrix, the coefficient eliminated.

    Signed weights enter the gain and its slope as they are and the matrix by their size.
    """
    size = points.sizes

    def model(gamma: Float[Array, " s"]) -> tuple[Array, Array, Array, Array]:
        phi, columns = atom_derivatives(mother, dictionary, gamma, points.x, points.y)
        columns = jnp.stack(columns)
        gain, coef = frozen_gain(phi, points.weighted, points.weights, size)
        slope = coef * (columns @ (points.weighted - coef * points.weights * phi))
        along, energy = columns @ (size * phi), (size * phi**2).sum()
        matrix = (columns * size[None]) @ columns.T
        matrix = matrix - along[:, None] * along[None] / (energy + jnp.finfo(phi.dtype).tiny)
        return gain, coef, slope, coef**2 * matrix

    return jax.vmap(model)(gamma)


def refine_tangent(
    gamma: np.ndarray,
    coef: float,
    residuals: np.ndarray,
    base_gradient: tuple[np.ndarray, np.ndarray],
    lam: np.ndarray,
    weights: np.ndarray,
    transformation: AbstractTransformation,
    pixels: tuple[np.ndarray, np.ndarray],
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    box: Box,
    max_iter: int = 8,
) -> tuple[np.ndarray, float]:
    """Descend on Ê over (γ, c), as line 9 of Algorithm 1; ``pixels`` are x and y."""
    dtype = residuals.dtype
    data = (residuals, *base_gradient, lam, weights.astype(dtype), *pixels)
    components = (mother, dictionary, transformation)
    # The coefficient may grow or change sign within reason: where signed weights outweigh, Ê is
    # unbounded in it.
    reach = 4 * abs(coef) + float(np.finfo(dtype).tiny)
    names = [name for name, periodic in zip(box.names, box.periodic, strict=True) if periodic]
    both = Box((*box.names, "coef"), (*box.lower, -reach), (*box.upper, reach), periodic=names)

    def model_at(atom: np.ndarray, rows: np.ndarray, count: int) -> Model:
        model = _tangent_model(*components, atom[0].astype(dtype), *data)
        error, slope, matrix = (np.asarray(part, np.float64)[None] for part in model)
        return Model(error, slope, matrix)

    start = np.append(box.put_inside(gamma), coef)[None]
    atom = descend(model_at, start, both, max_iter).point[0]
    return atom[:-1], float(atom[-1])


_tangent_model = compiled(tangent_model)
