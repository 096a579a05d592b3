"""The coefficients alone, with atoms and λ as they are: linear least squares."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import linalg

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.observations import Observations
from patternfold.model.atoms import make_atoms
from patternfold.model.manifold import warped
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled


def correct_coefficients(
    pattern: Pattern,
    lam: np.ndarray,
    observations: Observations,
    transformation: AbstractTransformation,
) -> tuple[Pattern, float]:
    """Solve for all coefficients with atoms, λ and the images' light as they are."""
    dtype, n_atoms, grid = observations.dtype, pattern.n_atoms, observations.grid
    atoms = make_atoms(pattern.coef, pattern.gamma, pattern.family, dtype)
    places = grid.x.astype(dtype), grid.y.astype(dtype)
    distance = Distance(atoms, transformation, *places, observations.lighting)
    stage = partial(_atom_products, distance=distance)
    gram, along, energy = observations.total(stage, lam.astype(dtype))
    matrix, right = gram[:n_atoms, :n_atoms], along[:n_atoms]

    def cost(coef: np.ndarray) -> float:
        return max(0.0, float(energy) - 2 * float(coef @ right) + float(coef @ matrix @ coef))

    ridge = 1e-7 * np.trace(matrix) / max(1, n_atoms) * np.eye(n_atoms)
    coef = linalg.solve(matrix + ridge, right, assume_a="sym")
    best = min((pattern.coef, coef), key=cost)
    return pattern.replace(best, pattern.gamma), cost(best)


@compiled
def _atom_products(
    chunk: Chunk, lam: Float[Array, "B d"], distance: Distance
) -> tuple[Float[Array, "K K"], Float[Array, " K"], Float[Array, ""]]:
    """Σ w_i⟨U_λi(φ_j), U_λi(φ_k)⟩, Σ w_i⟨U_λi(φ_j), u_i⟩ and Σ w_i‖u_i‖², image by image.

    In the light of each image: atoms times its gain, and images less its offset.
    """
    transformation, family, gamma = (
        distance.transformation,
        distance.atoms.family,
        distance.atoms.gamma,
    )
    fit = distance.fit(chunk.images, chunk.roots, distance.values(lam))
    scale = fit.scale(chunk.roots)
    images = chunk.images - fit.offset[:, None]
    images = images if chunk.roots is None else images * chunk.roots

    def add(total: Any, row: tuple[Any, ...]) -> tuple[Any, None]:
        image, weight, scale, lam = row
        place = warped(transformation, lam, distance.x, distance.y)
        phi = jax.vmap(lambda own: family.value(own, *place))(gamma)
        phi = phi if scale is None else phi * scale[None]
        sums = phi @ phi.T, phi @ image, image @ image
        return tuple(t + weight * part for t, part in zip(total, sums, strict=True)), None

    k = len(gamma)
    zero: Any = tuple(jnp.zeros(shape, lam.dtype) for shape in ((k, k), (k,), ()))
    return jax.lax.scan(add, zero, (images, chunk.weights, scale, lam))[0]
