"""Supervised locally linear embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted

from patternfold.baselines.locally_linear import require_neighbors
from patternfold.estimators.images import ImageEstimator, as_targets, rows_of

REGULARISATION = 1e-3
"""Share of the local Gram matrix's trace that is added to its diagonal."""


class SupervisedLLE(TransformerMixin, ImageEstimator):
    r"""Embed images in few dimensions, neighbours of the same class first: SLLE.

    Distances between images of different classes are raised by α times the largest distance
    before neighbours are chosen; with α = 0 this is locally linear embedding, with α = 1 only
    images of the same class are neighbours. New images, whose class is not known, are placed by
    the weights that reconstruct them from their nearest neighbours.

    Parameters
    ----------
    n_components : int, default=10
        Dimensions of the embedding.
    n_neighbors : int, default=12
        Neighbours of each image.
    alpha : float between 0 and 1, default=0.5
        α.
    image_shape : (H, W), optional
        Shape of flattened images.

    Attributes
    ----------
    embedding_ : array of shape (N, n_components)
        Where the training images are.
    classes_ : array
        Class labels.
    image_shape_, n_features_in_
        As in `patternfold.PATS`.

    References
    ----------
    D. de Ridder, O. Kouropteva, O. Okun, M. Pietikäinen and R. Duin, Supervised locally linear
    embedding, ICANN, 2003.
    """

    classes_: np.ndarray

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_neighbors: int = 12,
        alpha: float = 0.5,
        image_shape: tuple[int, int] | None = None,
    ):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.image_shape = image_shape

    def fit(self, X: Any, y: Any) -> SupervisedLLE:
        """Embed the training images."""
        rows = rows_of(self, X, reset=True).astype(np.float64)
        labels = as_targets(self, y, len(rows))
        self._check(len(rows))
        distances = pairwise_distances(rows)
        apart = labels[:, None] != labels[None]
        raised = distances + self.alpha * distances.max() * apart
        np.fill_diagonal(raised, np.inf)
        index = np.argsort(raised, axis=1, kind="stable")[:, : self.n_neighbors]
        self.images_ = rows
        self.embedding_ = bottom_vectors(
            index, reconstruction_weights(rows, rows, index), self.n_components
        )
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Place new images by their neighbours, shape (N, n_components)."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False).astype(np.float64)
        index = np.argsort(pairwise_distances(rows, self.images_), axis=1, kind="stable")
        index = index[:, : self.n_neighbors]
        weights = reconstruction_weights(rows, self.images_, index)
        return np.einsum("nk,nkd->nd", weights, self.embedding_[index])

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that labels are needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _check(self, n: int) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha!r} must lie between 0 and 1.")
        require_neighbors(self.n_neighbors, n - 1, f"others (n_samples={n})")
        if not isinstance(self.n_components, (int, np.integer)) or self.n_components < 1:
            raise ValueError(f"n_components={self.n_components!r} must be an integer above 0.")
        if self.n_components >= n:
            raise ValueError(
                f"n_components={self.n_components} must be below the number of images, {n}."
            )


class SupervisedLLEClassifier(ClassifierMixin, ImageEstimator):
    """Classify by the nearest neighbour in the embedding of `SupervisedLLE`.

    Parameters
    ----------
    n_components, n_neighbors, alpha, image_shape
        As in `SupervisedLLE`.

    Attributes
    ----------
    embedding_ : SupervisedLLE
        The fitted embedding.
    classes_ : array
        Class labels.
    image_shape_, n_features_in_
        As in `patternfold.PATS`.
    """

    classes_: np.ndarray

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_neighbors: int = 12,
        alpha: float = 0.5,
        image_shape: tuple[int, int] | None = None,
    ):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.image_shape = image_shape

    def fit(self, X: Any, y: Any) -> SupervisedLLEClassifier:
        """Embed the training images and remember their classes."""
        rows = rows_of(self, X, reset=True)
        labels = as_targets(self, y, len(rows))
        targets = self.classes_[labels]
        options: dict[str, Any] = self.get_params() | {"image_shape": self.image_shape_}
        self.embedding_ = SupervisedLLE(**options).fit(rows, targets)
        self.nearest_ = KNeighborsClassifier(1).fit(self.embedding_.embedding_, targets)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the nearest training image in the embedding."""
        check_is_fitted(self)
        placed = self.embedding_.transform(rows_of(self, X, reset=False))
        return self.nearest_.predict(placed)


def reconstruction_weights(rows: np.ndarray, images: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Weights w of sum 1 that bring Σ_k w_k u_k nearest to each row, shape (N, k)."""
    k = index.shape[1]
    weights = np.empty(index.shape)
    for i, near in enumerate(index):
        away = images[near] - rows[i]
        gram = away @ away.T
        trace = np.trace(gram)
        gram[np.diag_indices(k)] += REGULARISATION * (trace if trace > 0 else 1.0)
        found = scipy.linalg.solve(gram, np.ones(k), assume_a="pos")
        weights[i] = found / found.sum()
    return weights


def bottom_vectors(index: np.ndarray, weights: np.ndarray, n_components: int) -> np.ndarray:
    """Unit vectors with the smallest ‖(I − W) y‖, orthogonal to each other and to constants."""
    n = len(index)
    misfit = np.eye(n)
    np.put_along_axis(misfit, index, -weights, axis=1)
    cost = misfit.T @ misfit
    # Constants cost nothing; made expensive, they come last even where classes are not connected.
    cost += max(np.trace(cost), 1.0) / n
    return scipy.linalg.eigh(cost, subset_by_index=(0, n_components - 1))[1]
