"""E and its normal equations at a pattern and λ, over the chunks of all images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from patternfold.learning.distance import Distance
from patternfold.learning.observations import Observations
from patternfold.learning.refit.arrow import Assembled, added, assemble, cost_of, without_tangents
from patternfold.learning.refit.eliminate import (
    Eliminated,
    Reduced,
    eliminate,
    held_parameters,
    moved,
    solve_damped,
)
from patternfold.learning.terms import Terms
from patternfold.model.atoms import Atoms, pad_atoms
from patternfold.model.box import Box
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation

MANY_IMAGES = 100
"""So many images take longer to compute than another number of atoms takes to compile."""


class Normal(NamedTuple):
    """E and its normal equations in the m = K·(s+1) parameters of the atoms."""

    cost: np.ndarray
    atoms: np.ndarray
    slope: np.ndarray


@dataclass(frozen=True)
class Sampling:
    """The images at some pixels, in parts that have equally many of them.

    Sums over the parts are sums over all these pixels, by the same compiled code for few and many.
    """

    parts: tuple[Observations, ...]
    pixels: tuple[np.ndarray, ...]

    @cached_property
    def coordinates(self) -> list[tuple[Array, Array]]:
        """The x and y of each part's pixels, on the device."""
        grid, dtype = self.parts[0].grid, self.parts[0].dtype
        # Put there as they are: `jnp.asarray` would compile something for it.
        return jax.device_put(
            [(grid.x[some].astype(dtype), grid.y[some].astype(dtype)) for some in self.pixels]
        )


@dataclass(frozen=True)
class Equations:
    """E with its normal equations at a pattern and λ, as a point of `descend`.

    λ of the image ``anchor`` is held: the pattern's frame is its own.
    """

    sampling: Sampling
    transformation: AbstractTransformation
    box: Box
    pattern: Pattern
    lam: np.ndarray
    move_lam: bool = True
    known_cost: float | None = None
    promised: float = np.inf
    terms: Terms | None = None
    anchor: int | None = None

    @cached_property
    def cost(self) -> float:
        """Σ_i |w_i| ‖u_i − U_λi(p)‖²."""
        return float(self.normal.cost) if self.known_cost is None else self.known_cost

    @cached_property
    def normal(self) -> Normal:
        """The normal equations in the atoms' parameters, one block per atom."""
        order = self._order
        parts = jax.device_get([(n.cost, n.atoms, n.slope) for n in self._assembled])
        cost, matrix, slope = (_float_sum(part) for part in zip(*parts, strict=True))
        return Normal(cost, matrix[np.ix_(order, order)], slope[order])

    def step(self, damping: float) -> Equations:
        """Solve the damped arrow system and move the atoms, and λ as far as it may."""
        eliminated = self._eliminate(damping) if self.move_lam else []
        delta, promised = self._solve(damping, eliminated)
        by_atom = delta.reshape(self.pattern.n_atoms, -1)
        gamma = self.box.put_inside(self.pattern.gamma + by_atom[:, :-1])
        pattern = self.pattern.replace(self.pattern.coef + by_atom[:, -1], gamma)
        lam, cost = self._tried(pattern, delta, [e.inverse for e in eliminated])
        return replace(self, pattern=pattern, lam=lam, known_cost=cost, promised=promised)

    @property
    def _images(self) -> Observations:
        return self.sampling.parts[0]

    @cached_property
    def _rows(self) -> list[Array]:
        """λ of each chunk, on its device."""
        return self._images.on_devices(self.lam)

    @property
    def _dtype(self) -> np.dtype:
        return self._images.dtype

    @cached_property
    def _assembled(self) -> list[Assembled]:
        n_padded = padded_atoms(self.pattern.n_atoms, len(self.lam))
        coef, gamma = pad_atoms(self.pattern.coef, self.pattern.gamma, n_padded)
        count = np.asarray(self.pattern.n_atoms, np.int32)
        atoms = Atoms(
            coef.astype(self._dtype), gamma.astype(self._dtype), count, self.pattern.family
        )
        parts = [
            [
                assemble(chunk, lam, distance)
                for chunk, lam in zip(part.chunks, self._rows, strict=True)
            ]
            for part, distance in zip(self.sampling.parts, self._distances(atoms), strict=True)
        ]
        return self._held([reduce(added, same) for same in zip(*parts, strict=True)])

    def _held(self, assembled: list[Assembled]) -> list[Assembled]:
        """The equations with the anchor's λ as it is."""
        if self.anchor is None:
            return assembled
        free = (np.arange(len(self.lam)) != self.anchor).astype(self._dtype)
        rows = self._images.on_devices(free)
        return [without_tangents(a, part) for a, part in zip(assembled, rows, strict=True)]

    def _distances(self, atoms: Atoms) -> list[Distance]:
        """The distance on the pixels of each part."""
        lighting, places = self._images.lighting, self.sampling.coordinates
        n_pixels = self._images.grid.n_pixels
        return [
            Distance(
                atoms,
                self.transformation,
                x,
                y,
                lighting,
                terms=self.terms and self.terms.on(len(x) / n_pixels),
            )
            for x, y in places
        ]

    @property
    def _order(self) -> np.ndarray:
        """From one block per parameter, padding included, to one block per atom."""
        size = self.pattern.gamma.shape[1] + 1
        n_padded = padded_atoms(self.pattern.n_atoms, len(self.lam))
        index = np.arange(n_padded * size).reshape(size, n_padded)
        return index.T[: self.pattern.n_atoms].ravel()

    def _eliminate(self, damping: float) -> list[Eliminated]:
        """Eliminate the λ_i inside each chunk."""
        box, scalar = self.transformation.parameters, np.asarray(damping, self._dtype)
        pairs = zip(self._assembled, self._rows, strict=True)
        return [eliminate(assembled, lam, scalar, box) for assembled, lam in pairs]

    def _solve(self, damping: float, eliminated: list[Eliminated]) -> tuple[np.ndarray, float]:
        """Step of the atoms, and the decrease of E that it promises together with that of λ."""
        held = held_parameters(self.box, self.pattern.gamma, self.normal.slope)
        return solve_damped(self._reduced(eliminated), held, damping)

    def reduced(self, damping: float) -> Reduced:
        """The equations with the λ_i eliminated, these damped by so much."""
        return self._reduced(self._eliminate(damping))

    def _reduced(self, eliminated: list[Eliminated]) -> Reduced:
        cost, matrix, slope = self.normal
        diagonal, matrix, slope = np.diag(matrix).copy(), matrix.copy(), slope.copy()
        alone = np.zeros(())
        if eliminated:
            taken = jax.device_get([e[:3] for e in eliminated])
            less_matrix, less_slope, alone = (_float_sum(p) for p in zip(*taken, strict=True))
            matrix -= less_matrix[np.ix_(self._order, self._order)]
            slope -= less_slope[self._order]
        return Reduced(cost, diagonal, matrix, slope, alone)

    def _tried(
        self, pattern: Pattern, delta: np.ndarray, inverses: list[Array]
    ) -> tuple[np.ndarray, float]:
        """λ after the step, and the cost there."""
        padded = np.zeros(self._assembled[0].slope.shape[0], self._dtype)
        padded[self._order] = delta
        atoms = pattern.atoms(self._dtype)
        lam, total = self._rows, 0.0
        if self.move_lam:
            pairs = zip(self._assembled, lam, inverses, strict=True)
            box = self.transformation.parameters
            lam = [moved(a, rows, inverse, padded, box) for a, rows, inverse in pairs]
        costs = [
            cost_of(chunk, rows, distance)
            for part, distance in zip(self.sampling.parts, self._distances(atoms), strict=True)
            for chunk, rows in zip(part.chunks, lam, strict=True)
        ]
        costs, lam = jax.device_get((costs, lam if self.move_lam else []))
        total = float(np.sum(costs, dtype=np.float64))
        if not self.move_lam:
            return self.lam, total
        counts = self._images.counts
        return np.concatenate([part[:k] for part, k in zip(lam, counts, strict=True)]), total


def _float_sum(parts: Any) -> Any:
    """Sum over chunks, in their order, in float64."""
    return np.sum(np.asarray(parts, np.float64), axis=0)


def padded_atoms(n_atoms: int, n_images: int) -> int:
    """Number of atoms with padding: fine steps where computing outweighs compiling."""
    slow = n_images >= MANY_IMAGES and jax.default_backend() == "cpu"
    step = 8 if n_atoms <= 8 or slow else 24
    return -(-n_atoms // step) * step
