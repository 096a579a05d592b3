"""Classifiers by the nearest manifold whose patterns come from aligned images."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from patternfold.baselines.matching_pursuit import PursuitEstimator, mean_pattern
from patternfold.baselines.pursuit import class_means, pursue, separating_energy, shared_energy
from patternfold.estimators.images import as_targets, rows_of
from patternfold.learning.fitted import fitted_manifolds
from patternfold.model.grid import Grid
from patternfold.model.mothers import AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.model.units import Bound

Model = TypeVar("Model")


class ManifoldClassifier(ClassifierMixin, PursuitEstimator):
    """What both classifiers share: options, and the rule of the nearest manifold."""

    classes_: np.ndarray
    patterns_: list[Pattern]

    def __init__(
        self,
        n_atoms: int = 12,
        *,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        mother: str | AbstractMother = "gaussian",
        step: float = 1.0,
        n_widths: int = 5,
        n_angles: int = 8,
        image_shape: tuple[int, int] | None = None,
    ):
        super().__init__(
            n_atoms,
            mother=mother,
            step=step,
            n_widths=n_widths,
            n_angles=n_angles,
            image_shape=image_shape,
        )
        self.transformation = transformation
        self.bounds = bounds

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the manifold nearest to each image, aligned or not."""
        distances = self.distances(X)
        return self.classes_[distances.argmin(axis=1)]

    def distances(self, X: Any) -> np.ndarray:
        """Return d(u, M^m), shape (N, M)."""
        check_is_fitted(self)
        return fitted_manifolds(self).project(rows_of(self, X, reset=False), "quick").distances

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that its clouds of points, which are no images, suit it badly."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _start(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check what `fit` was given and return rows of pixels and labels 0 ... M−1."""
        rows = rows_of(self, X, reset=True)
        labels = as_targets(self, y, len(rows))
        family = as_transformation(self.transformation)
        self.transformation_ = family.with_bounds(self.bounds or {}, Grid(*self.image_shape_).pixel)
        return rows, labels


class SimultaneousMatchingPursuitClassifier(ManifoldClassifier):
    """Learn each class's pattern from aligned images by SMP; classify by the nearest manifold.

    Parameters
    ----------
    n_atoms : int, default=12
        Number of atoms K of each class.
    transformation, bounds
        How the images to be classified are transformed, as in `patternfold.PATS`.
    mother, step, n_widths, n_angles, image_shape
        As in `MatchingPursuit`.

    Attributes
    ----------
    patterns_ : list of Pattern
        p^m, in the order of ``classes_``; see `with_first_atoms`.
    classes_ : array
        Class labels.
    image_shape_, transformation_, n_features_in_
        As in `patternfold.PATS`.
    """

    def fit(self, X: Any, y: Any) -> SimultaneousMatchingPursuitClassifier:
        """Choose the atoms of every class from aligned images."""
        rows, labels = self._start(X, y)
        dictionary = self._dictionary()
        self.patterns_ = []
        for m in range(len(self.classes_)):
            pursued = pursue(dictionary, rows[labels == m], self.n_atoms, shared_energy)
            self.patterns_.append(mean_pattern(dictionary, pursued))
        return self


class SupervisedAtomSelection(ManifoldClassifier):
    r"""Learn the patterns of aligned images with atoms that separate the classes, SAS.

    All classes share their atoms. Each is the one with the largest

    .. math:: \sum_i c_i^2 + λ (B - W), \quad c_i = ⟨r_i, φ⟩,

    where B and W are the scatters of the coefficients between and within classes. The pattern of
    a class weighs the atoms with its average coefficients; images are classified by the nearest
    manifold.

    Parameters
    ----------
    n_atoms : int, default=12
        Number of atoms K.
    separation : float, default=2
        λ, the weight of class separability.
    transformation, bounds, mother, step, n_widths, n_angles, image_shape
        As in `SimultaneousMatchingPursuitClassifier`.

    Attributes
    ----------
    patterns_, classes_, image_shape_, transformation_, n_features_in_
        As in `SimultaneousMatchingPursuitClassifier`.

    References
    ----------
    E. Kokiopoulou and P. Frossard, Semantic coding by supervised dimensionality reduction, IEEE
    Transactions on Multimedia, 2008. The criterion above combines approximation and separability
    as that paper does; its exact form is ours.
    """

    def __init__(
        self,
        n_atoms: int = 12,
        *,
        separation: float = 2.0,
        transformation: str | AbstractTransformation = "rotation-translation-scaling",
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        mother: str | AbstractMother = "gaussian",
        step: float = 1.0,
        n_widths: int = 5,
        n_angles: int = 8,
        image_shape: tuple[int, int] | None = None,
    ):
        super().__init__(
            n_atoms,
            transformation=transformation,
            bounds=bounds,
            mother=mother,
            step=step,
            n_widths=n_widths,
            n_angles=n_angles,
            image_shape=image_shape,
        )
        self.separation = separation

    def fit(self, X: Any, y: Any) -> SupervisedAtomSelection:
        """Choose atoms for aligned images of all classes."""
        if not self.separation >= 0:
            raise ValueError(f"separation={self.separation!r} must not be negative.")
        rows, labels = self._start(X, y)
        n_classes, dictionary = len(self.classes_), self._dictionary()
        merit = separating_energy(labels, n_classes, self.separation)
        pursued = pursue(dictionary, rows, self.n_atoms, merit)
        means = class_means(labels, n_classes).T @ pursued.coef
        self.patterns_ = [dictionary.pattern(mean, pursued.chosen) for mean in means]
        return self


def with_first_atoms(model: Model, n_atoms: int) -> Model:
    """Return a copy of a fitted classifier whose patterns have their first atoms only.

    For patterns that grow atom by atom, as those of SMP, SAS and ``JPATS.paper``, this is the
    classifier that a fit with fewer atoms gives.
    """
    shorter: Any = copy.copy(model)
    shorter.patterns_ = [pattern.take(slice(n_atoms)) for pattern in shorter.patterns_]
    return shorter
