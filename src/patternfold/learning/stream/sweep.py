"""One pass over a stack: λ of every image, and the sums that tell how the atoms should move."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import jax
import numpy as np

from patternfold.learning.amplitude import Amplitude
from patternfold.learning.coarse import coarse_grid
from patternfold.learning.effort import LEARNING, Effort
from patternfold.learning.journal import Record
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.learning.missing import without_missing
from patternfold.learning.observations import Observations, chunk_size
from patternfold.learning.problem import Problem
from patternfold.learning.project.locate import locate
from patternfold.learning.refit.correct import Reduced, held_parameters, solve_damped
from patternfold.learning.stream.times import timed
from patternfold.learning.terms import Terms
from patternfold.model.atoms import AtomFamily
from patternfold.model.grid import Grid
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.precision import precision

DAMPING = 1e-3
"""Of λ while it is eliminated: near a minimum, as it is here, hardly any is needed."""


class Seen(NamedTuple):
    """What a pass tells: of each image, and sums over the images."""

    lam: np.ndarray
    """(B, d)."""
    square: np.ndarray
    """‖u − U_λ(p)‖², (B,)."""
    gain: np.ndarray
    offset: np.ndarray
    energy: np.ndarray
    """Σ w‖u‖², as an array of one number."""
    error: np.ndarray
    """E, likewise."""
    sums: Reduced | None = None


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


@dataclass(frozen=True)
class Sweep:
    """A task for blocks: find λ, and add up the equations of the atoms if they are to move.

    ``everywhere`` searches over the whole box, otherwise near the λ that are known.
    """

    model: Model
    pattern: Pattern
    everywhere: bool = True
    equations: bool = True
    effort: Effort = LEARNING

    def __call__(
        self, images: np.ndarray, weights: Any = None, lam: Any = None, mask: Any = None
    ) -> Seen:
        """Return what is seen in a block."""
        dtype = images.dtype if images.dtype.kind == "f" else np.dtype(np.float32)
        with precision(dtype):
            problem = self.model.put(images, weights, mask)
            with timed("work"):
                return self.look(problem, lam)

    def look(self, problem: Problem, lam: np.ndarray | None) -> Seen:
        """The same for images that are on the devices."""
        observations = problem.observations
        if self.everywhere and coarse_grid(observations.grid) is not None:
            lam = None  # large images are searched for on cells, from nothing
        start = None if lam is None else lam[:, None]
        found = locate(
            observations,
            [self.pattern],
            problem.transformation,
            self.effort,
            start,
            self.everywhere or start is None,
            describe=False,
            terms=None if problem.terms is None else [problem.terms],
        )
        own: np.ndarray = found.lam[:, 0]
        sums = None
        if self.equations:
            equations = problem.equations(self.pattern, own, problem.sparse, True)
            sums = equations.reduced(DAMPING)
        gain, offset = problem.light(self.pattern, own)
        square = found.square[:, 0]
        error = problem.total(square.astype(np.float64))
        energy = np.asarray([observations.energy])
        return Seen(own, square, gain, offset, energy, np.asarray([error]), sums)


class SeenCodec:
    """What was seen in a block as arrays, for checkpoints."""

    def pack(self, value: Seen) -> Record:
        """Return the arrays."""
        record = {name: getattr(value, name) for name in Seen._fields if name != "sums"}
        if value.sums is None:
            return record
        return record | {f"sums_{name}": part for name, part in value.sums._asdict().items()}

    def unpack(self, record: Record) -> Seen:
        """Return what was seen."""
        own = {name: record[name] for name in Seen._fields if name != "sums"}
        known = "sums_cost" in record
        parts = [record[f"sums_{name}"] for name in Reduced._fields] if known else []
        return Seen(**own, sums=Reduced(*parts) if known else None)


def added(parts: list[Reduced]) -> Reduced:
    """Add equations in their order, in float64."""
    return reduce(lambda one, other: Reduced(*map(np.add, one, other)), parts)


def stepped(sums: Reduced, pattern: Pattern, problem: Problem, damping: float) -> Pattern:
    """The pattern after a damped step, the λ_i following by themselves."""
    box = problem.atom_box.containing(pattern.gamma)
    held = held_parameters(box, pattern.gamma, sums.slope)
    delta = solve_damped(sums, held, damping)[0].reshape(pattern.n_atoms, -1)
    gamma = box.put_inside(pattern.gamma + delta[:, :-1])
    return pattern.replace(pattern.coef + delta[:, -1], gamma)
