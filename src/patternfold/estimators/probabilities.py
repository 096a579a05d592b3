"""Probabilities of classes: a softmax of the decisions, at a temperature found on other images."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from patternfold._validation import unknown_name
from patternfold.learning.effort import Effort

RANGE = 1e4
"""Least and greatest temperature are that far from the width of the decisions."""


def _is_calibrated(model: Any) -> bool:
    if getattr(model, "temperature_", None) is None:
        raise AttributeError("There are no probabilities before calibrate(X, y) on other images.")
    return True


class ProbabilityMixin:
    """Gives a classifier ``calibrate`` and, after it, ``predict_proba``.

    Decisions of images that were learned from are surer than those of others, so that probabilities
    need images that were not.
    """

    classes_: np.ndarray
    decision_function: Any
    temperature_: float | None

    def calibrate(
        self, X: Any, y: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> Any:
        """Find the temperature of `predict_proba` on images that were not learned from.

        Parameters
        ----------
        X : array of shape (N, H, W) or (N, H·W)
            Images.
        y : array of shape (N,)
            Their classes.
        effort, sample_mask
            Those of `patternfold.project`.
        """
        y = column_or_1d(y)
        for label in np.setdiff1d(y, self.classes_):
            raise unknown_name("y", label, [str(c) for c in self.classes_])
        decisions = _per_class(self.decision_function(X, effort, sample_mask))
        self.temperature_ = fit_temperature(decisions, np.searchsorted(self.classes_, y))
        return self

    @available_if(_is_calibrated)
    def predict_proba(
        self, X: Any, effort: str | Effort = "quick", sample_mask: Any = None
    ) -> np.ndarray:
        """Return the probability of each class, shape (N, M): softmax of decisions / temperature.

        An image that fits no class has the probabilities that tell these classes apart.
        """
        decisions = _per_class(self.decision_function(X, effort, sample_mask))
        return softmax(decisions / self.temperature_, axis=1)


def _per_class(decisions: np.ndarray) -> np.ndarray:
    """Return one decision per class; that between two classes is shared among both."""
    decisions = np.asarray(decisions, np.float64)
    return np.stack([-decisions, decisions], axis=1) / 2 if decisions.ndim == 1 else decisions


def fit_temperature(decisions: np.ndarray, labels: np.ndarray) -> float:
    """Return the temperature at which the log-loss is least.

    Targets are Platt's, (n + 1) / (n + 2) for n images of a class: a few images that are all right
    do not make anything certain.
    """
    n_images, n_classes = decisions.shape
    counts = np.bincount(labels, minlength=n_classes)[labels]
    sure = (counts + 1) / (counts + 2)
    targets = np.repeat(((1 - sure) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    targets[np.arange(n_images), labels] = sure
    width = max(float(np.std(decisions - decisions.mean(axis=1, keepdims=True))), 1e-300)

    def loss(power: float) -> float:
        return -float((targets * log_softmax(decisions / (width * 10**power), axis=1)).sum())

    bound = np.log10(RANGE)
    found: Any = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
    return width * 10 ** float(found.x)
