"""What was learned: patterns and what each stands for, for estimators, pages and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold.learning.effort import Effort
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.learning.project import Projection, project
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation


@dataclass(frozen=True)
class FittedManifolds:
    """Learned manifolds: one pattern, one per class, or one per group.

    Attributes
    ----------
    patterns : sequence of Pattern
        p^m.
    labels : sequence of str
        The class or group that each pattern stands for; one empty name for a single pattern.
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
    """

    patterns: Sequence[Pattern]
    labels: Sequence[str]
    transformation: AbstractTransformation
    image_shape: tuple[int, int]
    error_paths: Sequence[np.ndarray] = ()
    lighting: Lighting = PLAIN
    loss: AbstractLoss = SQUARES
    priors: Sequence[Prior] | None = None

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
        holder = model
    else:
        holder = getattr(model, "views_", model)
        names = getattr(model, "classes_", range(len(holder.patterns_)))
        patterns, labels = holder.patterns_, [str(label) for label in names]
        paths = [np.empty(0)] * len(labels)
    shape = (int(model.image_shape_[0]), int(model.image_shape_[1]))
    lighting = Lighting(bool(getattr(model, "gain", False)), bool(getattr(model, "offset", False)))
    loss, prior = getattr(holder, "loss_", SQUARES), getattr(holder, "prior_", None)
    priors = [prior] if isinstance(prior, Prior) else prior
    where = (holder.transformation_, shape, paths, lighting)
    return FittedManifolds(patterns, labels, *where, loss, priors)
