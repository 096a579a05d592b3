"""The errors that atom selection minimises: Ẽ with λ frozen, Ê by tangent distances, and E.

One weighted definition serves both algorithms. PATS: w_i are sample weights. JPATS, class m: own
images weigh 1 + α η_i, impostors −α η_i.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.atoms import atom_field
from patternfold.dictionary import AbstractDictionary
from patternfold.manifold import tangent_vectors, warped_pixels
from patternfold.mothers import AbstractMother
from patternfold.transformations import AbstractTransformation

Gamma = Float[Array, " s"]
Points = Float[Array, " P"]
Batch = Float[Array, "N n"]


def frozen_gain(
    phi: Points, weighted_residuals: Points, weights: Points
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Decrease of Ẽ (eq. tildeE) by the best multiple of an atom φ_γ, and that multiple.

    With the atom's value at every pixel's place in the pattern's frame, its w·v and its w,

    .. math:: c^* = \frac{\sum w v φ_γ}{\sum w φ_γ^2}, \qquad
              \tilde E(0) - \tilde E(γ, c^*) = \frac{(\sum w v φ_γ)^2}{\sum w φ_γ^2}.

    With signed weights the denominator may vanish or turn negative, where Ẽ is unbounded in c;
    such atoms are refused: their gain is 0.
    """
    along = (weighted_residuals * phi).sum()
    energy = (weights * phi**2).sum()
    floor = 1e-3 * (jnp.abs(weights) * phi**2).sum() + jnp.finfo(phi.dtype).tiny
    sound = energy > floor
    coef = along / jnp.where(sound, energy, 1)
    return jnp.where(sound, coef * along, 0), jnp.where(sound, coef, 0)


def tangent_error(
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    transformation: AbstractTransformation,
    gamma: Gamma,
    coef: Float[Array, ""],
    residuals: Batch,
    base_x: Batch,
    base_y: Batch,
    lam: Float[Array, "N d"],
    weights: Float[Array, " N"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> Float[Array, ""]:
    r"""Ê (eq. hatEfinal) of the pattern p_{j-1} + c φ_γ, as a function of the new atom.

    .. math:: \hat E = \sum_i w_i \|w_i - T_i (T_i^T T_i)^{-1} T_i^T w_i\|^2

    ``residuals`` are v_i = u_i − U_λi(p_{j-1}), ``base_x`` and ``base_y`` the gradient of p_{j-1}
    at the warped pixels; T_i are the tangents of the new pattern.
    """
    warped_x, warped_y = warped_pixels(transformation, lam, x, y)
    phi, phi_x, phi_y = atom_field(mother, dictionary, gamma, warped_x, warped_y)
    w = residuals - coef * phi
    vectors = tangent_vectors(
        transformation, lam, x, y, base_x + coef * phi_x, base_y + coef * phi_y
    )
    gram = jnp.einsum("ikn,iln->ikl", vectors, vectors)
    slope = jnp.einsum("ikn,in->ik", vectors, w)
    # In units of each tangent's length, with a ridge for tangents that are nearly dependent.
    length = jnp.sqrt(jnp.diagonal(gram, axis1=1, axis2=2) + jnp.finfo(w.dtype).tiny)
    scaled = gram / (length[:, :, None] * length[:, None, :])
    scaled = scaled + 1e-4 * jnp.eye(gram.shape[1], dtype=w.dtype)[None]
    along = slope / length
    factor = jax.vmap(jnp.linalg.cholesky)(scaled)
    half = jax.vmap(lambda f, b: jax.scipy.linalg.solve_triangular(f, b, lower=True))(factor, along)
    return (weights * ((w**2).sum(axis=1) - (half**2).sum(axis=1))).sum()
