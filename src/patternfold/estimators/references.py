"""Where `PATS` starts, and which image its pattern stands like."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold._validation import as_floats
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.effort import EFFORTS
from patternfold.learning.problem import Problem
from patternfold.learning.project.locate import locate
from patternfold.learning.state import State
from patternfold.model.pattern import Pattern


def reference_of(
    estimator: Any, problem: Problem, rows: np.ndarray, inverse: np.ndarray, amplitude: Amplitude
) -> Any:
    """Return where to start: a name, an image, a pattern, or the state of the last fit."""
    if estimator.warm_start and hasattr(estimator, "pattern_"):
        last = amplitude.lowered_pattern(estimator.pattern_)
        return _last_state(estimator, last, problem, inverse)
    asked = asked_reference(estimator, len(rows), rows.dtype, amplitude)
    if not isinstance(asked, int):
        return asked
    return int(inverse[asked]) if inverse[asked] >= 0 else amplitude.lowered(rows[asked])


def asked_reference(
    estimator: Any, n_images: int, dtype: np.dtype, amplitude: Amplitude
) -> str | int | np.ndarray | Pattern:
    """Return the reference asked for: a name, an index, or an image or pattern, in our unit."""
    reference = estimator.reference
    if isinstance(reference, str):
        return reference
    if isinstance(reference, Pattern):
        return amplitude.lowered_pattern(reference)
    if np.ndim(reference) == 0:
        index = int(np.asarray(reference))
        if not 0 <= index < n_images:
            raise ValueError(f"reference={index} is not an index of {n_images} images.")
        return index
    return amplitude.lowered(_reference_image(estimator, dtype))


def anchor_of(estimator: Any, rows: np.ndarray, inverse: np.ndarray) -> int | None:
    """Return the image to learn from that is the reference, if one of them was given."""
    if isinstance(estimator.reference, str | Pattern):
        return None
    if np.ndim(estimator.reference) == 0:
        place = int(inverse[int(np.asarray(estimator.reference))])
        return place if place >= 0 else None
    # Pixels that do not count are 0 in the rows.
    image = np.nan_to_num(_reference_image(estimator, rows.dtype))
    same = (rows == image).all(axis=1) & (inverse >= 0)
    return int(inverse[np.argmax(same)]) if same.any() else None


def _reference_image(estimator: Any, dtype: np.dtype) -> np.ndarray:
    """Return the image to start from."""
    image = as_floats("reference", estimator.reference).astype(dtype)
    if image.size != estimator.n_features_in_:
        raise ValueError(
            f"reference has shape {image.shape}; the images have {estimator.image_shape_}."
        )
    return image.reshape(-1)


def _last_state(estimator: Any, pattern: Pattern, problem: Problem, inverse: np.ndarray) -> State:
    """Return the last pattern with its λ for the same images, or found anew for others."""
    family, images = problem.transformation, problem.observations
    if len(estimator.parameters_) == len(inverse) and (inverse >= 0).all():
        lam = np.empty((len(images), family.parameters.dim), images.dtype)
        lam[inverse] = family.parameters.put_inside(estimator.parameters_)
    else:
        lam = locate(images, [pattern], family, EFFORTS["normal"]).lam[:, 0]
    return State(pattern, lam, problem.error(pattern, lam))
