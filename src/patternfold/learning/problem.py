"""What is to be learned, from what, and how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.coarse import coarsened
from patternfold.learning.distance import Distance
from patternfold.learning.effort import LEARNING, Effort
from patternfold.learning.mean_image import distances_to_mean
from patternfold.learning.observations import Observations
from patternfold.learning.refit.arrow import reweighted_chunk, squares_of
from patternfold.learning.refit.equations import Equations, Sampling
from patternfold.learning.select.solvers import AbstractSolver, Search
from patternfold.learning.terms import Terms
from patternfold.model.atoms import AtomFamily, make_atoms
from patternfold.model.box import Box
from patternfold.model.grid import Grid
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled

AMPLE_PIXELS = 100_000
"""Pixels of all images together that tell some dozens of atoms well enough."""

LONG_TO_ASK = ("gpu", "tpu")
"""Where a call takes longer than what it computes: pixels come in one part. Elsewhere several parts
of the same size share compiled code."""

SHARED_ROWS = 1024
"""Rows of a chunk that may be filled up to share compiled code."""


@dataclass(frozen=True)
class Settings:
    """How PATS runs; the estimator `PATS` documents each of them.

    With ``choose`` the number of atoms is chosen, at most ``n_atoms``.
    """

    n_atoms: int = 20
    choose: bool = False
    tol: float = 0.0
    tangent_refinement: bool = True
    refit: str | None = "all"
    projection: str = "global"
    n_starts: int = 2
    n_exchanges: int = 2
    settle: bool = True
    correct_every: int = 1
    stop_on_increase: bool = False
    max_coef: float = np.inf
    seed: int = 0
    solver: AbstractSolver = field(default_factory=Search)
    effort: Effort = field(default=LEARNING)

    def begun(self, problem: Problem) -> Problem:
        """The images on which atoms are selected: large ones on cells, but not as published."""
        return problem if self.refit is None else problem.on_cells


@dataclass(frozen=True)
class Problem:
    """Images u_i with their weights, and the components of the model.

    ``anchor`` is the image that the pattern's frame is that of: its λ is held at the identity.
    ``loss`` and ``prior`` are what was asked for, ``terms`` what they are at the scales of the
    residuals at hand; None before there are any, and where squares are all that counts.
    """

    observations: Observations
    transformation: AbstractTransformation
    family: AtomFamily
    anchor: int | None = None
    loss: AbstractLoss = SQUARES
    prior: Prior | str | None = None
    terms: Terms | None = None
    distances: np.ndarray | None = None
    """Of each image to the mean of all, where these images stand for more of them."""

    @property
    def reweights(self) -> bool:
        """Whether residuals cost other than their squares."""
        return self.loss.reweights

    @property
    def grid(self) -> Grid:
        """The sampling window."""
        return self.observations.grid

    @property
    def weights(self) -> np.ndarray:
        """w_i."""
        return self.observations.weights

    @property
    def empty(self) -> Pattern:
        """p_0 = 0."""
        return Pattern((), None, self.family.mother, self.family.dictionary)

    @cached_property
    def central(self) -> int:
        """The image nearest to the mean image."""
        return int(np.argmin(distances_to_mean(self.observations)))

    @property
    def on_cells(self) -> Problem:
        """The same on averages over cells, where images are large, with no terms known yet."""
        return self._coarse or self

    @cached_property
    def _coarse(self) -> Problem | None:
        # A problem that kept itself would stay on the device until Python looks for cycles.
        cells = coarsened(self.observations)
        return None if cells is None else replace(self, observations=cells, terms=None)

    @cached_property
    def phases(self) -> tuple[np.ndarray, ...]:
        """All pixels in parts, every other row and column of images that are large enough."""
        stride = 2 if min(self.grid.shape) >= 24 else 1
        index = np.arange(self.grid.n_pixels).reshape(self.grid.shape)
        order = [*range(stride // 2, stride), *range(stride // 2)]
        return tuple(index[i::stride, j::stride].ravel() for i in order for j in order)

    @cached_property
    def whole(self) -> Sampling:
        """The images at all pixels."""
        return Sampling((self.observations,), (np.arange(self.grid.n_pixels),))

    @cached_property
    def sparse(self) -> Sampling:
        """The images at every other pixel, as on a chessboard, for quick corrections.

        Every other row and column would do for the atoms, but not for the λ_i of single images.
        """
        return self.sampling(self.phases[:: max(1, len(self.phases) - 1)])

    @cached_property
    def sparsest(self) -> Sampling:
        """The images at every other row and column: enough for atoms where λ stays."""
        return self.sampling(self.phases[:1])

    @cached_property
    def ample(self) -> Sampling:
        """At all pixels, or, where the images have more than enough of them together, a part."""
        many = len(self.observations) * self.grid.n_pixels > AMPLE_PIXELS
        return self.sparse if many else self.sampling(self.phases)

    def sampling(self, phases: tuple[np.ndarray, ...]) -> Sampling:
        """The images at some pixels."""
        if jax.default_backend() in LONG_TO_ASK:
            phases = (np.sort(np.concatenate(phases)),)
        whole = len(phases[0]) == self.grid.n_pixels
        images = self.observations
        return Sampling(tuple(images if whole else images.at(p) for p in phases), phases)

    @cached_property
    def energy(self) -> float:
        """Σ w_i‖u_i‖², by which errors are divided for people."""
        return self.observations.energy

    @cached_property
    def peak_coef(self) -> float:
        """The coefficient that lifts an atom to the brightest pixel of an image, on average."""
        peaks = self.observations.map(_peaks)
        at_origin = abs(float(self.family.mother(jnp.zeros(()), jnp.zeros(())))) or 1.0
        return float(np.average(peaks, weights=self.weights)) / at_origin

    @property
    def atom_box(self) -> Box:
        """Γ, with widths that the pixels can show."""
        return self.family.dictionary.resolved(self.grid.pixel)

    def with_weights(self, weights: np.ndarray) -> Problem:
        """The same images with other weights, of either sign."""
        return replace(self, observations=self.observations.with_weights(weights))

    def part(self, index: np.ndarray, weights: np.ndarray | None = None) -> Problem:
        """Some of the images, with weights of their own."""
        return self._some(index, self.observations.take(index, weights))

    def stand_ins(self, index: np.ndarray, weights: np.ndarray) -> Problem:
        """Some images, in a chunk as large as the others if that is not much larger than needed.

        Compiled code is shared then; the rows that fill up cost an accelerator hardly anything.
        """
        rows = len(self.observations.chunks[0].images)
        size = rows if rows <= SHARED_ROWS else None
        return self._some(index, self.observations.take(index, weights, size))

    def _some(self, index: np.ndarray, images: Observations) -> Problem:
        distances = None if self.distances is None else self.distances[index]
        own = {"anchor": self._anchor_in(index), "distances": distances}
        return replace(self, observations=images, **own)

    def _anchor_in(self, index: np.ndarray) -> int | None:
        """Where the anchor is among some of the images."""
        places = np.flatnonzero(index == self.anchor)
        return int(places[0]) if self.anchor is not None and len(places) else None

    def distance(self, pattern: Pattern, sampling: Sampling | None = None) -> Distance:
        """The distance to a pattern's manifold, at all pixels or those of a sampling."""
        atoms = make_atoms(pattern.coef, pattern.gamma, self.family, self.observations.dtype)
        places = self.whole if sampling is None else sampling
        lighting = self.observations.lighting
        terms = self.terms and self.terms.on(len(places.pixels[0]) / self.grid.n_pixels)
        return Distance(atoms, self.transformation, *places.coordinates[0], lighting, terms=terms)

    def equations(
        self, pattern: Pattern, lam: np.ndarray, sampling: Sampling, move: bool
    ) -> Equations:
        """Normal equations at a point."""
        # A change of frame may have moved atoms out of their box: no step takes them back by force.
        box = self.atom_box.containing(pattern.gamma)
        where = (sampling, self.transformation, box, pattern, lam, move)
        return Equations(*where, terms=self.terms, anchor=self.anchor)

    def reweighted(self, pattern: Pattern, lam: np.ndarray, sampling: Sampling) -> Observations:
        """The images with weights as the loss gives them at a pattern; as they are without one."""
        images = sampling.parts[0]
        if self.terms is None or self.terms.loss is None:
            return images
        rows = lam.astype(images.dtype, copy=False)
        chunks = images.each(
            partial(reweighted_chunk, distance=self.distance(pattern, sampling)), rows
        )
        return replace(images, chunks=tuple(chunks))

    def by_squares(self) -> Problem:
        """The same without loss and prior: for images that are reweighted already."""
        return self if self.terms is None else replace(self, terms=None)

    def light(self, pattern: Pattern, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gain and offset of each image: 1 and 0 where they are not its own."""
        stage = partial(_light, distance=self.distance(pattern))
        gain, offset = self.observations.map(stage, lam.astype(self.observations.dtype, copy=False))
        return gain, offset

    def squares(self, pattern: Pattern, lam: np.ndarray) -> np.ndarray:
        """‖u_i − U_λi(p)‖² for each image, or what loss and prior make of it."""
        stage = partial(squares_of, distance=self.distance(pattern))
        lam = lam.astype(self.observations.dtype, copy=False)
        return self.observations.map(stage, lam).astype(np.float64)

    def error(self, pattern: Pattern, lam: np.ndarray) -> float:
        """E at the given λ_i."""
        return self.total(self.squares(pattern, lam))

    def total(self, squares: np.ndarray) -> float:
        """E from the costs of the images."""
        if self.terms is not None and self.terms.typical is not None:
            squares = np.asarray(
                self.terms.of_images(jnp.asarray(squares), self._counted)[0], np.float64
            )
        return float((self.weights * squares).sum())

    def costs_per_pixel(self, pattern: Pattern, lam: np.ndarray) -> np.ndarray:
        """Costs of the images for each pixel that counts."""
        return self.squares(pattern, lam) / self._counted

    @property
    def _counted(self) -> np.ndarray:
        """Number of pixels that count, of each image."""
        return self.observations.counted


@compiled
def _light(chunk: Chunk, lam: Float[Array, "B d"], distance: Distance) -> tuple[Array, Array]:
    fit = distance.fit(chunk.images, chunk.roots, distance.values(lam))
    return fit.gain, fit.offset


@compiled
def _peaks(chunk: Chunk) -> Float[Array, " B"]:
    return jnp.abs(chunk.images).max(axis=1)
