"""A mixture of patterns: learned from images, and asked which group an image belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from patternfold.learning.mixture.assign import Assigner, Nearest
from patternfold.learning.mixture.flexible import flexible_squares
from patternfold.learning.mixture.merge import Merged, merge, shared_images
from patternfold.learning.mixture.parts import (
    PartSettings,
    best_parts,
    relative,
    responsibilities,
    without_loners,
)
from patternfold.learning.mixture.patterns import as_patterns
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation

N_NEAR = 20
"""Parts of each image that are compared with it at length."""

AMBIGUOUS, COOLED = 3, 0.5
"""The temperature is this share of the typical step from an image's best part to its third: noise,
common to all parts, leaves it as it is."""


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

    ``temperature`` is in units of squares, or of shares of an image's energy where images have
    gains. ``noise`` is the variance of a pixel, None where small changes of shape count in full.
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
        nearest, misfit = near_parts(assigner, self.pictures, self.noise)
        return self._assigned(nearest, misfit)

    def _assigned(self, nearest: Nearest, misfit: np.ndarray) -> Assigned:
        share = responsibilities(misfit, self.temperature)
        by_group = np.zeros((len(share), self.n_groups))
        rows = np.arange(len(share))
        for k in range(share.shape[1]):
            by_group[rows, self.groups[nearest.part[:, k]]] += share[:, k]
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
    parts = best_parts(assigner, settings.parts, settings.n_init, report)
    if settings.outliers:
        parts = without_loners(assigner, parts)
    pictures = parts.pictures.astype(images.dtype)
    noise = parts.path[-1] if not images.lighting.gain else _noise(images, parts.nearest)
    noise = noise / images.grid.n_pixels if settings.flexible else None
    nearest, misfit = near_parts(assigner, pictures, noise)
    temperature = _temperature(misfit)
    share = responsibilities(misfit, temperature)
    graph = shared_images(nearest.part, share, images.weights, len(pictures))
    usual = float(np.median(misfit[:, 0]))
    near = _near_pictures(assigner, pictures, temperature, noise, usual)
    merged = merge(graph, near, settings.n_groups)
    merged = merged._replace(groups=_by_size(merged.groups, nearest.part[:, 0], images.weights))
    mixture = Mixture(pictures, merged.groups, family, temperature, noise)
    assigned = mixture._assigned(nearest, misfit)
    patterns = as_patterns(problem, pictures, settings.n_atoms, settings.parts.seed)
    sizes = np.bincount(assigned.part, images.weights, len(pictures))
    left = assigned.square / np.maximum(images.squares, np.finfo(np.float64).tiny)
    return MixtureLearned(
        mixture, patterns, assigned, merged, sizes, left, parts.path, parts.reason
    )


def near_parts(
    assigner: Assigner, pictures: np.ndarray, noise: float | None
) -> tuple[Nearest, np.ndarray]:
    """The best few parts of each image, and what small changes of shape leave of the misfit."""
    images = assigner.observations
    nearest = assigner.nearest(pictures, N_NEAR, all_pixels=True)
    square = nearest.square.astype(np.float64)
    if noise is not None:
        square = flexible_squares(
            images, assigner.transformation, pictures, nearest.part, nearest.lam, noise
        )
    misfit = relative(images, square)
    order = np.argsort(misfit, axis=1, kind="stable")
    columns = (
        np.take_along_axis(v, order if v.ndim == 2 else order[:, :, None], 1) for v in nearest
    )
    return Nearest(*columns), np.take_along_axis(misfit, order, axis=1)


def _noise(images: Observations, nearest: Nearest) -> float:
    """Mean of what is left of an image, in squares."""
    return float(np.average(nearest.square[:, 0], weights=images.weights))


def _temperature(misfit: np.ndarray) -> float:
    """The typical step from an image's best part to the one that it hardly belongs to."""
    last = min(AMBIGUOUS, misfit.shape[1]) - 1
    return COOLED * float(np.median(misfit[:, last] - misfit[:, 0]))


def _near_pictures(
    assigner: Assigner,
    pictures: np.ndarray,
    temperature: float,
    noise: float | None,
    usual: float,
) -> np.ndarray:
    """How near (P, P) each part's own picture is to the other parts: 1 if no farther than images.

    ``usual`` is what images leave of their parts.
    """
    n_parts, images = len(pictures), assigner.observations
    near = np.zeros((n_parts, n_parts))
    if n_parts == 1:
        return near
    own = Observations.put(pictures.astype(images.dtype), images.grid, lighting=images.lighting)
    nearest, misfit = near_parts(replace(assigner, observations=own), pictures, noise)
    farther = np.maximum(misfit - usual, 0) / max(temperature, 1e-300)
    near[np.arange(n_parts)[:, None], nearest.part] = np.exp(-farther)
    np.fill_diagonal(near, 0)
    return near


def _by_size(groups: np.ndarray, part: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Groups renamed, the one with the most images first."""
    size = np.bincount(groups[part], weights, groups.max() + 1)
    place = np.empty(len(size), int)
    place[np.argsort(-size, kind="stable")] = np.arange(len(size))
    return place[groups]
