"""Classify images by the nearest of learned manifolds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.class_manifolds import ClassManifolds
from patternfold.estimators.images import pixels_to_project
from patternfold.estimators.probabilities import ProbabilityMixin
from patternfold.estimators.saving import SavingMixin
from patternfold.estimators.streams import in_blocks
from patternfold.estimators.symmetric import learned_symmetries
from patternfold.learning.effort import Effort
from patternfold.learning.fitted import fitted_manifolds
from patternfold.learning.project import Projection
from patternfold.model.symmetry import Symmetry


class NearestManifold(SavingMixin, ProbabilityMixin, ClassifierMixin, ClassManifolds):
    """An estimator that has learned manifolds of classes; how it has is left to others."""

    outlier_threshold_: float
    outlier_label_: Any

    def predict(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the class of the nearest manifold, or the outlier label.

        ``effort`` and ``sample_mask`` are those of `patternfold.project`; searching harder hardly
        ever changes which manifold is nearest.
        """
        distances = self.distances(X, effort, sample_mask)
        found = self.classes_[distances.argmin(axis=1)]
        outlier = distances.min(axis=1) > self.outlier_threshold_
        if not outlier.any():
            return found
        return np.where(outlier, np.asarray(self.outlier_label_), found)

    def decision_function(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return −d² to each class; with two classes the difference, positive for the second."""
        scores = -(self.distances(X, effort, sample_mask).astype(np.float64) ** 2)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def distances(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the distance of each image to every class: to the nearest of its manifolds."""
        found = self.project(X, effort, sample_mask)
        return fitted_manifolds(self).by_class(found.distances)

    @in_blocks
    def project(
        self,
        X: Any,
        effort: str | Effort = "quick",
        sample_mask: Any = None,
        uncertainty: bool = False,
    ) -> Projection:
        """Project images on the manifolds of all M patterns: λ (N, M, d), distances (N, M).

        ``pattern_labels_`` tells the class of each.
        """
        check_is_fitted(self)
        pixels = pixels_to_project(self, X, sample_mask)
        return fitted_manifolds(self).project(pixels.rows, effort, pixels.counted, uncertainty)

    @property
    def symmetry_(self) -> list[Symmetry]:
        """Turns and mirrors that leave each pattern as it is."""
        check_is_fitted(self)
        return learned_symmetries(self)
