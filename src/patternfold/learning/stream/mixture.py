"""Parts of a mixture on all images of a stack: assignment and averages in turn, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from patternfold.learning.coarse import coarsened
from patternfold.learning.mixture.assign import Assigner
from patternfold.learning.mixture.mixture import Mixture
from patternfold.learning.mixture.parts import relative, responsibilities
from patternfold.learning.mixture.update import part_sums, pictures_of
from patternfold.learning.stream.learn import Source
from patternfold.learning.stream.sweep import Model
from patternfold.model.transformations import AbstractTransformation

PASSES, ENOUGH = 3, 1e-3
"""Most passes over all images in which the parts move, and the share of the misfit that each must
be worth."""


N_NEAR = 3
"""Parts of each image whose λ are improved: the bank alone does not tell which is the nearest."""


class PartSums(NamedTuple):
    """Sums over images: those that make pictures, the misfit, and the weight of the images."""

    above: np.ndarray
    below: np.ndarray
    misfit: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class PartSweep:
    """Find the part of each image of a block, and add up the images of each part."""

    model: Model
    pictures: np.ndarray
    transformation: AbstractTransformation

    def __call__(self, images: np.ndarray, weights: object = None, mask: object = None) -> PartSums:
        """Return the sums."""
        with self.model.at_work(images, weights, mask) as problem:
            seen = coarsened(problem.observations) or problem.observations
            nearest = Assigner(seen, self.transformation).nearest(self.pictures, N_NEAR)
            misfit = relative(seen, nearest.square)
            share, count = responsibilities(misfit, 0.0), len(self.pictures)
            misfit = misfit[:, 0]
            sums = part_sums(seen, self.transformation, nearest, share, count)
            totals = (seen.weights @ misfit, seen.weights.sum())
            return PartSums(*sums, *map(np.asarray, totals))


def settle_parts(
    source: Source,
    mixture: Mixture,
    report: Callable[[str, float], bool] | None = None,
) -> Iterator[tuple[Mixture, float]]:
    """Yield the mixture with parts that are averages of all their images, and its misfit before.

    Groups stay as they are: which parts share images, some thousand of these tell.
    """
    before = np.inf
    for k in range(PASSES):
        sums = _added(source, mixture)
        misfit = float(sums.misfit / sums.weight)
        if misfit > (1 - ENOUGH) * before:
            return
        pictures = pictures_of(sums.above, sums.below, source.model.lighting)
        # A part whose images are all others' now stays as it is.
        kept = sums.below.max(axis=1, keepdims=True) > 0
        pictures = np.where(kept, pictures, mixture.pictures).astype(mixture.pictures.dtype)
        before, mixture = misfit, replace(mixture, pictures=pictures)
        yield mixture, misfit
        if report is not None and report(f"pass {k + 1} over all images", misfit):
            return


def _added(source: Source, mixture: Mixture) -> PartSums:
    """The sums of all blocks, in their order."""
    task = PartSweep(source.model, mixture.pictures, mixture.transformation)
    total: PartSums | None = None
    for part in source.results(task):
        total = part if total is None else PartSums(*map(np.add, total, part))
    assert total is not None  # a stack has images
    return total
