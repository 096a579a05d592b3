"""Manifolds as patchworks of planes through neighbouring images."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.images import ImageEstimator, as_targets, rows_of
from patternfold.numerics.chunks import map_chunks


class LocallyLinearApproximation(ImageEstimator):
    """Distance of images to the plane through their nearest neighbours.

    A manifold of dimension d is locally a plane through d + 1 of its points; the distance tells
    how well the training images sample it.

    Parameters
    ----------
    n_neighbors : int, default=6
        d + 1; the transformations of the paper have d = 5.
    image_shape : (H, W), optional
        Shape of flattened images.

    Attributes
    ----------
    distances_ : array of shape (N,)
        Distance of each training image to the plane through the others next to it.
    error_ : float
        Σ d² / Σ‖u_i‖².
    image_shape_, n_features_in_
        As in `patternfold.PATS`.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.linspace(0, 1, 5)[:, None] * np.array([[1.0, 2.0, 3.0]])
    >>> bool(LocallyLinearApproximation(n_neighbors=2).fit(line).error_ < 1e-12)
    True
    """

    def __init__(self, n_neighbors: int = 6, *, image_shape: tuple[int, int] | None = None):
        self.n_neighbors = n_neighbors
        self.image_shape = image_shape

    def fit(self, X: Any, y: Any = None) -> LocallyLinearApproximation:
        """Find the neighbours of each image among the others."""
        rows = rows_of(self, X, reset=True)
        require_neighbors(self.n_neighbors, len(rows) - 1, f"others (n_samples={len(rows)})")
        self.neighbours_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(rows)
        self.images_ = rows
        # Asked without images, the search leaves each one out of its own neighbours.
        index = self.neighbours_.kneighbors(return_distance=False)
        self.distances_ = plane_distances(rows, rows, index)
        energy = float((rows.astype(np.float64) ** 2).sum())
        self.error_ = float((self.distances_**2).sum()) / energy if energy else 0.0
        return self

    def distances(self, X: Any) -> np.ndarray:
        """Return the distances of new images to the planes through their neighbours, shape (N,)."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        index = self.neighbours_.kneighbors(rows, return_distance=False)
        return plane_distances(rows, self.images_, index)


class LocallyLinearClassifier(ClassifierMixin, ImageEstimator):
    """Classify by the distance to the plane through the nearest neighbours of each class, LLA.

    Parameters
    ----------
    n_neighbors, image_shape
        As in `LocallyLinearApproximation`.

    Attributes
    ----------
    classes_ : array
        Class labels.
    image_shape_, n_features_in_
        As in `patternfold.PATS`.
    """

    classes_: np.ndarray

    def __init__(self, n_neighbors: int = 6, *, image_shape: tuple[int, int] | None = None):
        self.n_neighbors = n_neighbors
        self.image_shape = image_shape

    def fit(self, X: Any, y: Any) -> LocallyLinearClassifier:
        """Keep the images of every class."""
        rows = rows_of(self, X, reset=True)
        labels = as_targets(self, y, len(rows))
        self.images_ = [rows[labels == m] for m in range(len(self.classes_))]
        fewest = min(len(images) for images in self.images_)
        require_neighbors(self.n_neighbors, fewest, "images in the smallest class")
        self.neighbours_ = [
            NearestNeighbors(n_neighbors=self.n_neighbors).fit(images) for images in self.images_
        ]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the nearest plane."""
        distances = self.distances(X)
        return self.classes_[distances.argmin(axis=1)]

    def distances(self, X: Any) -> np.ndarray:
        """Return the distances to the planes of all classes, shape (N, M)."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        columns = [
            plane_distances(rows, images, search.kneighbors(rows, return_distance=False))
            for images, search in zip(self.images_, self.neighbours_, strict=True)
        ]
        return np.stack(columns, axis=1)


def plane_distances(rows: np.ndarray, images: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Distances of rows (N, n) to the affine planes through images[index], index (N, k)."""

    def on_chunk(rows: np.ndarray, index: np.ndarray) -> np.ndarray:
        near = images[index].astype(np.float64)
        along, away = near[:, 1:] - near[:, :1], rows - near[:, 0]
        gram = along @ along.transpose(0, 2, 1)
        # Neighbours on a line, or equal ones, make the Gram matrix singular.
        inverse = np.linalg.pinv(gram, hermitian=True)
        inner = np.einsum("nkp,np->nk", along, away)
        squares = (away**2).sum(axis=1) - np.einsum("nj,njk,nk->n", inner, inverse, inner)
        return np.sqrt(np.maximum(squares, 0.0))

    bytes_per_row = 2 * 8 * images.shape[1] * index.shape[1]
    return map_chunks(on_chunk, (rows, index), bytes_per_row)[0]


def require_neighbors(n_neighbors: Any, available: int, what: str) -> None:
    """Refuse a number of neighbours that there are not."""
    if not isinstance(n_neighbors, (int, np.integer)) or n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors!r} must be an integer of at least 1.")
    if n_neighbors > available:
        raise ValueError(
            f"n_neighbors={n_neighbors} but there are only {available} {what}; ask for fewer, or "
            "give more images."
        )
