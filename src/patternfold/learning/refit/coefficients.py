"""The coefficients alone, with atoms and λ as they are: linear least squares."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg

from patternfold.learning.observations import Chunk, Observations
from patternfold.model.atoms import AtomFamily, pad_atoms, padded_size
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled


def correct_coefficients(
    pattern: Pattern,
    lam: np.ndarray,
    observations: Observations,
    transformation: AbstractTransformation,
) -> tuple[Pattern, float]:
    """Solve for all coefficients with atoms and λ as they are: linear least squares."""
    dtype, n_atoms = observations.dtype, pattern.n_atoms
    gamma = pad_atoms(pattern.coef, pattern.gamma, padded_size(n_atoms))[1].astype(dtype)
    grid = observations.grid
    stage = partial(
        _atom_products,
        family=pattern.family,
        gamma=gamma,
        transformation=transformation,
        x=grid.x.astype(dtype),
        y=grid.y.astype(dtype),
    )
    gram, along = observations.total(stage, lam.astype(dtype))
    matrix, right = gram[:n_atoms, :n_atoms], along[:n_atoms]
    energy = observations.energy

    def cost(coef: np.ndarray) -> float:
        return max(0.0, energy - 2 * float(coef @ right) + float(coef @ matrix @ coef))

    ridge = 1e-7 * np.trace(matrix) / max(1, n_atoms) * np.eye(n_atoms)
    coef = linalg.solve(matrix + ridge, right, assume_a="sym")
    best = min((pattern.coef, coef), key=cost)
    return pattern.replace(best, pattern.gamma), cost(best)


@compiled
def _atom_products(
    chunk: Chunk,
    lam: Float[Array, "B d"],
    family: AtomFamily,
    gamma: Float[Array, "K s"],
    transformation: AbstractTransformation,
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, "K K"], Float[Array, " K"]]:
    """Σ w_i⟨U_λi(φ_j), U_λi(φ_k)⟩ and Σ w_i⟨U_λi(φ_j), u_i⟩, image by image."""

    def add(total: tuple[Array, Array], row: tuple[Any, ...]) -> tuple[tuple[Array, Array], None]:
        image, weight, root, lam = row
        warped = transformation.coordinates(lam, x, y)
        phi = jax.vmap(family.value, in_axes=(0, None, None))(gamma, *warped)
        if root is not None:
            phi, image = phi * root[None], image * root
        return (total[0] + weight * (phi @ phi.T), total[1] + weight * (phi @ image)), None

    k = len(gamma)
    zero = (jnp.zeros((k, k), lam.dtype), jnp.zeros(k, lam.dtype))
    rows = (chunk.images, chunk.weights, chunk.roots, lam)
    return jax.lax.scan(add, zero, rows)[0]
