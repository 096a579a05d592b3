"""The errors that atom selection minimises: Ẽ with λ frozen, Ê by tangent distances, and E.

One weighted definition serves both algorithms. PATS: w_i are sample weights. JPATS, class m: own
images weigh 1 + α η_i, impostors −α η_i.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from patternfold.model.atoms import atom_field
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.manifold import tangent_vectors, warped_pixels
from patternfold.model.mothers import AbstractMother
from patternfold.model.transformations import AbstractTransformation

SOUND = 0.2
"""Least share of Σ |w| φ² that Σ w φ² must have: below it impostors outweigh, and c is unsound."""

Points = Float[Array, " P"]
Batch = Float[Array, "N n"]


def frozen_gain(
    phi: Points, weighted_residuals: Points, weights: Points, sizes: Points
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Decrease of Ẽ (eq. tildeE) by the best multiple of an atom φ_γ, and that multiple.

    With the atom's value at every pixel's place in the pattern's frame, its w·v and its w,

    .. math:: c^* = \frac{\sum w v φ_γ}{\sum w φ_γ^2}, \qquad
              \tilde E(0) - \tilde E(γ, c^*) = \frac{(\sum w v φ_γ)^2}{\sum w φ_γ^2}.

    With signed weights the denominator may vanish or turn negative, where Ẽ is unbounded in c;
    such atoms are refused: their gain is 0. ``sizes`` are the |w|.
    """
    along = (weighted_residuals * phi).sum()
    energy = (weights * phi**2).sum()
    floor = SOUND * (sizes * phi**2).sum() + jnp.finfo(phi.dtype).tiny
    sound = energy > floor
    coef = along / jnp.where(sound, energy, 1)
    return jnp.where(sound, coef * along, 0), jnp.where(sound, coef, 0)


class TangentModel(NamedTuple):
    """Ê, its descent direction and its curvature, as functions of the new atom (γ, c)."""

    error: Float[Array, ""]
    slope: Float[Array, " a"]
    matrix: Float[Array, "a a"]


def tangent_model(
    mother: AbstractMother,
    dictionary: AbstractDictionary,
    transformation: AbstractTransformation,
    atom: Float[Array, " a"],
    residuals: Batch,
    base_x: Batch,
    base_y: Batch,
    lam: Float[Array, "N d"],
    weights: Float[Array, " N"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> TangentModel:
    r"""Ê (eq. hatEfinal) of the pattern p_{j-1} + c φ_γ, as a function of the new atom.

    .. math:: \hat E = \sum_i w_i \|e_i\|^2, \quad e_i = w_i - T_i z_i^*, \quad
              z_i^* = (T_i^T T_i)^{-1} T_i^T w_i

    ``residuals`` are v_i = u_i − U_λi(p_{j-1}), ``base_x`` and ``base_y`` the gradient of p_{j-1}
    at the warped pixels; w_i = v_i − c U_λi(φ_γ), and T_i are the tangents of the new pattern.
    Since z* minimises ‖w − T z‖, it counts as constant in the slope −½∂Ê; the matrix is that of
    Gauss-Newton with z eliminated, weights taken by their size.
    """
    warped = warped_pixels(transformation, lam, x, y)

    def parts(atom: Float[Array, " a"]) -> tuple[Batch, Float[Array, "N d n"]]:
        phi, phi_x, phi_y = atom_field(mother, dictionary, atom[:-1], *warped)
        along_x, along_y = base_x + atom[-1] * phi_x, base_y + atom[-1] * phi_y
        vectors = tangent_vectors(transformation, lam, x, y, along_x, along_y)
        return residuals - atom[-1] * phi, vectors

    w, vectors = parts(atom)
    # In units of each tangent's length, with a ridge for tangents that are nearly dependent.
    length = jnp.sqrt((vectors**2).sum(axis=2) + jnp.finfo(w.dtype).tiny)
    gram = jnp.einsum("ikn,iln->ikl", vectors, vectors)
    gram = gram / (length[:, :, None] * length[:, None, :])
    inverse = jnp.linalg.inv(gram + 1e-4 * jnp.eye(gram.shape[1], dtype=w.dtype)[None])
    inverse = inverse / (length[:, :, None] * length[:, None, :])
    z = jnp.einsum("ikl,iln,in->ik", inverse, vectors, w)

    def difference(atom: Float[Array, " a"]) -> Batch:
        w, vectors = parts(atom)
        return w - jnp.einsum("ik,ikn->in", z, vectors)

    along = jax.vmap(lambda direction: jax.jvp(difference, (atom,), (direction,))[1])
    moved = along(jnp.eye(len(atom), dtype=atom.dtype))
    e = difference(atom)
    slope = -jnp.einsum("i,ain,in->a", weights, moved, e)
    size = jnp.abs(weights)
    across = jnp.einsum("ain,ikn->iak", moved, vectors)
    matrix = jnp.einsum("i,ain,bin->ab", size, moved, moved) - jnp.einsum(
        "i,iak,ikl,ibl->ab", size, across, inverse, across
    )
    return TangentModel((weights * (e**2).sum(axis=1)).sum(), slope, matrix)
