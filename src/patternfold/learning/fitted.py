"""What was learned: patterns and what each stands for, for estimators, pages and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold.learning.effort import Effort
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.learning.project import Projection, project
from patternfold.learning.several import pattern_names
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation


@dataclass(frozen=True)
class FittedManifolds:
    """Learned manifolds: one pattern, one or several per class, or one per group.

    Attributes
    ----------
    patterns : sequence of Pattern
        p^m.
    labels : sequence of str
        The class or group that each pattern stands for; one empty name for a single pattern. Where
        a class has several, they are numbered, as "3 (1 of 2)".
    transformation : transformation
        The family with its box Λ.
    image_shape : (H, W)
        Shape of the images.
    error_paths : sequence of arrays
        Error after each atom of each pattern, where it is known.
    lighting : Lighting
        Which of gain and offset are an image's own.
    loss : loss
        What residuals cost.
    priors : sequence of Prior, or None
        The prior on λ of each pattern.
    owners : sequence of int, optional
        The class of each pattern, in ascending order; by default each has one of its own.
    classes : sequence of str, optional
        Names of the classes; by default the labels.
    """

    patterns: Sequence[Pattern]
    labels: Sequence[str]
    transformation: AbstractTransformation
    image_shape: tuple[int, int]
    error_paths: Sequence[np.ndarray] = ()
    lighting: Lighting = PLAIN
    loss: AbstractLoss = SQUARES
    priors: Sequence[Prior] | None = None
    owners: Sequence[int] = ()
    classes: Sequence[str] = ()

    @property
    def class_of(self) -> np.ndarray:
        """The class of each pattern."""
        return np.array(self.owners or range(len(self.patterns)), int)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes, in their order."""
        return list(self.classes or self.labels)

    def nearest(self, distances: np.ndarray) -> np.ndarray:
        """The nearest pattern of each class, of distances (N, M): indices (N, classes)."""
        owners = self.class_of
        if not self.owners:
            return np.broadcast_to(owners, distances.shape)
        columns = [np.flatnonzero(owners == c) for c in range(len(self.class_names))]
        return np.stack([own[distances[:, own].argmin(axis=1)] for own in columns], axis=1)

    def by_class(self, distances: np.ndarray) -> np.ndarray:
        """The least distance (N, classes) among the patterns of each class."""
        return np.take_along_axis(distances, self.nearest(distances), axis=1)

    def project(
        self,
        images: Any,
        effort: str | Effort,
        sample_mask: np.ndarray | None = None,
        uncertainty: bool = False,
    ) -> Projection:
        """Project images on every manifold: arrays of shape (N, M, ...)."""
        return project(
            list(self.patterns),
            images,
            self.transformation,
            image_shape=self.image_shape,
            effort=effort,
            gain=self.lighting.gain,
            offset=self.lighting.offset,
            sample_mask=sample_mask,
            loss=self.loss,
            prior=self.priors,
            uncertainty=uncertainty,
        )


def fitted_manifolds(model: Any) -> FittedManifolds:
    """Return the manifolds of a fitted estimator."""
    if hasattr(model, "pattern_"):
        patterns, labels, paths = [model.pattern_], [""], [model.error_path_]
        holder, owners, classes = model, (), ()
    else:
        holder = getattr(model, "views_", model)
        classes = [str(c) for c in getattr(model, "classes_", range(len(holder.patterns_)))]
        patterns, owners = holder.patterns_, owners_of(holder)
        labels = pattern_names(classes, owners or range(len(classes)))
        paths = [np.empty(0)] * len(labels)
    shape = (int(model.image_shape_[0]), int(model.image_shape_[1]))
    lighting = Lighting(bool(getattr(model, "gain", False)), bool(getattr(model, "offset", False)))
    loss, prior = getattr(holder, "loss_", SQUARES), getattr(holder, "prior_", None)
    priors = [prior] if isinstance(prior, Prior) else prior
    where = (holder.transformation_, shape, paths, lighting)
    return FittedManifolds(patterns, labels, *where, loss, priors, owners, classes)


def owners_of(holder: Any) -> tuple[int, ...]:
    """The class of each pattern, by its index; nothing where every class has one."""
    labels = getattr(holder, "pattern_labels_", None)
    if labels is None or len(labels) == len(holder.classes_):
        return ()
    return tuple(np.searchsorted(holder.classes_, labels).tolist())
