"""Eliminate the λ_i from the normal equations, and solve what is left for the atoms."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg

from patternfold.learning.refit.arrow import Assembled
from patternfold.model.box import Box
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import held_at_bounds, inverse_definite


class Reduced(NamedTuple):
    """Normal equations in the atoms' parameters with λ eliminated: sums over any set of images.

    ``diagonal`` is that of the equations before, which damping is in units of; ``alone`` by how
    much E falls where the λ_i move alone.
    """

    cost: np.ndarray
    diagonal: np.ndarray
    matrix: np.ndarray
    slope: np.ndarray
    alone: np.ndarray


class Eliminated(NamedTuple):
    """What eliminating the λ_i takes off the atoms' equations, and the H_i⁻¹ that do it.

    ``gain`` is by how much E falls where the λ_i move alone.
    """

    matrix: Float[Array, "m m"]
    slope: Float[Array, " m"]
    gain: Float[Array, ""]
    inverse: Float[Array, "B d d"]


@partial(compiled, small=True)
def eliminate(
    assembled: Assembled, lam: Float[Array, "B d"], damping: Array, box: Box
) -> Eliminated:
    """Σ C_i H_i⁻¹ C_iᵀ and Σ C_i H_i⁻¹ b_i."""
    dim = lam.shape[1]
    inverse = _inverse_metric(assembled.own, lam, damping, box)
    cross = assembled.cross[:, :, :dim]
    solved = jnp.einsum("imd,ide->ime", cross, inverse)
    flat, cross = (jnp.moveaxis(a, 1, 0).reshape(a.shape[1], -1) for a in (solved, cross))
    own = assembled.own[:, :dim, dim]
    alone = jnp.einsum("ide,ie->id", inverse, own)
    left = 2 * own - jnp.einsum("ide,ie->id", assembled.own[:, :dim, :dim], alone)
    gain = (alone * left).sum()
    return Eliminated(flat @ cross.T, flat @ own.reshape(-1), gain, inverse)


@partial(compiled, small=True)
def moved(
    assembled: Assembled,
    lam: Float[Array, "B d"],
    inverse: Float[Array, "B d d"],
    delta: Float[Array, " m"],
    box: Box,
) -> Float[Array, "B d"]:
    """λ_i after the steps that go with the atoms' step ``delta``."""
    dim = lam.shape[1]
    along = jnp.einsum("imd,m->id", assembled.cross[:, :, :dim], delta)
    step = jnp.einsum("ide,ie->id", inverse, assembled.own[:, :dim, dim] - along)
    return box.put_inside(lam + step)


def _inverse_metric(
    own: Float[Array, "B e e"], lam: Float[Array, "B d"], damping: Array, box: Box
) -> Float[Array, "B d d"]:
    """H_i⁻¹, damped, with λ on a bound held there."""
    dim = lam.shape[1]
    held = held_at_bounds(box, lam, own[:, :dim, dim])
    # Units of the box make the parameters comparable.
    width = jnp.where(held, 0, jnp.asarray(box.width, lam.dtype)[None])
    units = width[:, :, None] * width[:, None, :]
    metric = own[:, :dim, :dim] * units
    diagonal = jnp.einsum("idd->id", metric)
    # Images that weigh nothing have no curvature: their λ stays.
    ridge = jnp.finfo(lam.dtype).eps * diagonal.max(axis=1, keepdims=True)
    ridge = ridge + jnp.finfo(lam.dtype).tiny ** 0.5
    extra = jnp.where(held, 1, damping * diagonal + ridge)
    return inverse_definite(metric, extra) * units


def solve_damped(equations: Reduced, held: np.ndarray, damping: float) -> tuple[np.ndarray, float]:
    """Step of the atoms, some parameters held, and the decrease of E that it promises with λ's."""
    _, diagonal, matrix, slope, alone = equations
    matrix, slope = matrix.copy(), slope.copy()
    ridge = 1e-12 * diagonal.max(initial=0) + np.finfo(np.float64).tiny
    matrix[np.diag_indices_from(matrix)] += damping * diagonal + ridge
    matrix[held], matrix[:, held], slope[held] = 0, 0, 0
    matrix[held, held] = 1
    try:
        delta = linalg.cho_solve(linalg.cho_factor(matrix), slope)
    except linalg.LinAlgError:
        # Rounding has made the matrix indefinite; the caller will raise the damping.
        return slope / np.maximum(diagonal, ridge) * min(1.0, 1 / damping), np.inf
    # (M + μD) δ = b, so that 2 δᵀb − δᵀM δ = δᵀb + μ δᵀD δ.
    damped = damping * float(np.where(held, 0, diagonal) @ delta**2)
    return delta, float(delta @ slope) + damped + float(alone)


def held_parameters(box: Box, gamma: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Mark parameters of atoms, coefficients included, that are held at a bound."""
    by_atom = slope.reshape(len(gamma), -1)[:, :-1]
    return np.pad(held_at_bounds(box, gamma, by_atom), ((0, 0), (0, 1))).ravel()
