"""How sure a pose is: the covariance of λ from the curvature and the noise at the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk, counted
from patternfold.learning.distance import Distance
from patternfold.learning.observations import Observations
from patternfold.learning.project.ends import FLAT
from patternfold.learning.project.locate import distance_to
from patternfold.learning.project.modes import noise_variance
from patternfold.learning.terms import Terms
from patternfold.model.box import Box
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled

Matrices = np.ndarray

TAKES_PART = 1e-3
"""Share of a direction along which nothing changes from which a parameter takes part in it."""

LEAST_BEND = 0.3
"""Least curvature along any direction, as a share of what is expected there, TᵀT: below it λ* is
near a saddle, and one step tells nothing."""


def covariances(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    lam: np.ndarray,
    told: np.ndarray,
    terms: Sequence[Terms | None] | None = None,
) -> np.ndarray:
    r"""Return the covariance of λ* of every image and pattern, shape (N, M, d, d).

    .. math:: \mathrm{cov} = σ^2 H^{-1} G H^{-1}, \quad σ^2 = \|w\|^2 / (n - d - l),

    with G = TᵀT, H = G − Σ w ∂²U_λ(p)/∂λ² (half of the Hessian), n pixels that count and l
    parameters of the image's light. A change ε of the image moves λ* by H⁻¹Tᵀε. NaN for a
    parameter on a bound, the others then given it; infinite variance for those that can change
    without changing the image, and all those of images that tell nothing (``told``). A prior is
    part of G and H; under a loss pixels count as it weighs them, and σ² is what it costs.
    """
    box, dtype = transformation.parameters, observations.dtype
    result = np.empty((*lam.shape, box.dim))
    for m, pattern in enumerate(patterns):
        extra = None if terms is None else terms[m]
        distance = distance_to(pattern.atoms(dtype), transformation, observations, extra)
        own = lam[:, m].astype(dtype)
        found = observations.map(partial(_curvature, distance=distance), own)
        square, metric, hessian, count = (np.asarray(part, np.float64) for part in found)
        variance = noise_variance(square, count, box.dim, observations.lighting)
        variance = np.where(told[:, m], variance, np.inf)
        result[:, m] = _covariance(box, lam[:, m], metric, hessian, variance)
    return result


@compiled
def _curvature(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> tuple[Array, ...]:
    """‖w‖², TᵀT, half of the Hessian, and the number of pixels that count."""
    square, _, metric, hessian, _ = distance.second_order(chunk.images, chunk.roots, lam)
    assert hessian is not None
    return square, metric, hessian, counted(chunk)


def _covariance(
    box: Box, lam: np.ndarray, metric: Matrices, hessian: Matrices, variance: np.ndarray
) -> Matrices:
    """Invert in units of the box, without parameters on bounds and directions that are flat."""
    eye, units = np.eye(box.dim), np.outer(box.width, box.width)
    sound = np.isfinite(metric).all(axis=(1, 2)) & np.isfinite(variance)
    held = box.at_bounds(lam) & sound[:, None]
    used = sound[:, None, None] & ((~held[:, :, None] & ~held[:, None, :]) | (eye > 0))
    metric, hessian = (np.where(used, part * units, 0) for part in (metric, hessian))
    sizes, axes = np.linalg.eigh(metric)
    flat = sizes <= FLAT * np.linalg.norm(metric, axis=(1, 2))[:, None]
    root = np.where(flat, 0, 1 / np.sqrt(np.where(flat, 1, sizes)))
    inverse_root = np.einsum("nik,nk,njk->nij", axes, root, axes)
    # In these coordinates G is the identity, and H as large as noise bends it.
    bends, along = np.linalg.eigh(inverse_root @ hessian @ inverse_root)
    spread = inverse_root @ along / np.maximum(bends, LEAST_BEND)[:, None, :]
    covariance = spread @ np.swapaxes(spread, 1, 2) * units
    covariance *= np.where(sound, variance, 0)[:, None, None]
    unknown = ~sound[:, None] | (np.einsum("nik,nk->ni", axes**2, flat) > TAKES_PART)
    return _with_unknown(covariance, unknown, held)


def _with_unknown(covariance: Matrices, unknown: np.ndarray, held: np.ndarray) -> Matrices:
    """Mark parameters that the image leaves open as infinite, those on bounds as no number."""
    missing, diagonal = unknown | held, np.eye(unknown.shape[1], dtype=bool)
    covariance[missing[:, :, None] | missing[:, None, :]] = np.nan
    covariance[(unknown & ~held)[:, :, None] & diagonal] = np.inf
    return covariance
