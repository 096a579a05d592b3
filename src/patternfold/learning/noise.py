"""How large ordinary residuals are: the scale of a loss, and the unit of a prior.

The scale s of a pattern is that of its residuals by the median of their sizes (MAD), which a
minority of outlying pixels or strangers among the images hardly moves. Pixels count as the pattern
is bright there: where it shows nothing, residuals tell nothing of how well it fits, and images with
a wide black border would seem to have no noise at all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.learning.chunk import Chunk
from patternfold.learning.distance import Distance
from patternfold.learning.observations import Observations
from patternfold.learning.terms import Terms
from patternfold.model.losses import AbstractLoss
from patternfold.numerics.compilation import compiled

FLOOR = 0.02
"""Least scale, as a share of the images' brightness where the pattern shows: a pattern that fits
better has no outliers to be told from the rest."""

BINS, PER_OCTAVE, LOWEST = 256, 8, -24
"""Of the histogram of log₂|r|: how many, how many for a factor of 2, and where it begins."""

MOST_ROUNDS, SETTLED = 8, 0.02
"""Most estimates of the scale at the same residuals, and the change at which they end."""

NORMAL = np.linspace(0, 8, 4001)
"""Sizes of a standard normal variable, where its density is looked at."""


class Noise(NamedTuple):
    """The scale s of the residuals, and their mean square σ²; of a typical pixel of the pattern."""

    scale: float
    variance: float


def measured_noise(observations: Observations, lam: np.ndarray, distance: Distance) -> Noise | None:
    """Estimate the noise at λ; None where the pattern shows nothing.

    With a loss in the distance residuals count as it weighs them at its last scale, so that
    outliers do not raise the next one either; the median is divided by what it is for normal noise.
    """
    stage = partial(_residual_sums, distance=distance)
    counts, mass, square, signal = observations.total(stage, lam.astype(observations.dtype))
    if not mass > 0:
        return None
    reached = np.cumsum(counts)
    middle = float(np.interp(reached[-1] / 2, np.append(0, reached), np.arange(BINS + 1)))
    median = 2.0 ** (LOWEST + middle / PER_OCTAVE)
    floor = FLOOR * np.sqrt(signal / mass)
    loss = None if distance.terms is None else distance.terms.loss
    scale = max(
        median / normal_median(loss), float(floor), np.finfo(observations.dtype).tiny ** 0.25
    )
    return Noise(float(scale), max(float(square / mass), float(floor) ** 2))


def settled_noise(
    observations: Observations, lam: np.ndarray, distance: Distance, loss: AbstractLoss | None
) -> Noise | None:
    """Estimate the noise again and again as a loss weighs residuals at it, until it stays."""
    noise = measured_noise(observations, lam, distance)
    if noise is None or loss is None:
        return noise
    for _ in range(MOST_ROUNDS):
        scale = np.asarray(noise.scale, observations.dtype)
        terms = Terms(loss.with_scale(None), scale)
        last, noise = noise, measured_noise(observations, lam, replace(distance, terms=terms))
        if noise is None or abs(noise.scale - last.scale) <= SETTLED * last.scale:
            return noise or last
    return noise


@lru_cache(maxsize=16)
def normal_median(loss: AbstractLoss | None) -> float:
    """Median of the size of a standard normal variable, weighed as a loss at scale 1 does."""
    density = np.exp(-(NORMAL**2) / 2)
    if loss is not None:
        density = density * np.asarray(loss.pixels(jnp.asarray(NORMAL**2))[1])
    reached = np.cumsum(density)
    return float(np.interp(reached[-1] / 2, reached, NORMAL))


@compiled
def _residual_sums(
    chunk: Chunk, lam: Float[Array, "B d"], distance: Distance
) -> tuple[Array, Array, Array, Array]:
    """Histogram of log₂|r|, and Σ 1, Σ r² and Σ u², all by the pattern's brightness."""
    values = distance.values(lam)
    fit = distance.fit(chunk.images, chunk.roots, values)
    seen, _ = distance.lighting.less_mean(values, None)
    share = jnp.maximum(chunk.weights, 0)[:, None] * jnp.abs(fit.gain[:, None] * seen)
    share = share if chunk.roots is None else share * chunk.roots**2
    residual = jnp.abs(fit.raw(chunk.images, values))
    shown = distance.lighting.less_mean(chunk.images, None)[0]
    log = jnp.log2(jnp.maximum(residual, 2.0 ** (LOWEST - 1)))
    index = jnp.clip((log - LOWEST) * PER_OCTAVE, 0, BINS - 1).astype(jnp.int32)
    share = share if fit.roots is None else share * _relative(fit.roots, chunk.roots)
    counts = _histogram(index.reshape(-1), share.reshape(-1))
    return counts, share.sum(), (share * residual**2).sum(), (share * shown**2).sum()


def _histogram(index: Int[Array, " k"], share: Float[Array, " k"]) -> Array:
    """Sums of the shares by their bins."""
    if jax.default_backend() == "cpu":
        return jnp.zeros(BINS, share.dtype).at[index].add(share)
    # An accelerator that adds to places told by others in a fixed order does so one by one. All
    # bins look at all shares instead.
    index, share = jax.lax.optimization_barrier((index, share))
    own = index[None] == jnp.arange(BINS, dtype=index.dtype)[:, None]
    return jnp.where(own, share[None], 0).sum(axis=1)


def _relative(roots: Array, before: Array | None) -> Array:
    """Weights that a loss gives to pixels, beside those that they had."""
    return roots**2 if before is None else (roots / jnp.where(before > 0, before, 1)) ** 2
