"""Classifiers on stacks: patterns from all images of a class, decisions from a part of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold._validation import as_floats
from patternfold.estimators.images import as_weights
from patternfold.estimators.joint_images import calibrated_threshold
from patternfold.estimators.joint_options import joint_settings
from patternfold.estimators.options import family_of, lighting_of
from patternfold.estimators.streams import remember_shape
from patternfold.files.stacks import Stack, as_stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.codecs import PatternsCodec
from patternfold.learning.journal import recorded
from patternfold.learning.state import STOPPED
from patternfold.learning.stream.cluster import active_place
from patternfold.learning.stream.joint import JointSettling
from patternfold.learning.stream.learn import Source
from patternfold.learning.stream.stack import Subset
from patternfold.learning.stream.sweep import Model
from patternfold.learning.validation import best_of
from patternfold.model.grid import Grid
from patternfold.numerics.precision import precision

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


def fit_jointly(estimator: Any, stack: Stack, y: Any, sample_weight: Any, sample_mask: Any) -> None:
    """Learn `JPATS` from a part of a stack, correct it on all images, and project all of them."""
    labels = np.asarray(y)
    if len(labels) != len(stack):
        raise ValueError(f"y has {len(labels)} labels for {len(stack)} images.")
    weights = as_weights(sample_weight, len(stack))
    index = spread_over_classes(labels, JOINTLY)
    part, masks = stack.take(index), masks_of(sample_mask, index)
    estimator.fit(part, labels[index], weights[index], masks)
    if len(index) < len(stack) and _correctable(estimator):
        model = _model(estimator, stack, part)
        source = Source(stack, model, weights, sample_mask, active_place())
        with precision(stack.floats):
            _correct_jointly(estimator, source, np.searchsorted(estimator.classes_, labels))
    found = estimator.project(stack, sample_mask=sample_mask)
    estimator.cross_parameters_ = found.parameters
    if estimator.outlier_threshold == "calibrate":
        estimator.outlier_threshold_ = calibrated_threshold(found.distances.min(axis=1))


def _correctable(estimator: Any) -> bool:
    """Whether patterns are corrected jointly at all, by squares, and nobody has asked to stop.

    Classes of several patterns stay as they were learned.
    """
    plain = not estimator.loss_.reweights and estimator.prior_ is None
    one_each = len(estimator.patterns_) == len(estimator.classes_)
    asked = estimator.n_tuning > 0 and estimator.refit == "all"
    return asked and plain and one_each and estimator.stop_reason_ not in STOPPED


def _model(estimator: Any, stack: Stack, part: np.ndarray) -> Model:
    rows = as_floats("X", part, finite=False).reshape(len(part), -1)
    rows = np.where(np.isfinite(rows), rows, 0)
    return Model(
        Grid(*estimator.image_shape_),
        estimator.transformation_,
        family_of(estimator),
        lighting_of(estimator),
        Amplitude.of_images("X", rows, always=True),
        block=stack.block,
    )


def _correct_jointly(estimator: Any, source: Source, labels: np.ndarray) -> None:
    """Correct the patterns of all classes on all images; α is that of the learned part."""
    amplitude, settings = source.model.amplitude, joint_settings(estimator, 0)
    if not settings.joint:
        return
    alpha = best_of(estimator.cv_trials_).alpha if estimator.cv_trials_ else settings.alpha
    patterns = tuple(amplitude.lowered_pattern(p) for p in estimator.patterns_)
    settle = JointSettling(source, labels, settings.alone.effort)
    codec = PatternsCodec(patterns[0].take(np.zeros(patterns[0].n_atoms, bool)))
    corrected = recorded("joint passes", codec, settle, patterns, alpha)
    estimator.patterns_ = [amplitude.raised_pattern(p) for p in corrected]
