"""Local improvement of one new atom: on Ẽ with the coefficient in closed form, then on Ê."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import optimize

from patternfold.atoms import atom_derivatives
from patternfold.box import Box
from patternfold.compilation import compiled
from patternfold.dictionary import AbstractDictionary
from patternfold.grid import Grid
from patternfold.mothers import AbstractMother
from patternfold.objectives import frozen_gain, tangent_error
from patternfold.selection.points import Points
from patternfold.transformations import AbstractTransformation

_tangent_error_and_slope = compiled(
    jax.value_and_grad(
        lambda atom, mother, dictionary, transformation, *data: tangent_error(
            mother, dictionary, transformation, atom[:-1], atom[-1], *data
        )
    )
)


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
    end, coef, gain = _climb(mother, dictionary, box, starts, Points(*points), max_iter)
    return np.asarray(end, np.float64), np.asarray(coef, np.float64), np.asarray(gain, np.float64)


@compiled
def _climb(
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    box: Box,
    starts: Float[Array, "S s"],
    points: Any,
    max_iter: int,
) -> tuple[Float[Array, "S s"], Float[Array, " S"], Float[Array, " S"]]:
    """Damped Gauss-Newton on the gain, the coefficient eliminated (variable projection).

    Signed weights enter the gain and its slope as they are and the matrix by their size, so that
    every step climbs.
    """
    width = jnp.asarray(box.width, starts.dtype)
    size = jnp.abs(points.weights)

    def model(gamma: Float[Array, " s"]) -> tuple[Array, Array, Array, Array]:
        phi, columns = atom_derivatives(mother, dictionary, gamma, points.x, points.y)
        columns = jnp.stack(columns) * width[:, None]
        gain, coef = frozen_gain(phi, points.weighted, points.weights)
        slope = coef * (columns @ (points.weighted - coef * points.weights * phi))
        along, energy = columns @ (size * phi), (size * phi**2).sum()
        matrix = (columns * size[None]) @ columns.T
        matrix = matrix - along[:, None] * along[None] / (energy + jnp.finfo(phi.dtype).tiny)
        return gain, coef, slope, coef**2 * matrix

    def step(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        gamma, damping, trial, (gain, coef, slope, matrix) = state
        new = model(trial)
        better = new[0] > gain
        gamma = jnp.where(better, trial, gamma)
        gain, coef, slope, matrix = (
            jnp.where(better, a, b) for a, b in zip(new, (gain, coef, slope, matrix), strict=True)
        )
        damping = jnp.clip(jnp.where(better, damping / 4, damping * 6), 1e-6, 1e8)
        diagonal = jnp.diag(matrix)
        ridge = 1e-6 * diagonal.max() + jnp.finfo(gamma.dtype).tiny
        delta = jnp.linalg.solve(matrix + jnp.diag(damping * diagonal + ridge), slope)
        delta = delta * jnp.minimum(1, 0.2 / (jnp.abs(delta).max() + 1e-12))
        return gamma, damping, box.put_inside(gamma + width * delta), (gain, coef, slope, matrix)

    def climb(start: Float[Array, " s"]) -> tuple[Array, Array, Array]:
        first = model(start)
        # A first trial at the start itself fails by a tie and merely sets the first step.
        state = (start, jnp.asarray(1e-3, start.dtype), start, first)
        gamma, _, _, (gain, coef, _, _) = jax.lax.fori_loop(0, max_iter + 1, step, state)
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
    max_iter: int = 20,
) -> tuple[np.ndarray, float]:
    """Descend on Ê over (γ, c), as line 9 of Algorithm 1."""
    dtype = residuals.dtype
    data = (residuals, *base_gradient, lam, weights.astype(dtype))
    x, y = grid.x.astype(dtype), grid.y.astype(dtype)

    def objective(atom: np.ndarray) -> tuple[float, np.ndarray]:
        error, slope = _tangent_error_and_slope(
            atom.astype(dtype), mother, dictionary, transformation, *data, x, y
        )
        return float(error), np.asarray(slope, np.float64)

    # The coefficient may change sign or grow, within reason: Ê is unbounded in it where signed
    # weights outweigh.
    reach = 4 * abs(coef) + 1e-12
    both = Box(
        (*box.names, "coef"), (*box.lower, -reach), (*box.upper, reach), periodic=_periodic(box)
    )
    atom = _descend(objective, np.append(gamma, coef), both, max_iter)
    return atom[:-1], float(atom[-1])


def _periodic(box: Box) -> list[str]:
    return [name for name, periodic in zip(box.names, box.periodic, strict=True) if periodic]


def _descend(objective: Any, start: np.ndarray, box: Box, max_iter: int) -> np.ndarray:
    """Minimise over the box by L-BFGS-B, in units of the box; periodic parameters are free."""
    width = box.width
    bounds = [
        (None, None) if periodic else (low / w, high / w)
        for low, high, w, periodic in zip(box.lower, box.upper, width, box.periodic, strict=True)
    ]

    def scaled(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(z * width)
        return value / scale, slope * width / scale

    scale = abs(objective(start)[0]) or 1.0
    found = optimize.minimize(
        scaled,
        start / width,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter, "ftol": 1e-7},
    )
    return box.put_inside(found.x * width)
