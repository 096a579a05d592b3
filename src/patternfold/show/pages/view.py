"""The parts of a fitted model that pages show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation


@dataclass(frozen=True)
class View:
    """The parts of a fitted model that pages show: one pattern, or one per class."""

    patterns: Sequence[Pattern]
    labels: Sequence[str]
    error_paths: Sequence[np.ndarray]
    transformation: AbstractTransformation
    image_shape: tuple[int, int]


def view_of(model: Any) -> View:
    """Look at a fitted estimator: one pattern, or one per class."""
    check_is_fitted(model)
    if hasattr(model, "pattern_"):
        parts = [model.pattern_], [""], [model.error_path_]
        return View(*parts, model.transformation_, model.image_shape_)
    holder = getattr(model, "views_", model)
    labels = [str(label) for label in model.classes_]
    paths = [np.empty(0)] * len(labels)
    return View(holder.patterns_, labels, paths, holder.transformation_, model.image_shape_)
