"""Bounds of scales from the pictures: how much the sizes of what they show differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

NAMES = ("s", "sx", "sy")
"""Parameters that are scales."""

MARGIN = 1.5
"""By how much bounds are wider than the sizes seen: these are rough, and shapes differ, too."""

NARROWEST, WIDEST = 1.7, 5.0
"""Factors, up and down, that bounds allow at least and at most. Noise hides how sizes differ."""


def scale_bounds(
    images: np.ndarray,
    mask: np.ndarray | None,
    labels: Sequence[str] | None,
    parameters: Sequence[str],
) -> dict[str, tuple[float, float]]:
    """Return bounds of the scales among some parameters, for images on a dark background.

    Sizes are compared with the middle one of their class, whose pattern has scale 1 on average.
    """
    ratios = sizes(images, mask)
    for label in set(labels or ()):
        own = np.array([other == label for other in labels or ()])
        ratios[own] /= _middle(ratios[own])
    if not labels:
        ratios /= _middle(ratios)
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    low, high = np.quantile(known, [0.02, 0.98]) if len(known) else (1.0, 1.0)
    up = float(np.clip(MARGIN * high, NARROWEST, WIDEST))
    down = float(np.clip(MARGIN / low, NARROWEST, WIDEST))
    pair = (float(f"{1 / down:.2g}"), float(f"{up:.2g}"))
    return {name: pair for name in NAMES if name in parameters}


def sizes(images: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return the radius of gyration of each image's squared pixels; NaN for blank ones."""
    weights = images.astype(np.float64) ** 2
    if mask is not None:
        weights = np.where(mask, weights, 0)
    total = weights.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        square = sum(_variance(weights.sum(axis=axis), total) for axis in (1, 2))
    return np.sqrt(square)


def _variance(profile: np.ndarray, total: np.ndarray) -> Any:
    """Variance of the place along one axis, given the weights along it."""
    place = np.arange(profile.shape[1])
    mean = profile @ place / total
    return profile @ place**2 / total - mean**2


def _middle(values: np.ndarray) -> float:
    known = values[np.isfinite(values) & (values > 0)]
    return float(np.median(known)) if len(known) else 1.0
