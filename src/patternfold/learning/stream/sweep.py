"""What is done to the blocks of a stack: looked at, or compared with the mean of all images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from patternfold.learning.amplitude import Amplitude
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.learning.mean_image import distances_to, pixel_sums
from patternfold.learning.missing import without_missing
from patternfold.learning.observations import Observations, chunk_size
from patternfold.learning.passes import Look, Seen
from patternfold.learning.problem import Problem
from patternfold.learning.stream.times import timed
from patternfold.learning.terms import Terms
from patternfold.model.atoms import AtomFamily
from patternfold.model.grid import Grid
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.precision import precision


@dataclass(frozen=True)
class Model:
    """What images are compared with: everything but the pattern and the images."""

    grid: Grid
    transformation: AbstractTransformation
    family: AtomFamily
    lighting: Lighting = PLAIN
    amplitude: Amplitude = field(default_factory=Amplitude)
    loss: AbstractLoss = SQUARES
    prior: Prior | str | None = None
    terms: Terms | None = None
    """What loss and prior are at the scales of the residuals."""
    block: int = 1
    """Images in a block: all blocks are filled up to the same size."""

    def put(self, images: np.ndarray, weights: np.ndarray | None, mask: Any = None) -> Problem:
        """Send images to the devices; NaN and masked pixels count nothing."""
        rows = images.reshape(len(images), -1)
        rows = self.amplitude.lowered(rows) if self.amplitude.exponent else rows
        dtype = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float32)
        platform = jax.local_devices()[0].platform
        size = chunk_size(self.block, self.grid.n_pixels * dtype.itemsize, platform)
        where = {"size": size, "lighting": self.lighting}
        with timed("transfer"):
            seen = Observations.put(rows, self.grid, weights, **where)
            known = mask is None and (rows.dtype.kind != "f" or seen.finite)
            if not known:
                rows, counted = without_missing("images", rows.astype(dtype, copy=False), mask)
                seen = Observations.put(rows, self.grid, weights, counted, **where)
            jax.block_until_ready([chunk.images for chunk in seen.chunks])
        own = {"loss": self.loss, "prior": self.prior, "terms": self.terms}
        return Problem(seen, self.transformation, self.family, **own)

    @contextmanager
    def at_work(self, images: np.ndarray, weights: Any, mask: Any) -> Iterator[Problem]:
        """Within the block images are on the devices, and the time counts as work."""
        dtype = images.dtype if images.dtype.kind == "f" else np.dtype(np.float32)
        with precision(dtype):
            problem = self.put(images, weights, mask)
            with timed("work"):
                yield problem


@dataclass(frozen=True)
class Sweep:
    """Look at a block with a pattern."""

    model: Model
    look: Look

    def __call__(
        self, images: np.ndarray, weights: Any = None, lam: Any = None, mask: Any = None
    ) -> Seen:
        """Return what is seen."""
        with self.model.at_work(images, weights, mask) as problem:
            return self.look(problem, lam)


@dataclass(frozen=True)
class PixelSums:
    """Add up those images of a block that have a weight."""

    model: Model

    def __call__(self, images: np.ndarray, weights: Any, mask: Any = None) -> np.ndarray:
        """Return the sums."""
        with self.model.at_work(images, weights, mask) as problem:
            return pixel_sums(problem.observations, problem.weights > 0)


@dataclass(frozen=True)
class Distances:
    """Distances of the images of a block to the mean of all."""

    model: Model
    mean: np.ndarray

    def __call__(self, images: np.ndarray, weights: Any, mask: Any = None) -> np.ndarray:
        """Return the distances."""
        with self.model.at_work(images, weights, mask) as problem:
            return distances_to(problem.observations, self.mean)
