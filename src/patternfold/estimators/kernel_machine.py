"""Predictions of a fitted support vector machine as two matrix products.

scikit-learn's own go image by image and support vector by support vector on one core; with the
thousands of features that aligned views have, they would take longer than finding the views.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.observations import Chunk, Observations
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision


def can_predict(classifier: Any) -> bool:
    """Tell whether the classifier is one that `predict` knows: a plain SVC with Gaussian kernel."""
    from sklearn.svm import SVC  # late: those who learn patterns need not wait for it

    return (
        type(classifier) is SVC
        and classifier.kernel == "rbf"
        and not classifier.break_ties
        and isinstance(classifier.support_vectors_, np.ndarray)
    )


def predict(classifier: Any, features: np.ndarray) -> np.ndarray:
    """Return what ``classifier.predict`` returns: the class that wins most pairs."""
    n_classes = len(classifier.classes_)
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    vectors = classifier.support_vectors_.astype(features.dtype)
    weights = _pair_weights(classifier, pairs).astype(features.dtype)
    # SVC keeps a two-class machine's numbers with the opposite sign.
    sign = -1.0 if n_classes == 2 else 1.0
    with precision(features.dtype):
        rows = Observations.put(features, Grid(1, features.shape[1]))
        stage = partial(
            _decisions,
            vectors=vectors,
            weights=weights,
            gamma=np.asarray(classifier._gamma, features.dtype),
        )
        decisions = sign * (rows.map(stage) + classifier.intercept_.astype(features.dtype))
    votes = np.zeros((len(features), n_classes), np.int64)
    for k, (i, j) in enumerate(pairs):
        first = decisions[:, k] > 0
        votes[:, i] += first
        votes[:, j] += ~first
    return classifier.classes_[votes.argmax(axis=1)]


def _pair_weights(classifier: Any, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Weights (vectors, pairs) of the support vectors in each pair's decision."""
    ends = np.cumsum(classifier.n_support_)
    begins = ends - classifier.n_support_
    dual = classifier.dual_coef_
    weights = np.zeros((dual.shape[1], len(pairs)))
    for k, (i, j) in enumerate(pairs):
        weights[begins[i] : ends[i], k] = dual[j - 1, begins[i] : ends[i]]
        weights[begins[j] : ends[j], k] = dual[i, begins[j] : ends[j]]
    return weights


@compiled
def _decisions(
    chunk: Chunk,
    vectors: Float[Array, "v f"],
    weights: Float[Array, "v p"],
    gamma: Float[Array, ""],
) -> Float[Array, "B p"]:
    """Σ_v weight exp(−γ‖x − v‖²) of each row, for every pair."""
    squares = (chunk.images**2).sum(axis=1)[:, None] + (vectors**2).sum(axis=1)[None]
    distances = jnp.maximum(squares - 2 * chunk.images @ vectors.T, 0)
    return jnp.exp(-gamma * distances) @ weights
