"""Images far brighter than the pattern: projected in a unit of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from patternfold.learning.amplitude import Amplitude
from patternfold.learning.project.found import Found


def in_range(
    find: Callable[[np.ndarray, Any], Found], rows: np.ndarray, amplitude: Amplitude
) -> tuple[Found, np.ndarray]:
    """Find λ in the unit of the patterns; return what was found, and distances in the user's unit.

    So are gains, offsets and the squared distances of other poses. ``find`` takes images in the
    unit of the patterns, and which ones they are.
    """
    exponents = np.full((len(rows), 1), amplitude.exponent)
    with np.errstate(over="ignore"):
        found = find(amplitude.lowered(rows), slice(None))
    bright = np.flatnonzero(~np.isfinite(found.square).all(axis=1))
    if len(bright):
        found = Found(*(np.array(part) for part in found))
        images, exponents[bright, 0] = _dimmed(rows[bright])
        for whole, new in zip(found, find(images, bright), strict=True):
            whole[bright] = new
    with np.errstate(over="ignore"):
        distances = np.ldexp(np.sqrt(found.square), exponents)
        lit = found._replace(
            gain=np.ldexp(found.gain, exponents - amplitude.exponent),
            offset=np.ldexp(found.offset, exponents),
            mode_squares=np.ldexp(found.mode_squares, 2 * exponents[:, :, None]),
        )
    _require_finite(distances, rows.dtype)
    return lit, distances


def _dimmed(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Images divided by powers of two, still so bright that the pattern is below their rounding."""
    exponents = np.frexp(np.nanmax(np.abs(rows), axis=1))[1] - (np.finfo(rows.dtype).nmant + 8)
    return np.ldexp(rows, -exponents[:, None]), exponents


def _require_finite(distances: np.ndarray, dtype: np.dtype) -> None:
    if not np.isfinite(distances).all():
        i = int(np.flatnonzero(~np.isfinite(distances).all(axis=1))[0])
        raise ValueError(
            f"images[{i}] is so bright that its distance is too large for {dtype}; divide the "
            "images and the pattern by a number, or give the images as float64."
        )
