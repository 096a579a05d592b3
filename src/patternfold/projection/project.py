"""Projection of images on pattern transformation manifolds: λ* = argmin ‖u − U_λ(p)‖ over Λ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold._validation import as_images, as_parameters, unknown_name
from patternfold.atoms import Atoms
from patternfold.box import Box
from patternfold.grid import Grid
from patternfold.pattern import Pattern
from patternfold.precision import precision, working_dtype
from patternfold.projection.coarse import (
    FINE_SPACING,
    SPACING,
    coarse_candidates,
    make_coarse_grid,
)
from patternfold.projection.line_search import line_search
from patternfold.projection.refine import Refined, refine
from patternfold.transformations import AbstractTransformation, as_transformation

METHODS = ("levenberg-marquardt", "line-search")

STATUS = {
    "converged": "The search ended at a minimum inside the box.",
    "bound": "The search ended with some parameter on a bound of the box.",
    "degenerate": "Some change of the parameters leaves the image as it is (a symmetric pattern, "
    "or one outside the window): the pose is not unique.",
    "blank": "The image is blank, so that its pose says nothing.",
    "empty": "The pattern has no atoms, so that every pose is as good; the identity is given.",
    "max-iter": "The search stopped at max_iter steps; the distance may still shrink.",
}
"""What each status of a projection means."""


@dataclass(frozen=True)
class Projection:
    """Where images lie on a manifold.

    Attributes
    ----------
    parameters : array of shape (N, d), or (N, M, d) for a list of M patterns
        λ*, in the order of ``names``.
    distances : array of shape (N,) or (N, M)
        ‖u − U_λ*(p)‖.
    status : array of str of shape (N,) or (N, M)
        How each search ended; `STATUS` explains the words.
    names : tuple of str
        Parameter names.
    """

    parameters: np.ndarray
    distances: np.ndarray
    status: np.ndarray
    names: tuple[str, ...]

    def __repr__(self) -> str:
        """Summarise the outcome."""
        words, counts = np.unique(self.status, return_counts=True)
        ends = ", ".join(f"{n} {word}" for word, n in zip(words, counts, strict=True))
        return f"Projection of {len(self.parameters)} images on {self.names}: {ends}"


def project(
    pattern: Pattern | Sequence[Pattern],
    images: Any,
    transformation: str | AbstractTransformation = "rotation-translation-scaling",
    *,
    image_shape: tuple[int, int] | None = None,
    start: Any = None,
    method: str = "levenberg-marquardt",
    n_candidates: int | None = None,
    max_iter: int = 30,
) -> Projection:
    """Find the point of the manifold M(p) that is nearest to each image.

    The search is global: a grid over Λ gives several candidates per image, each is improved,
    and the best end point is kept. From known λ (``start``) it is local.

    Parameters
    ----------
    pattern : Pattern or list of Pattern
        p. With a list, every image is projected on every manifold.
    images : array of shape (N, H, W) or (N, H·W)
        u_i.
    transformation : str or transformation
        The family a(λ, x, y) with its box Λ.
    image_shape : (H, W), optional
        Shape of flattened images.
    start : array of shape (N, d) or (N, M, d), optional
        Known λ, to be improved in their neighbourhood.
    method : {"levenberg-marquardt", "line-search"}
        How candidates are improved; "line-search" is the paper's: from the best point of the
        grid along each dimension in turn.
    n_candidates : int, optional
        Candidates per image from the grid, besides ``start``; by default 6 without ``start``
        and 0 with it. That is enough for images of the pattern, noisy or not. Images of something
        similar have many local optima of nearly the same distance; with 300 candidates the best
        of them is hardly ever missed, at about thirty times the cost.
    max_iter : int, default=30
        Most steps of the local search.

    Returns
    -------
    Projection
        With ``parameters``, ``distances`` and ``status``.

    Examples
    --------
    >>> from patternfold import manifold
    >>> p = Pattern([1.0, -1.0], [[0.0, 0.2, 0.0, 0.3, 0.1], [0.5, -0.2, 0.1, 0.1, 0.2]])
    >>> image = manifold.render(p, [[2.0, 0.1, -0.2]], "rotation-translation", (24, 24))
    >>> found = project(p, image, "rotation-translation")
    >>> found.parameters.round(4).tolist()
    [[2.0, 0.1, -0.2]]
    """
    family = as_transformation(transformation)
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if n_candidates is None:
        n_candidates = 6 if start is None else 0
    for name, value, least in (
        ("n_candidates", n_candidates, int(start is None)),
        ("max_iter", max_iter, 1),
    ):
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
    patterns = [pattern] if isinstance(pattern, Pattern) else list(pattern)
    if not patterns or not all(isinstance(p, Pattern) for p in patterns):
        raise TypeError(f"pattern must be a Pattern or a list of them; got {pattern!r}.")
    rows, shape = as_images(images, image_shape)
    rows = rows.astype(working_dtype(rows), copy=False)
    starts = _starts(start, len(rows), len(patterns), family.parameters, rows.dtype)
    search = _Search(family, Grid(*shape), method, n_candidates, max_iter)
    with precision(rows.dtype):
        found = [search(p, rows, s) for p, s in zip(patterns, starts, strict=True)]
    parameters = np.stack([f[0] for f in found], axis=1)
    distances = np.stack([f[1] for f in found], axis=1)
    status = np.stack([f[2] for f in found], axis=1)
    if isinstance(pattern, Pattern):
        parameters, distances, status = parameters[:, 0], distances[:, 0], status[:, 0]
    return Projection(parameters, distances, status, family.parameters.names)


def _starts(
    start: Any, n_images: int, n_patterns: int, box: Box, dtype: np.dtype
) -> list[np.ndarray | None]:
    """Check ``start`` and split it by pattern."""
    if start is None:
        return [None] * n_patterns
    flat = as_parameters("start", np.reshape(start, (-1, np.shape(start)[-1])), box.names)
    if len(flat) != n_images * n_patterns:
        raise ValueError(
            f"start has shape {np.shape(start)}; expected one row of {box.dim} parameters for "
            f"each of {n_images} images"
            + (f" and {n_patterns} patterns." * (n_patterns > 1) or ".")
        )
    flat = box.put_inside(flat).astype(dtype).reshape(n_images, n_patterns, box.dim)
    return [flat[:, m] for m in range(n_patterns)]


class _Search:
    """The settings of a projection, applied to one pattern at a time."""

    def __init__(
        self,
        transformation: AbstractTransformation,
        grid: Grid,
        method: str,
        n_candidates: int,
        max_iter: int,
    ):
        self.transformation = transformation
        self.grid = grid
        self.method = method
        self.n_candidates = min(n_candidates, 1) if method == "line-search" else n_candidates
        self.max_iter = max_iter
        spacing = SPACING if n_candidates <= _MANY else FINE_SPACING
        self.coarse = make_coarse_grid(transformation, grid, spacing)

    def __call__(
        self, pattern: Pattern, images: np.ndarray, start: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return λ*, the distances and the status of each image."""
        box = self.transformation.parameters
        if not pattern.n_atoms or not len(images):
            lam = np.tile(box.put_inside(self.transformation.identity), (len(images), 1))
            distances = np.linalg.norm(images, axis=1)
            return lam.astype(images.dtype), distances, np.full(len(images), "empty", "<U10")
        x, y = (c.astype(images.dtype) for c in (self.grid.x, self.grid.y))
        atoms = pattern.atoms(images.dtype)
        candidates = np.empty((len(images), 0, box.dim), images.dtype)
        if self.n_candidates:
            candidates = coarse_candidates(
                atoms, self.transformation, images, self.grid, self.coarse, self.n_candidates
            ).astype(images.dtype)
        if self.method == "line-search":
            first = candidates[:, 0] if start is None else start
            best = line_search(atoms, self.transformation, images, first, x, y, self.max_iter)
        else:
            best = self._descend(atoms, images, candidates, start, x, y)
        lam = box.put_inside(best.lam)
        return lam, np.sqrt(np.maximum(best.cost, 0)), self._status(images, best)

    def _descend(
        self,
        atoms: Atoms,
        images: np.ndarray,
        candidates: np.ndarray,
        start: np.ndarray | None,
        x: np.ndarray,
        y: np.ndarray,
    ) -> Refined:
        """Improve all candidates on part of the pixels, then the best of them on all."""
        n, c, d = candidates.shape
        index, starts = np.repeat(np.arange(n), c), candidates.reshape(-1, d)
        if c > 1:
            some = self._sparse_pixels()
            sparse = np.ascontiguousarray(images[:, some])
            steps = _PRUNE_ITER if c <= _MANY else _THOROUGH_PRUNE_ITER
            ends = refine(
                atoms, self.transformation, sparse, index, starts, x[some], y[some], steps
            )
            index, starts = _prune(
                self.transformation.parameters,
                ends.lam.reshape(n, c, d),
                ends.cost.reshape(n, c),
                (sparse**2).sum(axis=1),
            )
        if start is not None:
            index, starts = np.append(index, np.arange(n)), np.concatenate([starts, start])
        ends = refine(atoms, self.transformation, images, index, starts, x, y, self.max_iter)
        order = np.lexsort((ends.cost, index))
        best = order[np.unique(index[order], return_index=True)[1]]
        return Refined(*(part[best] for part in ends))

    def _sparse_pixels(self) -> np.ndarray:
        """Indices of a regular subset of the pixels, enough to tell good candidates from bad."""
        fy, fx = self.coarse.factors
        index = np.arange(self.grid.n_pixels).reshape(self.grid.shape)
        return index[fy // 2 :: fy, fx // 2 :: fx].ravel()

    def _status(self, images: np.ndarray, best: Refined) -> np.ndarray:
        """Describe how each search ended; the first word that applies is taken."""
        box = self.transformation.parameters
        edge = 1e-5 * box.width
        on_bound = ((best.lam <= box.lower + edge) | (best.lam >= box.upper - edge)) & ~np.array(
            box.periodic
        )
        conditions = [
            ~images.any(axis=1),
            best.degenerate,
            ~best.converged,
            on_bound.any(axis=1),
        ]
        words = ["blank", "degenerate", "max-iter", "bound"]
        return np.select(conditions, words, default="converged").astype("<U10")


_MANY = 24
"""With more candidates than this, the grid that they come from is finer and they go farther."""

_PRUNE_ITER, _THOROUGH_PRUNE_ITER = 6, 8
"""Most steps on part of the pixels, before the better candidates are told from the others."""


def _prune(
    box: Box, lam: np.ndarray, cost: np.ndarray, energy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Keep each image's best end point, and others elsewhere that are nearly as good."""
    rows, open_cost = np.arange(len(lam)), cost.copy()
    # Unfinished searches on part of the pixels rank their ends only roughly.
    limit = 1.5 * cost.min(axis=1) + 0.02 * energy
    index, starts = [], []
    for _ in range(max(2, lam.shape[1] // 3)):
        best = open_cost.argmin(axis=1)
        rival = open_cost[rows, best] <= limit
        index.append(rows[rival])
        starts.append(lam[rows, best][rival])
        gap = np.abs(lam - lam[rows, best][:, None]) / box.width
        gap = np.where(box.periodic, np.minimum(gap, 1 - gap), gap).max(axis=2)
        open_cost[gap <= 0.02] = np.inf
    return np.concatenate(index), np.concatenate(starts)
