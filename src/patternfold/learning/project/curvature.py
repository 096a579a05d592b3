"""Derivatives of the squared distance ‖u − U_λ(p)‖² in λ.

Half of its Hessian is TᵀT − Σ w ∂²U_λ(p)/∂λ². Gauss-Newton drops the second part, which is right
for images near the manifold; but where the residual w is large, it makes the difference between
ten steps and a hundred.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.model.atoms import Atoms, Points, atom_field, evaluate_field
from patternfold.model.manifold import warped_pixels
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.transformations.base import AbstractAffineTransformation
from patternfold.numerics.compilation import compiled

Image = Float[Array, " n"]
Field = tuple[Points, Points, Points, Points, Points, Points]
"""p, its gradient (p_x, p_y) and its second derivatives (p_xx, p_xy, p_yy)."""


@compiled
def normal_equations(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: Float[Array, "B n"],
    lam: Float[Array, "B d"],
    x: Image,
    y: Image,
) -> tuple[Float[Array, " B"], Float[Array, "B d"], Float[Array, "B d d"]]:
    """Return ‖w‖² with w = u − U_λ(p), Tᵀw and TᵀT."""
    value, along_x, along_y = evaluate_field(atoms, *warped_pixels(transformation, lam, x, y))
    w = images - value
    products = jax.vmap(transformation.tangent_products, in_axes=(0, None, None, 0, 0, 0))
    metric, slope = products(lam, x, y, along_x, along_y, w)
    return (w**2).sum(axis=1), slope, metric


@compiled
def newton_equations(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: Float[Array, "B n"],
    lam: Float[Array, "B d"],
    x: Image,
    y: Image,
) -> tuple[Float[Array, " B"], Float[Array, "B d"], Float[Array, "B d d"], Float[Array, "B d d"]]:
    """Return ‖w‖², Tᵀw, TᵀT and half of the Hessian of ‖w‖²."""
    field = second_order_field(atoms, *warped_pixels(transformation, lam, x, y))
    w = images - field[0]
    if isinstance(transformation, AbstractAffineTransformation):
        second_order = partial(_affine_second_order, transformation)
    else:
        second_order = partial(_second_order, transformation)
    products = jax.vmap(second_order, in_axes=(0, None, None, 0, 0))
    return (w**2).sum(axis=1), *products(lam, x, y, field, w)


def second_order_field(atoms: Atoms, x: Points, y: Points) -> Field:
    """p and its first and second derivatives in one pass over the atoms."""
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)

    def add(j: Int[Array, ""], totals: Field) -> Field:
        def first_order(x: Points, y: Points) -> tuple[Points, Points, Points]:
            return atom_field(atoms.mother, atoms.dictionary, atoms.gamma[j], x, y)

        (p, px, py), (_, pxx, pxy) = jax.jvp(first_order, (x, y), (one, zero))
        pyy = jax.jvp(first_order, (x, y), (zero, one))[1][2]
        t = totals
        c = atoms.coef[j]
        return (
            t[0] + c * p,
            t[1] + c * px,
            t[2] + c * py,
            t[3] + c * pxx,
            t[4] + c * pxy,
            t[5] + c * pyy,
        )

    return jax.lax.fori_loop(0, atoms.count, add, (zero,) * 6)


def _affine_second_order(
    transformation: AbstractAffineTransformation,
    lam: Float[Array, " d"],
    x: Image,
    y: Image,
    field: Field,
    w: Image,
) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, "d d"]]:
    """Return Tᵀw, TᵀT and half of the Hessian from moments, as ``tangent_products`` does."""
    _, px, py, pxx, pxy, pyy = field
    e = jnp.stack([x, y, jnp.ones_like(x)])
    monomials = jnp.stack([x * x, x * y, x, y * y, y, jnp.ones_like(x)])
    place = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])

    def moments(xx: Image, xy: Image, yy: Image) -> Float[Array, "6 6"]:
        # One product at a time: XLA's CPU backend is slow at stacking images it has to compute.
        a, b, c = ((monomials @ image)[place] for image in (xx, xy, yy))
        return jnp.block([[a, b], [b, c]])

    def entries(lam: Float[Array, " d"]) -> Float[Array, " 6"]:
        return transformation.matrix(lam).reshape(6)

    slopes = jax.jacfwd(entries)(lam)
    along_w = jnp.concatenate([e @ (px * w), e @ (py * w)])
    metric = slopes.T @ moments(px * px, px * py, py * py) @ slopes
    bend = slopes.T @ moments(w * pxx, w * pxy, w * pyy) @ slopes
    turn = jnp.tensordot(along_w, jax.jacfwd(jax.jacfwd(entries))(lam), axes=1)
    return along_w @ slopes, metric, metric - bend - turn


def _second_order(
    transformation: AbstractTransformation,
    lam: Float[Array, " d"],
    x: Image,
    y: Image,
    field: Field,
    w: Image,
) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, "d d"]]:
    """Return Tᵀw, TᵀT and half of the Hessian from the derivatives at every pixel."""
    _, px, py, pxx, pxy, pyy = field
    dx, dy = transformation.derivatives(lam, x, y)
    metric, slope = transformation.tangent_products(lam, x, y, px, py, w)
    mixed = (dx * (w * pxy)[None]) @ dy.T
    bend = (dx * (w * pxx)[None]) @ dx.T + mixed + mixed.T + (dy * (w * pyy)[None]) @ dy.T

    def along_w(lam: Float[Array, " d"]) -> Float[Array, ""]:
        x_new, y_new = transformation.coordinates(lam, x, y)
        return (px * w * x_new + py * w * y_new).sum()

    turn = jax.jacfwd(jax.jacfwd(along_w))(lam)
    return slope, metric, metric - bend - turn
