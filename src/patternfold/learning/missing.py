"""Pixels that count nothing: masked by the user, or no number."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold._validation import require_finite


def without_missing(
    name: str, rows: np.ndarray, sample_mask: Any = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Images (N, n) with 0 where a pixel does not count, and which count; None where all do.

    ``sample_mask`` tells which pixels count, as images, as rows, or as one image for all. NaN never
    counts; infinity is refused unless it is masked.
    """
    if sample_mask is None and np.isfinite(rows).all():
        return rows, None
    counted = ~np.isnan(rows)
    if sample_mask is not None:
        counted &= as_mask(sample_mask, rows.shape)
    rows = np.where(counted, rows, np.zeros((), rows.dtype))
    require_finite(name, rows)
    return rows, None if counted.all() else counted


def as_mask(sample_mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask for images of shape (N, n), True where a pixel counts."""
    mask = np.asarray(sample_mask)
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            "sample_mask must be boolean, True where a pixel counts; weights of whole images are "
            "given as sample_weight."
        )
    n_images, n_pixels = shape
    if mask.size == n_images * n_pixels and len(mask) == n_images:
        return mask.reshape(shape).astype(bool)
    if mask.size == n_pixels:
        return np.broadcast_to(mask.reshape(1, -1).astype(bool), shape)
    raise ValueError(
        f"sample_mask has shape {mask.shape}; expected one value for each pixel of {n_images} "
        f"images of {n_pixels} pixels, or one image for all."
    )


def require_some(name: str, counted: np.ndarray | None) -> None:
    """Refuse images of which no pixel counts."""
    if counted is not None and not counted.any(axis=1).all():
        index = int(np.flatnonzero(~counted.any(axis=1))[0])
        raise ValueError(
            f"{name}[{index}] has no pixel that counts: all are masked or NaN. Leave it out."
        )
