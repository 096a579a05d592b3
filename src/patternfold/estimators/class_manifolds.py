"""What estimators have in common that learn manifolds of classes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from patternfold.estimators.images import ImageEstimator
from patternfold.model.losses import SQUARES, AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation


class ClassManifolds(ImageEstimator):
    """An estimator that has learned one pattern, or several, of each class."""

    takes_missing: ClassVar[bool] = True

    classes_: np.ndarray
    patterns_: list[Pattern]
    pattern_labels_: np.ndarray
    transformation_: AbstractTransformation
    loss_: AbstractLoss = SQUARES
    prior_: list[Prior] | None = None
    stop_reason_: str
