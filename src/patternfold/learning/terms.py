"""What E is made of beside squares: a loss in their place, and the cost of λ under a prior.

Both are terms of the objective of single images; the solvers do not know of them. Residuals that a
loss takes for outliers weigh less in the normal equations, anew at every point, and a prior adds to
the slope and the metric in λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.model.losses import AbstractLoss
from patternfold.model.prior import Prior, waves
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.least_squares import Model

Batch = Float[Array, "B n"]
Scalars = Float[Array, " B"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Penalty:
    """σ² times the cost of λ: arrays of shape (d,), or (M, d) for several patterns."""

    mean: Any
    precision: Any  # σ²/std², 0 for parameters without prior
    wave: Any  # makes one turn of a periodic parameter 2π
    noise: Any  # σ²
    kinds: tuple[str, ...] = field(metadata={"static": True})

    @classmethod
    def of(cls, prior: Prior, family: AbstractTransformation, noise: float, dtype: Any) -> Penalty:
        """Return what a prior costs where the variance of a pixel is ``noise``."""
        parts = (np.asarray(prior.mean), noise * prior.precision, waves(family), noise)
        return cls(*(np.asarray(part, dtype) for part in parts), kinds=prior.kinds)

    def __call__(self, lam: Float[Array, "B d"]) -> tuple[Scalars, Array, Array]:
        """Return the cost, half of its negative gradient, and its curvature, each parameter's.

        The curvature of an angle's cost is that at the mode, the largest.
        """
        dim = lam.shape[1]
        mean, precision, wave = (
            jnp.reshape(part, (-1, dim)) for part in (self.mean, self.precision, self.wave)
        )
        log, angle = (
            np.array([kind == name for kind in self.kinds])[None] for name in ("log", "von-mises")
        )
        positive = jnp.where(log, jnp.maximum(lam, jnp.finfo(lam.dtype).tiny), 1)
        gap = jnp.where(log, jnp.log(positive / jnp.where(log, mean, 1)), lam - mean)
        turn = wave * gap
        square = jnp.where(angle, 2 * (1 - jnp.cos(turn)) / wave**2, gap**2)
        slope = jnp.where(angle, jnp.sin(turn) / wave, gap / positive)
        cost = (precision * square).sum(axis=1)
        return cost, -precision * slope, jnp.broadcast_to(precision / positive**2, lam.shape)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Terms:
    """The loss with its scale s, and the penalty on λ; each may be None.

    ``typical`` and ``spread`` are the cost of a typical image and the deviation from it, per pixel:
    while a pattern is learned, images that cost far more count less. With several patterns all
    arrays have a leading axis.
    """

    loss: AbstractLoss | None = None
    scale: Any = None
    penalty: Penalty | None = None
    typical: Any = None
    spread: Any = None

    def of(self, which: Any) -> Terms:
        """Those of one pattern, or of the pattern of each row."""
        return jax.tree.map(lambda part: part[which], self)

    def on(self, share: float) -> Terms:
        """The same on a share of the pixels: images tell so much less of λ, and so must a prior."""
        if self.penalty is None or share == 1:
            return self
        penalty = replace(self.penalty, precision=self.penalty.precision * share)
        return replace(self, penalty=penalty)

    def prior(self, family: AbstractTransformation) -> Prior | None:
        """The prior of a single pattern's penalty."""
        if self.penalty is None:
            return None
        names, noise = family.parameters.names, float(self.penalty.noise)
        mean, precision = (
            np.asarray(part, np.float64) for part in (self.penalty.mean, self.penalty.precision)
        )
        with np.errstate(divide="ignore"):
            std = np.sqrt(noise / precision)
        return Prior(names, self.penalty.kinds, tuple(mean.tolist()), tuple(std.tolist()), noise)

    @property
    def noise(self) -> float | None:
        """σ² of a single pattern's prior."""
        return None if self.penalty is None else float(self.penalty.noise)

    def at_scale(self, scale: Any, noise: Any) -> Terms:
        """The same at another scale of the loss and another σ², all images counting alike."""
        penalty = self.penalty
        if penalty is not None:
            dtype = np.asarray(penalty.noise).dtype
            factor = noise / max(float(penalty.noise), float(np.finfo(dtype).tiny))
            precision = np.asarray(penalty.precision * factor, dtype)
            penalty = replace(penalty, precision=precision, noise=np.asarray(noise, dtype))
        scale = None if self.scale is None else np.asarray(scale, np.asarray(self.scale).dtype)
        return Terms(self.loss, scale, penalty)

    @property
    def squared(self) -> Terms | None:
        """The same without a loss."""
        return None if self.penalty is None else Terms(penalty=self.penalty)

    def reweighted(self, residual: Batch, roots: Batch | None) -> tuple[Batch, Scalars]:
        """Square roots of the pixels' weights under the loss, and the cost of each image."""
        assert self.loss is not None
        scale = jnp.reshape(self.scale, (-1, 1))
        cost, weight = self.loss.pixels((residual / scale) ** 2)
        root = jnp.sqrt(weight)
        if roots is None:
            return root, (scale**2 * cost).sum(axis=1)
        return root * roots, (scale**2 * cost * roots**2).sum(axis=1)

    def with_penalty(self, model: Model, lam: Float[Array, "B d"]) -> Model:
        """Add the cost of λ to a model."""
        if self.penalty is None:
            return model
        cost, slope, curvature = self.penalty(lam)
        diagonal = curvature[:, :, None] * jnp.eye(lam.shape[1], dtype=lam.dtype)[None]
        return model._replace(
            cost=model.cost + cost,
            slope=model.slope + slope,
            metric=model.metric + diagonal,
            hessian=None if model.hessian is None else model.hessian + diagonal,
        )

    def of_images(self, costs: Scalars, counted: Any) -> tuple[Scalars, Scalars]:
        """Costs of whole images with ``counted`` pixels as they count, and their weights."""
        if self.loss is None or self.typical is None:
            return costs, jnp.ones_like(costs)
        typical, spread = self.typical * counted, self.spread * counted
        excess = jnp.maximum(costs - typical, 0) / spread
        value, weight = self.loss.images(excess)
        return jnp.where(costs > typical, typical + spread * value, costs), weight


def stacked(terms: Sequence[Terms | None]) -> Terms | None:
    """Put the terms of several patterns together, with a leading axis; all have the same parts."""
    first = terms[0]
    if first is None:
        return None
    return jax.tree.map(lambda *parts: np.stack(parts), *terms)
