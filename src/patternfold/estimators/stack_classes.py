"""Classifiers on stacks: patterns from all images of a class, decisions from a part of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold.estimators.streams import remember_shape
from patternfold.files.stacks import Stack, as_stack
from patternfold.learning.stream.stack import Subset

JOINTLY, DECIDING = 4096, 20_000
"""Most images from which classes are learned jointly, and from which a classifier on views is: both
take time and memory that grow with more than their number."""


@dataclass(frozen=True)
class StackPixels:
    """A stack in place of `Pixels`."""

    rows: Stack
    counted: Any = None

    def take(self, index: Any) -> tuple[Stack, Any]:
        """Some of the images, and which of their pixels count."""
        chosen = np.flatnonzero(index) if np.asarray(index).dtype == bool else np.sort(index)
        return Subset(self.rows, chosen), masks_of(self.counted, chosen)


def stack_pixels(estimator: Any, X: Any, sample_mask: Any) -> StackPixels | None:
    """Return a stack to learn from, whose shape the estimator remembers; None for arrays."""
    stack = as_stack(X)
    if stack is None:
        return None
    remember_shape(estimator, stack)
    return StackPixels(stack, sample_mask)


def masks_of(masks: Any, index: np.ndarray) -> Any:
    """Masks of some images; one for all stays so."""
    if masks is None or np.ndim(masks) < 3:
        return masks
    return np.concatenate([np.asarray(masks[int(i) : int(i) + 1]) for i in index])


def spread_over_classes(labels: np.ndarray, most: int) -> np.ndarray:
    """At most so many images, spread over each class in proportion, in ascending order."""
    if len(labels) <= most:
        return np.arange(len(labels))
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        count = max(1, round(most * len(own) / len(labels)))
        chosen.append(own[np.linspace(0, len(own) - 1, count).astype(int)])
    return np.unique(np.concatenate(chosen))


def fit_jointly(
    estimator: Any, stack: Stack, y: Any, sample_weight: Any, sample_mask: Any, rejected: float
) -> None:
    """Learn `JPATS` from a part of a stack, and project all of its images."""
    labels = np.asarray(y)
    if len(labels) != len(stack):
        raise ValueError(f"y has {len(labels)} labels for {len(stack)} images.")
    index = spread_over_classes(labels, JOINTLY)
    weights = None if sample_weight is None else np.asarray(sample_weight)[index]
    estimator.fit(stack.take(index), labels[index], weights, masks_of(sample_mask, index))
    found = estimator.project(stack, sample_mask=sample_mask)
    estimator.cross_parameters_ = found.parameters
    if estimator.outlier_threshold == "calibrate":
        nearest = found.distances.min(axis=1)
        estimator.outlier_threshold_ = float(np.quantile(nearest, 1 - rejected))
