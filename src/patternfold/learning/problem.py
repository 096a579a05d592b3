"""What is to be learned, from what, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from patternfold.learning.refit.correct import Data
from patternfold.learning.select.solvers import AbstractSolver
from patternfold.model import manifold
from patternfold.model.box import Box
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.grid import Grid
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation

AMPLE_PIXELS = 100_000
"""Pixels of all images together that tell some dozens of atoms well enough."""


@dataclass(frozen=True)
class Settings:
    """How PATS runs; the estimator `PATS` documents each of them."""

    n_atoms: int = 20
    tol: float = 0.0
    tangent_refinement: bool = True
    refit: str | None = "all"
    projection: str = "global"
    n_starts: int = 2
    n_exchanges: int = 2
    settle: bool = True
    stop_on_increase: bool = False
    seed: int = 0
    solver: str | AbstractSolver = "search"
    solver_options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Problem:
    """Images u_i with their weights, and the components of the model."""

    images: np.ndarray
    weights: np.ndarray
    grid: Grid
    transformation: AbstractTransformation
    mother: AbstractMother
    dictionary: AbstractDictionary

    @property
    def empty(self) -> Pattern:
        """p_0 = 0."""
        return Pattern((), None, self.mother, self.dictionary)

    @cached_property
    def data(self) -> Data:
        """All pixels, for the correction."""
        return self._at(np.arange(self.grid.n_pixels))

    @cached_property
    def ample_data(self) -> Data:
        """All pixels, or, where the images have more than enough of them together, a part."""
        return self.data if self.images.size <= AMPLE_PIXELS else self.sparse_data

    @cached_property
    def sparse_data(self) -> Data:
        """A part of the pixels, for quick corrections."""
        return self._at(self.sparse_pixels)

    @cached_property
    def sparse_pixels(self) -> np.ndarray:
        """Indices of every other row and column of images that are large enough."""
        stride = 2 if min(self.grid.shape) >= 24 else 1
        index = np.arange(self.grid.n_pixels).reshape(self.grid.shape)
        return index[stride // 2 :: stride, stride // 2 :: stride].ravel()

    def _at(self, some: np.ndarray) -> Data:
        dtype = self.images.dtype
        images = np.ascontiguousarray(self.images[:, some])
        x, y = self.grid.x[some].astype(dtype), self.grid.y[some].astype(dtype)
        return Data(images, self.weights, self.transformation, x, y)

    @cached_property
    def energy(self) -> float:
        """Σ w_i‖u_i‖², by which errors are divided for people."""
        squares = (self.images.astype(np.float64) ** 2).sum(axis=1)
        return float((self.weights * squares).sum())

    @property
    def atom_box(self) -> Box:
        """Γ, with widths that the pixels can show."""
        return self.dictionary.resolved(self.grid.pixel)

    def residuals(self, pattern: Pattern, lam: np.ndarray) -> np.ndarray:
        """v_i = u_i − U_λi(p)."""
        rendered = manifold.render(pattern, lam, self.transformation, self.grid, check=False)
        return self.images - rendered

    def squares(self, pattern: Pattern, lam: np.ndarray) -> np.ndarray:
        """‖u_i − U_λi(p)‖² for each image."""
        return (self.residuals(pattern, lam).astype(np.float64) ** 2).sum(axis=1)

    def error(self, pattern: Pattern, lam: np.ndarray) -> float:
        """E at the given λ_i."""
        return float((self.weights * self.squares(pattern, lam)).sum())
