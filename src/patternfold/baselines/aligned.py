"""scikit-learn's classifiers as the paper uses them on aligned images."""

from __future__ import annotations

from typing import Any

from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

VARIANCE = 0.95
"""Share of the variance that is kept: with fewer images than pixels covariances are singular."""


def discriminant_analyses() -> dict[str, Any]:
    """Linear and quadratic discriminant analysis on principal components of rows of pixels.

    The paper reports the better one of both on the test images, which flatters it.
    """
    return {
        "linear": make_pipeline(PCA(VARIANCE), LinearDiscriminantAnalysis()),
        "quadratic": make_pipeline(
            PCA(VARIANCE, whiten=True),
            QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
        ),
    }


def neural_network(random_state: Any = None, n_hidden: int = 100) -> Any:
    """A feed-forward network with one hidden layer, trained by backpropagation."""
    network = MLPClassifier((n_hidden,), max_iter=200, tol=1e-3, random_state=random_state)
    return make_pipeline(StandardScaler(), network)
