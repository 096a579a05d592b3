"""A mixture of patterns: learned from images, and asked which group an image belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from patternfold.learning.mixture.assign import Assigner, Nearest
from patternfold.learning.mixture.compare import compare
from patternfold.learning.mixture.merge import (
    Merged,
    group_shares,
    merge,
    with_their_images,
)
from patternfold.learning.mixture.parts import (
    PartSettings,
    crowded_images,
    learned_parts,
    picture_of,
    responsibilities,
    without_loners,
)
from patternfold.learning.mixture.patterns import as_patterns
from patternfold.learning.mixture.ties import Compared, ties_of
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation

RENEWALS = 2
"""How often parts that end without images are given up for badly fitted images; those that have
none even then are left out."""


@dataclass(frozen=True)
class MixtureSettings:
    """How a mixture is learned; the estimator `PatternMixture` documents each of them.

    ``n_groups`` is None where it is to be chosen.
    """

    parts: PartSettings
    n_groups: int | None
    n_init: int = 1
    n_atoms: int = 8
    flexible: bool = True
    outliers: bool = False


class Assigned(NamedTuple):
    """Where each image belongs: its group, its part, λ there, what is left of ‖u‖², its light.

    ``share`` (N, G) is how much of it belongs to each group, ``square`` the squared distance to the
    part.
    """

    group: Int[Any, " N"]
    part: Int[Any, " N"]
    lam: Float[Any, "N d"]
    square: Float[Any, " N"]
    gain: Float[Any, " N"]
    offset: Float[Any, " N"]
    share: Float[Any, "N G"]


@dataclass(frozen=True)
class Mixture:
    """Pictures of parts, the group of each, and how images are compared with them.

    ``temperature`` is that of logarithms of what parts leave. ``noise`` is the variance of a pixel,
    None where small changes of shape count in full.
    """

    pictures: np.ndarray
    groups: np.ndarray
    transformation: AbstractTransformation
    temperature: float
    noise: float | None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1

    def assign(self, observations: Observations) -> Assigned:
        """Find the group, the part and λ of each image."""
        assigner = Assigner(observations, self.transformation)
        nearest, misfit = compare(assigner, self.pictures, self.noise)
        return self._assigned(nearest, misfit)

    def _assigned(self, nearest: Nearest, misfit: np.ndarray) -> Assigned:
        share = responsibilities(misfit, self.temperature)
        by_group = group_shares(self.groups, nearest.part, share)
        rows = np.arange(len(share))
        group = by_group.argmax(axis=1)
        # Of the parts of its group, the one that fits best.
        own = self.groups[nearest.part] == group[:, None]
        best = np.where(own, misfit, np.inf).argmin(axis=1)
        part, lam, square, gain, offset = (v[rows, best] for v in nearest)
        return Assigned(group, part, lam, square, gain, offset, by_group)

    def group_squares(self, observations: Observations) -> np.ndarray:
        """Squared distance of each image to every group: to the best part that the bank finds."""
        assigner = Assigner(observations, self.transformation)
        squares = np.empty((len(observations), self.n_groups))
        for g in range(self.n_groups):
            own = self.pictures[self.groups == g]
            nearest = assigner.nearest(own, 1, all_pixels=True)
            squares[:, g] = nearest.square[:, 0]
        return squares


class MixtureLearned(NamedTuple):
    """The outcome: the mixture, its parts as atoms, the merge, and misfits after each pass.

    ``sizes`` are the images of each part, by weight; ``left`` is the share of each image's energy
    that its part leaves.
    """

    mixture: Mixture
    patterns: tuple[Pattern, ...]
    assigned: Assigned
    merged: Merged
    sizes: np.ndarray
    left: np.ndarray
    path: list[float]
    reason: str


def learn_mixture(
    problem: Problem,
    settings: MixtureSettings,
    report: Callable[[str, float], bool] | None = None,
) -> MixtureLearned:
    """Learn parts, merge them into groups, and make patterns of them."""
    images, family = problem.observations, problem.transformation
    assigner = Assigner(images, family)
    learned = learned_parts(assigner, settings.parts, settings.n_init, report)
    if settings.outliers:
        learned = [without_loners(assigner, parts) for parts in learned]
    parts = learned[0]
    tell = report or (lambda stage, misfit: False)
    noise = _noise(images, parts.nearest) if settings.flexible else None
    compared = [_compared(assigner, some.pictures, noise) for some in learned]
    pictures, nearest, misfit = compared[0]
    tell("images compared with their parts", parts.path[-1])
    ties = ties_of(assigner, compared, noise)
    merged = merge(ties.graph, ties.near, settings.n_groups, ties.kept)
    share = responsibilities(misfit, ties.temperature)
    groups = with_their_images(merged.groups, nearest.part, share, images.weights)
    groups = _by_size(groups, nearest.part[:, 0], images.weights)
    merged = merged._replace(groups=groups)
    mixture = Mixture(pictures, merged.groups, family, ties.temperature, noise)
    assigned = mixture._assigned(nearest, misfit)
    tell(f"{len(pictures)} parts merged into {mixture.n_groups} groups", parts.path[-1])
    patterns = as_patterns(problem, pictures, settings.n_atoms, settings.parts.seed)
    sizes = np.bincount(assigned.part, images.weights, len(pictures))
    left = assigned.square / np.maximum(images.squares, np.finfo(np.float64).tiny)
    return MixtureLearned(
        mixture, patterns, assigned, merged, sizes, left, parts.path, parts.reason
    )


def _compared(assigner: Assigner, pictures: np.ndarray, noise: float | None) -> Compared:
    """Pictures of parts that have images, the best few of each image, and their misfits."""
    images = assigner.observations
    pictures = pictures.astype(images.dtype)
    nearest, misfit = compare(assigner, pictures, noise)
    for k in range(RENEWALS + 1):
        part, n_parts = nearest.part[:, 0], len(pictures)
        empty = np.flatnonzero(np.bincount(part, images.weights, n_parts) == 0)
        if not len(empty):
            break
        left = np.exp(misfit[:, 0])
        chosen = crowded_images(part, left, images.weights, len(empty), n_parts)
        for m, i in zip(empty, chosen, strict=False):
            pictures[m] = picture_of(images, i)
        if k == RENEWALS or not chosen:
            pictures = np.delete(pictures, empty, axis=0)
        nearest, misfit = compare(assigner, pictures, noise)
    return Compared(pictures, nearest, misfit)


def _noise(images: Observations, nearest: Nearest) -> float:
    """Variance of a pixel about its part."""
    left = np.average(nearest.square[:, 0], weights=images.weights)
    return float(left) / images.grid.n_pixels


def _by_size(groups: np.ndarray, part: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Groups renamed, the one with the most images first."""
    size = np.bincount(groups[part], weights, groups.max() + 1)
    place = np.empty(len(size), int)
    place[np.argsort(-size, kind="stable")] = np.arange(len(size))
    return place[groups]
