"""The search of one projection: candidates from a grid, improved, pruned and improved again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from patternfold.learning.project.bank import (
    FINE_SPACING,
    SPACING,
    CoarseGrid,
    coarse_candidates,
    make_coarse_grid,
)
from patternfold.learning.project.line_search import line_search
from patternfold.learning.project.refine import Refined, refine
from patternfold.model.atoms import Atoms
from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation

MANY = 24
"""With more candidates than this the grid that they come from is finer, and most are dropped
after their first step."""

FIRST_SHARE = 0.7
"""Share of many candidates that goes on after the first step."""

PRUNE_STEPS = 4
"""Most steps on part of the pixels, before the better candidates are told from the others. More
would take second derivatives, too."""

RIVAL, MANY_RIVAL = 1.5, 1.8
"""Candidates go on that then cost at most so many times the best, of few or of many; unfinished
searches on part of the pixels rank their ends only roughly."""


class Found(NamedTuple):
    """λ*, the distance and the status of each image."""

    lam: np.ndarray
    distance: np.ndarray
    status: np.ndarray


@dataclass(frozen=True)
class Search:
    """The settings of a projection, applied to one pattern at a time."""

    transformation: AbstractTransformation
    grid: Grid
    method: str
    n_candidates: int
    max_iter: int

    @property
    def coarse(self) -> CoarseGrid:
        """The grid over Λ."""
        spacing = SPACING if self.n_candidates <= MANY else FINE_SPACING
        return make_coarse_grid(self.transformation, self.grid, spacing)

    def __call__(self, pattern: Pattern, images: np.ndarray, start: np.ndarray | None) -> Found:
        """Project all images."""
        box, dtype = self.transformation.parameters, images.dtype
        if not pattern.n_atoms or not len(images):
            lam = np.tile(box.put_inside(self.transformation.identity), (len(images), 1))
            distances = np.linalg.norm(images, axis=1)
            return Found(lam.astype(dtype), distances, np.full(len(images), "empty", "<U10"))
        x, y = (c.astype(dtype) for c in (self.grid.x, self.grid.y))
        atoms = pattern.atoms(dtype)
        candidates = np.empty((len(images), 0, box.dim), dtype)
        if self.n_candidates:
            count = 1 if self.method == "line-search" else self.n_candidates
            candidates = coarse_candidates(
                atoms, self.transformation, images, self.grid, self.coarse, count
            ).astype(dtype)
        if self.method == "line-search":
            first = candidates[:, 0] if start is None else start
            best = line_search(atoms, self.transformation, images, first, x, y, self.max_iter)
        else:
            best = self._descend(atoms, images, candidates, start, x, y)
        lam = box.put_inside(best.lam)
        return Found(lam, np.sqrt(np.maximum(best.cost, 0)), self._status(images, best))

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
            index, starts = self._prune(atoms, images, candidates, x, y)
        if start is not None:
            index, starts = np.append(index, np.arange(n)), np.concatenate([starts, start])
        ends = refine(atoms, self.transformation, images, index, starts, x, y, self.max_iter)
        order = np.lexsort((ends.cost, index))
        best = order[np.unique(index[order], return_index=True)[1]]
        return Refined(*(part[best] for part in ends))

    def _prune(
        self,
        atoms: Atoms,
        images: np.ndarray,
        candidates: np.ndarray,
        x: np.ndarray,
        y: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Indices of images and points to go on from: the better ends of short searches."""
        some = self._sparse_pixels()
        sparse, pixels = np.ascontiguousarray(images[:, some]), (x[some], y[some])

        def improve(lam: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
            n, c, d = lam.shape
            index = np.repeat(np.arange(n), c)
            starts = lam.reshape(-1, d)
            ends = refine(atoms, self.transformation, sparse, index, starts, *pixels, steps)
            return ends.lam.reshape(n, c, d), ends.cost.reshape(n, c)

        many = candidates.shape[1] > MANY
        if many:
            candidates, cost = improve(candidates, 1)
            count = int(FIRST_SHARE * candidates.shape[1])
            best = np.sort(np.argpartition(cost, count, axis=1)[:, :count], axis=1)
            candidates = np.take_along_axis(candidates, best[..., None], axis=1)
        lam, cost = improve(candidates, PRUNE_STEPS)
        energy = (sparse**2).sum(axis=1)
        limit = (MANY_RIVAL if many else RIVAL) * cost.min(axis=1) + 0.02 * energy
        count = max(2, lam.shape[1] // 3)
        return _best_apart(self.transformation.parameters, lam, cost, limit, count)

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


def _best_apart(
    box: Box, lam: np.ndarray, cost: np.ndarray, limit: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keep each image's best end point, and others elsewhere that cost at most ``limit``."""
    rows, open_cost = np.arange(len(lam)), cost.copy()
    index, starts = [], []
    for _ in range(count):
        best = open_cost.argmin(axis=1)
        rival = open_cost[rows, best] <= limit
        index.append(rows[rival])
        starts.append(lam[rows, best][rival])
        gap = np.abs(lam - lam[rows, best][:, None]) / box.width
        gap = np.where(box.periodic, np.minimum(gap, 1 - gap), gap).max(axis=2)
        open_cost[gap <= 0.02] = np.inf
    return np.concatenate(index), np.concatenate(starts)
