"""The symmetry of learned patterns, as far as their errors allow to tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.model.pattern import Pattern
from patternfold.model.symmetry import Symmetry, symmetry_of

LEAST, OF_ERROR, OF_NOISE = 0.004, 0.05, 20.0
"""Asymmetry that is allowed: a share of the energy in any case, since atoms only approximate; a
share of the pattern's error; and so many times what noise adds to a pattern on average."""

MOST = 0.1
"""Asymmetry that is never allowed."""


def tolerance_of(pattern: Pattern, error: float, n_images: int, n_pixels: int) -> float:
    """Share of a learned pattern's energy that may be asymmetric without meaning it.

    Fitting P parameters to N images of n pixels leaves noise of P/(N n) of that in the images in
    the pattern; its variance is at most the normalised error.
    """
    noise = pattern.gamma.size + pattern.n_atoms
    noise = noise / (max(n_images, 1) * n_pixels) * error / max(1 - error, 0.1)
    return float(min(LEAST + OF_ERROR * error + OF_NOISE * noise, MOST))


def learned_symmetry(model: Any) -> Symmetry:
    """Return the symmetry of the pattern of a fitted `PATS`."""
    error = float(model.error_path_[-1]) if len(model.error_path_) else 1.0
    return _symmetry(model, model.pattern_, error, len(model.parameters_))


def learned_symmetries(model: Any) -> list[Symmetry]:
    """Return the symmetry of each class of a fitted `JPATS`."""
    error = float(model.error_path_[-1, 1]) if len(model.error_path_) else 1.0
    n_images = len(model.cross_parameters_) // len(model.patterns_)
    return [_symmetry(model, pattern, error, n_images) for pattern in model.patterns_]


def _symmetry(model: Any, pattern: Pattern, error: float, n_images: int) -> Symmetry:
    n_pixels = int(np.prod(model.image_shape_))
    return symmetry_of(pattern, tolerance_of(pattern, error, n_images, n_pixels))
