"""Which part an image is nearest to: all images against all parts, in one matrix product a chunk.

A bank of several parts scores every image; each image's best few parts are then improved in λ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from patternfold.learning.chunk import Chunk
from patternfold.learning.effort import Effort
from patternfold.learning.lighting import Lighting
from patternfold.learning.mixture.prototypes import PrototypeDistance, make_prototypes
from patternfold.learning.observations import Observations
from patternfold.learning.project.bank import (
    Bank,
    as_arrays,
    bank_of,
    pool,
    template_costs,
)
from patternfold.learning.project.lattice import coarse_pixels, make_lattice
from patternfold.learning.project.refine import Pixels, Rows, refine
from patternfold.learning.project.search import LARGE_SIDE, SCORED
from patternfold.model.grid import Grid
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.chunks import padded_rows
from patternfold.numerics.compilation import compiled
from patternfold.numerics.interrupts import check_interrupts

ASSIGNING = Effort(spacing=0.1)
"""The bank only has to tell which parts are near: the few that are get better λ."""

STEPS = 4
"""Steps that improve λ of an image's best parts: prototypes move on, and λ with them."""


class Scores(NamedTuple):
    """What the bank leaves of each image's energy with every part, and the best few parts' λ."""

    square: Float[Any, "N P"]
    part: Int[Any, "N r"]
    lam: Float[Any, "N r d"]


class Nearest(NamedTuple):
    """The best few parts of each image, best first: which, λ, and what is left of ‖u‖² there.

    ``gain`` and ``offset`` are those of the image at λ.
    """

    part: Int[Any, "N r"]
    lam: Float[Any, "N r d"]
    square: Float[Any, "N r"]
    gain: Float[Any, "N r"]
    offset: Float[Any, "N r"]


@dataclass(frozen=True)
class Assigner:
    """Compares images with parts, all of which are pictures on the images' grid."""

    observations: Observations
    transformation: AbstractTransformation
    effort: Effort = ASSIGNING

    @cached_property
    def _where(self) -> tuple[Any, ...]:
        """Coarse pixels and lattice, as arrays; the blur; and what shapes compiled code."""
        pixels = coarse_pixels(self.observations.grid, self.effort.coarse_side)
        lattice = make_lattice(self.transformation, pixels.step, self.effort.spacing)
        numbers, _, shape = as_arrays(pixels, lattice, self.observations.dtype)
        return numbers, pixels.blur, shape

    @cached_property
    def at_once(self) -> int:
        """Parts whose templates are scored at a time."""
        numbers, _, _ = self._where
        per_part = len(numbers[6]) * len(numbers[7]) * self.observations.dtype.itemsize
        rows = len(self.observations.chunks[0].images)
        room = SCORED.get(jax.default_backend(), 2**24)
        return max(1, min(32, room // (per_part * rows)))

    def banks(self, pictures: np.ndarray) -> Iterator[tuple[slice, Bank]]:
        """Banks of some parts each, all of one size: the last is filled up."""
        numbers, blur, shape = self._where
        size = min(self.at_once, padded_rows(len(pictures)))
        for begin in range(0, len(pictures), size):
            check_interrupts()
            own = slice(begin, min(begin + size, len(pictures)))
            index = np.minimum(np.arange(begin, begin + size), len(pictures) - 1)
            some = pictures[index].astype(self.observations.dtype)
            yield (
                own,
                _make_bank(
                    some,
                    self.transformation,
                    numbers,
                    shape,
                    lighting=self.observations.lighting,
                    grid=self.observations.grid,
                    blur=blur,
                ),
            )

    def score(self, pictures: np.ndarray, count: int) -> Scores:
        """Score all images against all parts; λ for the best ``count`` of each image."""
        count = min(count, len(pictures))
        squares, parts, lams = [], [], []
        for own, bank in self.banks(pictures):
            some = min(count, bank.shape[0])
            size = own.stop - own.start
            stage = partial(_score, bank=bank, size=np.asarray(size, np.int32), count=some)
            square, part, lam = self.observations.map(stage)
            squares.append(square[:, :size])
            parts.append(np.where(part < size, part + own.start, -1))
            lams.append(lam)
        square = np.concatenate(squares, axis=1)
        part, lam = np.concatenate(parts, axis=1), np.concatenate(lams, axis=1)
        own = np.take_along_axis(square, np.maximum(part, 0), axis=1)
        best = np.argsort(np.where(part >= 0, own, np.inf), axis=1, kind="stable")[:, :count]
        part = np.take_along_axis(part, best, axis=1)
        return Scores(square, part, np.take_along_axis(lam, best[:, :, None], axis=1))

    def improve(
        self,
        pictures: np.ndarray,
        part: np.ndarray,
        lam: np.ndarray,
        steps: int = STEPS,
        all_pixels: bool = False,
    ) -> Nearest:
        """Improve λ of some parts of each image, and put the parts in the order of what is left."""
        grid, lighting = self.observations.grid, self.observations.lighting
        stage = partial(
            _improve,
            pictures=pictures[_filled_up(len(pictures))].astype(self.observations.dtype),
            transformation=self.transformation,
            lighting=lighting,
            grid=grid,
            steps=np.asarray(steps, np.int32),
            stride=1 if all_pixels or min(grid.shape) < LARGE_SIDE else 2,
        )
        lam = lam.astype(self.observations.dtype, copy=False)
        lam, square, gain, offset = self.observations.map(stage, part.astype(np.int32), lam)
        order = np.argsort(square, axis=1, kind="stable")
        found = Nearest(part, lam, square, gain, offset)
        return Nearest(*(_ordered(values, order) for values in found))

    def nearest(self, pictures: np.ndarray, count: int, all_pixels: bool = False) -> Nearest:
        """The best few parts of each image, λ improved."""
        scores = self.score(pictures, count)
        return self.improve(pictures, scores.part, scores.lam, all_pixels=all_pixels)


def _filled_up(count: int) -> np.ndarray:
    """Indices of so many rows and copies of the last, so that few sizes are compiled."""
    return np.minimum(np.arange(padded_rows(count)), count - 1)


def _ordered(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Columns of each row in its own order."""
    return np.take_along_axis(values, order if values.ndim == 2 else order[:, :, None], axis=1)


@partial(compiled, hot=True, static_argnames=("lighting", "grid", "blur"))
def _make_bank(
    pictures: Array,
    transformation: AbstractTransformation,
    numbers: Any,
    shape: Any,
    lighting: Lighting,
    grid: Grid,
    blur: float,
) -> Bank:
    prototypes = make_prototypes(pictures, grid, blur)
    none = numbers[0][0]
    coarse = PrototypeDistance(prototypes, transformation, none, none, lighting)
    return bank_of(coarse, len(pictures), numbers, shape)


@partial(compiled, hot=True, static_argnames=("count",))
def _score(chunk: Chunk, bank: Bank, size: Array, count: int) -> tuple[Array, Array, Array]:
    """What every part leaves of the images' energy, and the best few of ``size`` parts with λ."""
    n_parts, n_shifts, n_nodes = bank.shape
    pooled, roots = pool(bank, chunk.images, chunk.roots)
    cost = template_costs(bank, pooled, roots).reshape(len(pooled), n_parts, n_shifts * n_nodes)
    least = cost.min(axis=2)
    least = jnp.where(jnp.arange(n_parts, dtype=jnp.int32)[None] < size, least, jnp.inf)
    part = jax.lax.top_k(-least, count)[1]
    own = jnp.take_along_axis(cost, part[:, :, None], axis=1)
    place = own.argmin(axis=2)
    lam = bank.nodes[place % n_nodes]
    if bank.shift_index is not None:
        shift = bank.shifts[place // n_nodes]
        lam = lam.at[..., jnp.asarray(bank.shift_index)].add(shift)
    energy = bank.coarse.lighting.energies(pooled, roots)
    return jnp.maximum(energy[:, None] + least, 0), part, lam


@partial(compiled, hot=True, static_argnames=("lighting", "grid", "stride"))
def _improve(
    chunk: Chunk,
    part: Int[Array, "B r"],
    lam: Float[Array, "B r d"],
    pictures: Array,
    transformation: AbstractTransformation,
    lighting: Lighting,
    grid: Grid,
    steps: Array,
    stride: int,
) -> tuple[Array, Array, Array, Array]:
    """λ of each image on some parts of its own, improved; what is left; gain and offset."""
    index = np.arange(grid.n_pixels).reshape(grid.shape)
    some = index[stride // 2 :: stride, stride // 2 :: stride].ravel()
    x, y = (jnp.asarray(c[some], lam.dtype) for c in (grid.x, grid.y))
    prototypes = make_prototypes(pictures, grid)
    distance = PrototypeDistance(prototypes, transformation, x, y, lighting).with_reference()
    distance = replace(distance, reference=distance.reference / stride**2)
    images = chunk.images[:, some]
    roots = None if chunk.roots is None else chunk.roots[:, some]
    energies = lighting.energies(images, roots)
    image = jnp.repeat(jnp.arange(len(images)), part.shape[1])
    which, wanted = part.reshape(-1), (chunk.weights != 0)[image]
    rows = Rows(image, which, lam.reshape(-1, lam.shape[2]), wanted)
    ends = refine(distance, Pixels(images, roots, energies), rows, steps)
    own = None if roots is None else roots[image]
    end = jnp.where(wanted[:, None], ends.lam, rows.lam)
    fit = distance.fit(images[image], own, distance.values(end, which), which)
    shape = part.shape
    square = (fit.residual**2).sum(axis=1).reshape(shape) * stride**2
    return end.reshape(lam.shape), square, fit.gain.reshape(shape), fit.offset.reshape(shape)
