"""The errors that atom selection minimises: Ẽ with λ frozen and Ê by tangent distances.

One weighted definition serves both algorithms. PATS: w_i are sample weights. JPATS, class m: own
images weigh 1 + α η_i, impostors −α η_i. Both errors are made of sums over images, so that chunks
of images can be added up. E itself, the squared distance, is in `distance`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.lighting import Fit
from patternfold.model.atoms import AtomFamily, evaluate, evaluate_field
from patternfold.model.manifold import tangent_vectors, warped_pixels
from patternfold.numerics.least_squares import Model, inverse_definite

TANGENT_REACH = 0.1
"""Longest step along a tangent, as a share of the width of Λ. Without a limit Ê is lowest for faint
atoms, whose tangents reach any image by steps far out of Λ, where they tell nothing of M(p)."""

Points = Float[Array, " P"]
Batch = Float[Array, "N n"]
Scalar = Float[Array, ""] | float


class FrozenSums(NamedTuple):
    """What Ẽ needs to know of an atom φ_γ: sums over all pixels, for S atoms.

    ``along``, ``energy`` and ``size`` are Σ w v φ, Σ w φ² and Σ |w| φ²; the ``…_slopes`` have the
    derivatives ∂φ/∂γ in place of one φ, and ``metric`` is Σ |w| ∂φ ∂φᵀ.
    """

    along: Float[Array, " S"]
    energy: Float[Array, " S"]
    size: Float[Array, " S"]
    along_slopes: Float[Array, "S s"]
    energy_slopes: Float[Array, "S s"]
    size_slopes: Float[Array, "S s"]
    metric: Float[Array, "S s s"]


def frozen_sums(
    family: AtomFamily,
    gamma: Float[Array, "S s"],
    x: Points,
    y: Points,
    weighted: Points,
    weights: Points,
    offset: Scalar = 0.0,
) -> FrozenSums:
    """Sums of atoms over points of the pattern's frame that carry w·v and w.

    With ``offset``, 1/Σw, atoms count less their mean, which the images' offsets make up for.
    """
    sizes = jnp.abs(weights)

    def sums(gamma: Float[Array, " s"]) -> FrozenSums:
        phi, columns = family.derivatives(gamma, x, y)
        phi = phi - offset * (weights * phi).sum()
        columns = jnp.stack([column - offset * (weights * column).sum() for column in columns])
        return FrozenSums(
            (weighted * phi).sum(),
            (weights * phi**2).sum(),
            (sizes * phi**2).sum(),
            columns @ weighted,
            columns @ (weights * phi),
            columns @ (sizes * phi),
            (columns * sizes[None]) @ columns.T,
        )

    return jax.vmap(sums)(gamma)


def frozen_gain(along: Array, energy: Array, size: Array, max_coef: Scalar) -> tuple[Array, Array]:
    r"""Decrease of Ẽ (eq. tildeE) by the best multiple c of an atom φ_γ with |c| ≤ C; and c.

    .. math:: \tilde E(0) - \tilde E(γ, c) = 2 c \sum w v φ_γ - c^2 \sum w φ_γ^2, \qquad
              c^* = \frac{\sum w v φ_γ}{\sum w φ_γ^2} \text{ where that is a minimum within C}.

    With signed weights Σ w φ² may vanish or turn negative: impostors outweigh, and the best c lies
    on the bound. With weights of one sign C may be infinite. Where there is no data the gain is 0.
    """
    within = energy * max_coef > jnp.abs(along)
    free = along / jnp.where(within, energy, 1)
    # At the bound either sign does where the residual has no part along the atom.
    bound = jnp.where(along < 0, -max_coef, max_coef)
    some = size > jnp.finfo(size.dtype).tiny
    coef = jnp.where(some, jnp.where(within, free, bound), 0)
    gain = jnp.where(within, coef * along, coef * (2 * along - coef * energy))
    return jnp.where(some, gain, 0), coef


def frozen_model(sums: FrozenSums, max_coef: Scalar) -> tuple[Model, Float[Array, " S"]]:
    """Ẽ(γ, c*) − Ẽ(0) as a function of γ, the coefficient eliminated; and the coefficient.

    Signed weights enter the gain and its slope as they are and the matrix by their size. A
    coefficient on its bound is held there: nothing is eliminated.
    """
    gain, coef = frozen_gain(sums.along, sums.energy, sums.size, max_coef)
    c = coef[:, None]
    slope = c * (sums.along_slopes - c * sums.energy_slopes)
    size = (sums.size + jnp.finfo(gain.dtype).tiny)[:, None, None]
    across = sums.size_slopes[:, :, None] * sums.size_slopes[:, None, :] / size
    across = jnp.where((jnp.abs(coef) < max_coef)[:, None, None], across, 0)
    return Model(-gain, slope, c[:, :, None] ** 2 * (sums.metric - across)), coef


def tangent_model(
    chunk: Chunk, lam: Float[Array, "N d"], atom: Float[Array, "1 a"], base: Distance
) -> Model:
    r"""Ê (eq. hatEfinal) of the pattern p_{j-1} + c φ_γ over a chunk, as a function of (γ, c).

    .. math:: \hat E = \sum_i w_i \|e_i\|^2, \quad e_i = w_i - T_i z_i^*, \quad
              z_i^* = (T_i^T T_i)^{-1} T_i^T w_i

    ``base`` is the distance to p_{j-1}; w_i = u_i − U_λi(p_{j-1}) − c U_λi(φ_γ), and T_i are the
    tangents of the new pattern. Steps z* are shortened to `TANGENT_REACH`. Since z* minimises
    ‖w − T z‖, it counts as constant in the slope −½∂Ê; the matrix is that of Gauss-Newton with z
    eliminated, weights taken by their size. What an image's own gain and offset make up for is
    taken out of w, of T and of the derivatives alike.
    """
    family, x, y = base.transformation, base.x, base.y
    warped = warped_pixels(family, lam, x, y)
    value, *of_base = jax.lax.optimization_barrier(evaluate_field(base.atoms, *warped))
    gamma, c = atom[0, :-1], atom[0, -1]
    phi, *of_phi = base.atoms.family.field(gamma, *warped)
    fit, scale = _light(chunk, base, gamma, c, value + c * phi)
    slopes = [scale * (a + c * b) for a, b in zip(of_base, of_phi, strict=True)]
    vectors = fit.without(tangent_vectors(family, lam, x, y, *slopes))
    w = fit.residual
    inverse = _inverse_of_gram(jnp.einsum("ikn,iln->ikl", vectors, vectors))
    z = _within_reach(jnp.einsum("ikl,iln,in->ik", inverse, vectors, w), family.parameters.width)
    # T z is the slope of the pattern along a field of displacements (X, Y), and of the spread.
    _, along = jax.jvp(lambda rows: warped_pixels(family, rows, x, y), (lam,), (z,))

    def displaced(gamma: Float[Array, " s"]) -> Batch:
        phi, *slopes = base.atoms.family.field(gamma, *warped)
        return sum((a * b for a, b in zip(slopes, along, strict=True)), phi)

    slopes = jax.vmap(lambda direction: jax.jvp(displaced, (gamma,), (direction,))[1])
    by_gamma = slopes(jnp.eye(len(gamma), dtype=gamma.dtype))
    e = w - jnp.einsum("ik,ikn->in", z, vectors)
    moved = scale[None] * jnp.concatenate([c * by_gamma, displaced(gamma)[None]])
    moved = jnp.moveaxis(fit.without(jnp.moveaxis(moved, 0, 1)), 1, 0)
    weights, size = chunk.weights, jnp.abs(chunk.weights)
    slope = jnp.einsum("i,ain,in->a", weights, moved, e)
    across = jnp.einsum("ain,ikn->iak", moved, vectors)
    matrix = jnp.einsum("i,ain,bin->ab", size, moved, moved) - jnp.einsum(
        "i,iak,ikl,ibl->ab", size, across, inverse, across
    )
    return Model((weights * (e**2).sum(axis=1)).sum()[None], slope[None], matrix[None])


def _light(
    chunk: Chunk, base: Distance, gamma: Float[Array, " s"], c: Scalar, values: Batch
) -> tuple[Fit, Array]:
    """The light of each image on U_λ(p_{j-1} + c φ_γ), and what multiplies that in it."""
    if base.lighting.gain:
        x, y = jnp.asarray(base.x), jnp.asarray(base.y)
        own = evaluate(base.atoms, x, y) + c * base.atoms.family.value(gamma, x, y)
        base = replace(base, reference=base.lighting.energies(own[None], None)[0])
    fit = base.fit(chunk.images, chunk.roots, values)
    scale = fit.scale(chunk.roots)
    return fit, jnp.ones((1, 1), values.dtype) if scale is None else scale


def _within_reach(z: Float[Array, "N d"], width: np.ndarray) -> Float[Array, "N d"]:
    """Shorten steps along the tangents that leave where these stand for the manifold."""
    share = jnp.abs(z) / (TANGENT_REACH * width).astype(z.dtype)[None]
    return z / jnp.maximum(share.max(axis=1, keepdims=True), 1)


def _inverse_of_gram(gram: Float[Array, "N d d"]) -> Float[Array, "N d d"]:
    """(TᵀT)⁻¹ in units of each tangent's length, with a ridge for nearly dependent tangents."""
    square = jnp.einsum("ikk->ik", gram)
    # A direction in which nothing moves has no length; any unit will do.
    length = jnp.where(square > jnp.finfo(gram.dtype).tiny, jnp.sqrt(square), 1)
    units = length[:, :, None] * length[:, None, :]
    return inverse_definite(gram / units, jnp.full_like(length, 1e-4)) / units
