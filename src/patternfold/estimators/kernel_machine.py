"""Decisions of a fitted support vector machine as two matrix products.

scikit-learn's own go image by image and support vector by support vector on one core; with the
thousands of features that aligned views have, they would take longer than finding the views.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.learning.chunk import Chunk
from patternfold.learning.observations import Observations
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

MOST_AT_ONCE = 8192
"""Most rows whose kernel is worked out as a whole, in 512 MB; that of more comes bit by bit."""


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """What a fitted ``SVC`` with Gaussian kernel decides by, and nothing of how it was fitted.

    Attributes
    ----------
    classes_ : array of shape (M,)
        Class labels.
    support_vectors_ : array of shape (V, f)
        Rows of features, those of a class together, in the order of the classes.
    n_support_ : array of shape (M,)
        Support vectors of each class.
    dual_coef_ : array of shape (M − 1, V)
        Their weights in the decisions between their class and each of the others.
    intercept_ : array of shape (M (M − 1) / 2,)
        Of the decision of each pair of classes.
    gamma : float
        Of the kernel exp(−γ‖x − v‖²).
    C : float
        Bound of the weights while fitting, for the record.

    Notes
    -----
    Arrays are as in ``SVC``, which keeps a two-class machine's numbers with the opposite sign.
    """

    classes_: np.ndarray
    support_vectors_: np.ndarray
    n_support_: np.ndarray
    dual_coef_: np.ndarray
    intercept_: np.ndarray
    gamma: float
    C: float

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        m, v = len(self.classes_), len(self.support_vectors_)
        shapes = {
            "support_vectors": (self.support_vectors_, (v, *self.support_vectors_.shape[1:2])),
            "n_support": (self.n_support_, (m,)),
            "dual_coef": (self.dual_coef_, (m - 1, v)),
            "intercept": (self.intercept_, (m * (m - 1) // 2,)),
        }
        for name, (array, shape) in shapes.items():
            if array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}; expected {shape}.")
        if int(self.n_support_.sum()) != v or (self.n_support_ < 1).any():
            raise ValueError(f"n_support={self.n_support_.tolist()} does not add up to {v}.")
        for name in ("gamma", "C"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name}={getattr(self, name)} must be positive and finite.")

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return the class that wins most pairs."""
        decisions = self._pair_decisions(features)
        votes = np.zeros((len(features), len(self.classes_)), np.int64)
        for k, (i, j) in enumerate(self._pairs):
            first = decisions[:, k] > 0
            votes[:, i] += first
            votes[:, j] += ~first
        return self.classes_[votes.argmax(axis=1)]

    def decision_function(self, features: np.ndarray) -> np.ndarray:
        """Return what ``SVC.decision_function`` does: a value per image, or one per class.

        With two classes it is positive for the second. With more, each class has its votes, and a
        third of a vote at most for how clearly its pairs were decided.
        """
        decisions = self._pair_decisions(features.astype(np.float64))
        if len(self.classes_) == 2:
            return -decisions[:, 0]
        votes = np.zeros((len(features), len(self.classes_)))
        sums = np.zeros_like(votes)
        for k, (i, j) in enumerate(self._pairs):
            first = decisions[:, k] >= 0
            votes[:, i] += first
            votes[:, j] += ~first
            sums[:, i] += decisions[:, k]
            sums[:, j] -= decisions[:, k]
        return votes + sums / (3 * (np.abs(sums) + 1))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.classes_)), 2))

    def _pair_decisions(self, features: np.ndarray) -> np.ndarray:
        """Decision of every pair, shape (N, pairs): positive for its first class."""
        dtype = features.dtype
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        with precision(dtype):
            rows = Observations.put(features, Grid(1, features.shape[1]))
            known = {"weights": self._pair_weights().astype(dtype)}
            known |= _kernel_of(self.support_vectors_.astype(dtype), self.gamma)
            stage = partial(_decisions, **known)
            return sign * (rows.map(stage) + self.intercept_.astype(dtype))

    def _pair_weights(self) -> np.ndarray:
        """Weights (vectors, pairs) of the support vectors in each pair's decision."""
        ends = np.cumsum(self.n_support_)
        begins = ends - self.n_support_
        dual, pairs = self.dual_coef_, self._pairs
        weights = np.zeros((dual.shape[1], len(pairs)))
        for k, (i, j) in enumerate(pairs):
            weights[begins[i] : ends[i], k] = dual[j - 1, begins[i] : ends[i]]
            weights[begins[j] : ends[j], k] = dual[i, begins[j] : ends[j]]
        return weights


def as_kernel_machine(classifier: Any) -> KernelMachine | None:
    """Return what a fitted classifier decides by if it is a plain SVC with Gaussian kernel."""
    if isinstance(classifier, KernelMachine):
        return classifier
    from sklearn.svm import SVC  # late: those who learn patterns need not wait for it

    plain = type(classifier) is SVC and classifier.kernel == "rbf" and not classifier.break_ties
    if not plain or not isinstance(classifier.support_vectors_, np.ndarray):
        return None
    names = ("classes_", "support_vectors_", "n_support_", "dual_coef_", "intercept_")
    arrays = {name: np.asarray(getattr(classifier, name)) for name in names}
    return KernelMachine(**arrays, gamma=float(classifier._gamma), C=float(classifier.C))


def fit_kernel_machine(features: np.ndarray, targets: np.ndarray, C: float) -> KernelMachine:
    """Fit ``SVC(C=C)``; the kernel's values come from one matrix product."""
    from sklearn.svm import SVC  # late: those who learn patterns need not wait for it

    if len(features) > MOST_AT_ONCE:
        machine = as_kernel_machine(SVC(C=C).fit(features, targets))
        assert machine is not None
        return machine
    variance = float(features.var(dtype=np.float64))
    gamma = 1 / (features.shape[1] * variance) if variance > 0 else 1.0
    with precision(features.dtype):
        stage = partial(_kernel, **_kernel_of(features, gamma))
        kernel = Observations.put(features, Grid(1, features.shape[1])).map(stage)
    fitted: Any = SVC(C=C, kernel="precomputed").fit(kernel, targets)
    return KernelMachine(
        fitted.classes_,
        features[fitted.support_],
        fitted.n_support_,
        fitted.dual_coef_,
        fitted.intercept_,
        gamma,
        C,
    )


def _kernel_of(vectors: np.ndarray, gamma: float) -> dict[str, np.ndarray]:
    """What the kernel with some vectors takes, these about their middle.

    ‖x − v‖² is told by squares and products, of which little would be left far from the origin.
    """
    middle = vectors.mean(axis=0)
    return {
        "vectors": vectors - middle,
        "middle": middle,
        "gamma": np.asarray(gamma, vectors.dtype),
    }


@partial(compiled, hot=True)
def _kernel(
    chunk: Chunk,
    vectors: Float[Array, "v f"],
    middle: Float[Array, " f"],
    gamma: Float[Array, ""],
) -> Float[Array, "B v"]:
    """Values of each row's kernel with all vectors."""
    return _gaussian(chunk.images - middle[None], vectors, gamma)


@partial(compiled, hot=True)
def _decisions(
    chunk: Chunk,
    vectors: Float[Array, "v f"],
    middle: Float[Array, " f"],
    weights: Float[Array, "v p"],
    gamma: Float[Array, ""],
) -> Float[Array, "B p"]:
    """Σ_v weight exp(−γ‖x − v‖²) of each row, for every pair."""
    return _gaussian(chunk.images - middle[None], vectors, gamma) @ weights


def _gaussian(
    rows: Float[Array, "B f"], vectors: Float[Array, "v f"], gamma: Float[Array, ""]
) -> Float[Array, "B v"]:
    """exp(−γ‖x − v‖²)."""
    squares = (rows**2).sum(axis=1)[:, None] + (vectors**2).sum(axis=1)[None]
    return jnp.exp(-gamma * jnp.maximum(squares - 2 * rows @ vectors.T, 0))
