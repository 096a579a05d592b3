"""Local stage of the projection: batched Levenberg-Marquardt on the analytic tangents.

Minimises ‖u − U_λ(p)‖² over the box Λ for many (image, start) pairs at once. A step costs one
pass over the atoms: the derivatives at the trial point serve both to judge it and to go on from it.
Images near the manifold take about four steps; what is not done then has a large residual, and
goes on with the full Hessian.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternfold.learning.project.curvature import newton_equations, normal_equations
from patternfold.model.atoms import Atoms
from patternfold.model.box import Box
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.chunks import padded_rows
from patternfold.numerics.least_squares import Model, descend

FIRST_ORDER = 5
"""Evaluations before second derivatives of the pattern are taken, which cost twice as much."""

BLOCK_BYTES = 2**20
"""Size of one array of a batch: the dozen that a pass over the atoms works on stay in the cache."""


class Refined(NamedTuple):
    """End points of the local stage, one row per (image, start) pair."""

    lam: np.ndarray
    cost: np.ndarray
    converged: np.ndarray
    degenerate: np.ndarray


def refine(
    atoms: Atoms,
    transformation: AbstractTransformation,
    images: np.ndarray,
    index: np.ndarray,
    starts: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    max_iter: int,
) -> Refined:
    """Refine ``starts[r]`` for image ``images[index[r]]``, for every pair r."""
    box, dtype = transformation.parameters, starts.dtype
    model_at = _ModelAt(atoms, transformation, images, index, x, y)
    energy = (images.astype(np.float64) ** 2).sum(axis=1)[index]
    # Rounding of the cost itself is no progress to wait for.
    rounding = 10 * np.finfo(dtype).eps ** 1.5 * energy
    end = descend(model_at, starts, box, max_iter, rounding)
    degenerate = _is_degenerate(box, end.metric)
    return Refined(end.point.astype(dtype), end.cost.astype(dtype), end.converged, degenerate)


class _ModelAt:
    """Cost and derivatives of pairs at given λ, in batches of one fixed size."""

    def __init__(
        self,
        atoms: Atoms,
        transformation: AbstractTransformation,
        images: np.ndarray,
        index: np.ndarray,
        x: np.ndarray,
        y: np.ndarray,
    ):
        self.model = (atoms, transformation)
        self.images, self.index, self.pixels = images, index, (x, y)
        fitting = max(1, BLOCK_BYTES // (len(x) * images.dtype.itemsize))
        # The size goes by the number of images, so that a few pairs more or less reuse compiled
        # code.
        self.size = min(2 ** (fitting.bit_length() - 1), 3 * padded_rows(max(1, len(images))))

    def __call__(self, lam: np.ndarray, rows: np.ndarray, count: int) -> Model:
        """Return the cost, Tᵀw, TᵀT and maybe half of the Hessian of the pairs ``rows``."""
        equations = normal_equations if count < FIRST_ORDER else newton_equations
        parts = []
        for begin in range(0, len(rows), self.size):
            batch = np.resize(rows[begin : begin + self.size], self.size)
            images = self.images[self.index[batch]]
            lam_here = lam[batch].astype(images.dtype)
            # Nothing is waited for until all batches are under way.
            parts.append(equations(*self.model, images, lam_here, *self.pixels))
        whole = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Model(*(part[: len(rows)].astype(np.float64) for part in whole))


def _is_degenerate(box: Box, gram: np.ndarray) -> np.ndarray:
    """Tell whether some direction in Λ leaves the rendered pattern as it is."""
    values = np.linalg.eigvalsh(gram * box.width[:, None] * box.width)
    return values[:, 0] <= 1e-5 * values[:, -1]
