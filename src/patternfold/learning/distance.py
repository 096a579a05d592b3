"""E of single images: the squared distance ‖u − U_λ(p)‖² and its derivatives in λ.

Half of its Hessian is TᵀT − Σ w ∂²U_λ(p)/∂λ². Gauss-Newton drops the second part, which is right
for images near the manifold; but where the residual w is large, it makes the difference between
ten steps and a hundred.

Pixels count by their weights, whose square roots multiply residuals and tangents; a loss other than
the squared one reweights them there (`Terms`). Where an image has a gain and an offset of its own
(`Lighting`), the distance is that at the best ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from patternfold.learning.lighting import PLAIN, Fit, Lighting
from patternfold.learning.terms import Terms
from patternfold.model.atoms import Atoms, Points, evaluate, evaluate_field, field_of
from patternfold.model.manifold import tangent_products, warped_pixels
from patternfold.model.transformations import (
    AbstractAffineTransformation,
    AbstractTransformation,
)
from patternfold.model.transformations.base import moments
from patternfold.numerics.least_squares import Model

Image = Float[Array, " n"]
Batch = Float[Array, "B n"]
Derivatives = tuple[Points, Points, Points, Points, Points]
"""The gradient (p_x, p_y) of p and its second derivatives (p_xx, p_xy, p_yy)."""

LIGHT_ROUNDS = 5
"""Rounds of reweighting for gain and offset under a loss: each takes away most of what is left."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Distance:
    """‖u − U_λ(p)‖² over rows of images and λ, for one pattern or for several.

    With several patterns the atoms have a leading axis, and ``which`` names the pattern of a row.
    """

    atoms: Atoms
    transformation: AbstractTransformation
    x: Any  # (n,)
    y: Any  # (n,)
    lighting: Lighting = field(default=PLAIN, metadata={"static": True})
    reference: Any = None  # ‖p‖² of the pattern in its own frame, or of each; where known already
    terms: Terms | None = None  # a loss in place of squares, and the cost of λ

    def values(self, lam: Float[Array, "B d"], which: Int[Array, " B"] | None = None) -> Batch:
        """U_λ(p) of each row."""
        return self._over_atoms(evaluate, lam, which)

    def fit(
        self,
        images: Batch,
        roots: Batch | None,
        values: Batch,
        which: Int[Array, " B"] | None = None,
    ) -> Fit:
        """The gain and offset of each row at U_λ(p), and the residual."""
        terms = self.terms_of(which)
        if terms is None or terms.loss is None:
            return self._least_squares_fit(images, roots, values, which)
        fit = self._least_squares_fit(images, roots, values, which)
        own = roots
        for _ in range(LIGHT_ROUNDS if self.lighting else 0):
            own, _ = terms.reweighted(fit.raw(images, values), roots)
            fit = self._least_squares_fit(images, own, values, which)
        residual = fit.raw(images, values)
        own, robust = terms.reweighted(residual, roots)
        return fit._replace(residual=residual * own, roots=own, robust=robust)

    def _least_squares_fit(
        self,
        images: Batch,
        roots: Batch | None,
        values: Batch,
        which: Int[Array, " B"] | None,
    ) -> Fit:
        if not self.lighting:
            w = images - values
            return Fit.plain(w if roots is None else w * roots)
        reference = self.with_reference().reference
        reference = reference if which is None else reference[which]
        return self.lighting.fit(images, roots, values, jnp.broadcast_to(reference, len(images)))

    def terms_of(self, which: Int[Array, " B"] | None) -> Terms | None:
        """The terms of the only pattern, or of that of each row."""
        return self.terms if self.terms is None or which is None else self.terms.of(which)

    def with_reference(self) -> Distance:
        """The same, with what the bound of the gain needs: once, before a loop."""
        if self.reference is not None:
            return self
        if not self.lighting.gain:
            return replace(self, reference=jnp.zeros((), self.x.dtype))
        x, y = jnp.asarray(self.x), jnp.asarray(self.y)

        def energy(coef: Any, gamma: Any) -> Array:
            own = evaluate(Atoms(coef, gamma, self.atoms.count, self.atoms.family), x, y)
            return self.lighting.energies(own[None], None)[0]

        several = self.atoms.coef.ndim == 2
        energies = (jax.vmap(energy) if several else energy)(self.atoms.coef, self.atoms.gamma)
        return replace(self, reference=energies)

    def residuals(
        self,
        images: Batch,
        roots: Batch | None,
        lam: Float[Array, "B d"],
        which: Int[Array, " B"] | None = None,
    ) -> Batch:
        """u − U_λ(p) of each row, at the best gain and offset, times the pixels' roots."""
        return self.fit(images, roots, self.values(lam, which), which).residual

    def squares(
        self,
        images: Batch,
        roots: Batch | None,
        lam: Float[Array, "B d"],
        which: Int[Array, " B"] | None = None,
    ) -> Float[Array, " B"]:
        """‖u − U_λ(p)‖² of each row, or what a loss makes of it, and the cost of λ."""
        costs = self.fit(images, roots, self.values(lam, which), which).cost
        terms = self.terms_of(which)
        return costs if terms is None or terms.penalty is None else costs + terms.penalty(lam)[0]

    def first_order(
        self,
        images: Batch,
        roots: Batch | None,
        lam: Float[Array, "B d"],
        which: Int[Array, " B"] | None = None,
    ) -> Model:
        """‖w‖² with w = u − U_λ(p), Tᵀw and TᵀT."""
        # Without the barrier XLA computes the sums over atoms anew for each product.
        field = jax.lax.optimization_barrier(self._over_atoms(evaluate_field, lam, which))
        fit, slopes = self._lit(images, roots, field, which)
        products = jax.vmap(partial(tangent_products, self.transformation), (0, None, None, 0, 0))

        def along(w: Batch) -> tuple[Array, Array]:
            return products(lam, self.x, self.y, slopes, w)

        metric, slope = along(fit.residual)
        for direction in fit.directions:
            metric = metric - _square(along(direction)[1])
        return self._with_terms(Model(fit.cost, slope, metric), lam, which)

    def second_order(
        self,
        images: Batch,
        roots: Batch | None,
        lam: Float[Array, "B d"],
        which: Int[Array, " B"] | None = None,
    ) -> Model:
        """‖w‖², Tᵀw, TᵀT and half of the Hessian of ‖w‖²."""
        field = jax.lax.optimization_barrier(self._over_atoms(second_order_field, lam, which))
        fit, derivatives = self._lit(images, roots, field, which)
        if isinstance(self.transformation, AbstractAffineTransformation):
            second_order = partial(_affine_second_order, self.transformation)
        else:
            second_order = partial(_second_order, self.transformation)
        products = jax.vmap(second_order, in_axes=(0, None, None, 0, 0))
        w, (px, py, *_) = fit.residual, derivatives
        slope, metric, hessian = products(lam, self.x, self.y, derivatives[:5], w)
        slopes = (px, py, *derivatives[5:])
        along = jax.vmap(partial(tangent_products, self.transformation), (0, None, None, 0, 0))
        if derivatives[5:]:
            # Of the spread the first derivative will do.
            without, (metric, slope) = metric, along(lam, self.x, self.y, slopes, w)
            hessian = hessian + metric - without
        for k, direction in enumerate(fit.directions):
            across = along(lam, self.x, self.y, slopes, direction)[1]
            metric = metric - _square(across)
            if self.lighting.gain and k == len(fit.directions) - 1:
                # The gain also changes how much a step along the tangents does.
                across = across - slope * (fit.pull / jnp.where(fit.gain > 0, fit.gain, 1))[:, None]
            hessian = hessian - _square(across)
        return self._with_terms(Model(fit.cost, slope, metric, hessian), lam, which)

    def _with_terms(
        self, model: Model, lam: Float[Array, "B d"], which: Int[Array, " B"] | None
    ) -> Model:
        terms = self.terms_of(which)
        return model if terms is None else terms.with_penalty(model, lam)

    def _lit(
        self,
        images: Batch,
        roots: Batch | None,
        field: Any,
        which: Int[Array, " B"] | None,
    ) -> tuple[Fit, Any]:
        """The light of each row, and the derivatives of p in it, times the pixels' roots."""
        value, *derivatives = field
        fit = self.fit(images, roots, value, which)
        scale = fit.scale(roots)
        return fit, tuple(part if scale is None else part * scale for part in derivatives)

    def _over_atoms(
        self,
        function: Callable[..., Any],
        lam: Float[Array, "B d"],
        which: Int[Array, " B"] | None,
    ) -> Any:
        """Evaluate a sum of atoms at the warped pixels of every row."""
        warped = warped_pixels(self.transformation, lam, self.x, self.y)
        if which is None:
            return function(self.atoms, *warped)
        own = self.atoms.of(which)

        def row(coef: Any, gamma: Any, *place: Any) -> Any:
            return function(Atoms(coef, gamma, own.count, own.family), *place)

        return jax.vmap(row)(own.coef, own.gamma, *warped)


def _square(vectors: Float[Array, "B d"]) -> Float[Array, "B d d"]:
    """Outer product of each row with itself."""
    return vectors[:, :, None] * vectors[:, None, :]


def second_order_field(
    atoms: Atoms, x: Points, y: Points, spread: Any = None
) -> tuple[Points, ...]:
    """p and its first and second derivatives in one pass; with a ``spread``, p_s comes last."""
    atoms, field = field_of(atoms, spread)
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)

    def add(j: Int[Array, ""], totals: tuple[Points, ...]) -> tuple[Points, ...]:
        def first_order(x: Points, y: Points) -> tuple[Points, ...]:
            return field(j, x, y)

        (p, px, py, *ps), (_, pxx, pxy, *_) = jax.jvp(first_order, (x, y), (one, zero))
        pyy = jax.jvp(first_order, (x, y), (zero, one))[1][2]
        parts = (p, px, py, pxx, pxy, pyy, *ps)
        return tuple(t + atoms.coef[j] * q for t, q in zip(totals, parts, strict=True))

    return jax.lax.fori_loop(0, atoms.count, add, (zero,) * (6 if spread is None else 7))


def _affine_second_order(
    transformation: AbstractAffineTransformation,
    lam: Float[Array, " d"],
    x: Image,
    y: Image,
    field: Derivatives,
    w: Image,
) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, "d d"]]:
    """Return Tᵀw, TᵀT and half of the Hessian from moments, as ``tangent_products`` does."""
    px, py, pxx, pxy, pyy = field
    e = jnp.stack([x, y, jnp.ones_like(x)])

    def entries(lam: Float[Array, " d"]) -> Float[Array, " 6"]:
        return transformation.matrix(lam).reshape(6)

    slopes = jax.jacfwd(entries)(lam)
    along_w = jnp.concatenate([e @ (px * w), e @ (py * w)])
    metric = slopes.T @ moments(x, y, px * px, px * py, py * py) @ slopes
    bend = slopes.T @ moments(x, y, w * pxx, w * pxy, w * pyy) @ slopes
    turn = jnp.tensordot(along_w, jax.jacfwd(jax.jacfwd(entries))(lam), axes=1)
    return along_w @ slopes, metric, metric - bend - turn


def _second_order(
    transformation: AbstractTransformation,
    lam: Float[Array, " d"],
    x: Image,
    y: Image,
    field: Derivatives,
    w: Image,
) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, "d d"]]:
    """Return Tᵀw, TᵀT and half of the Hessian from the derivatives at every pixel."""
    px, py, pxx, pxy, pyy = field
    dx, dy = transformation.derivatives(lam, x, y)
    metric, slope = transformation.tangent_products(lam, x, y, px, py, w)
    mixed = (dx * (w * pxy)[None]) @ dy.T
    bend = (dx * (w * pxx)[None]) @ dx.T + mixed + mixed.T + (dy * (w * pyy)[None]) @ dy.T

    def along_w(lam: Float[Array, " d"]) -> Float[Array, ""]:
        x_new, y_new = transformation.coordinates(lam, x, y)
        return (px * w * x_new + py * w * y_new).sum()

    turn = jax.jacfwd(jax.jacfwd(along_w))(lam)
    return slope, metric, metric - bend - turn
